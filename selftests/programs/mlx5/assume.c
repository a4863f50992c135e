// SPDX-License-Identifier: GPL-2.0
/*
 * Does a device do what the module assumes of it? The list, and its numbers, are those of
 * Documentation/internals/mlx5.md, "What is assumed of the device". TAP.
 */
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "assume.h"

static struct port ports[2] = { { .num = 1, .gid_index = -1 }, { .num = 1, .gid_index = -1 } };
static struct pair witness;

const char *say(const char *format, ...)
{
	static char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

void make(struct pair *pair, const struct setup *setup)
{
	pair_make(pair, &ports[0], &ports[1], setup);
}

/*
 * Whatever was under way between the ports has arrived, and whatever a device was about
 * to do it has done, when others have been there and back so often.
 */
void settle(void)
{
	struct cqe cqe;
	int i;

	for (i = 0; i < 300; i++) {
		end_post(&witness.a, MLX5_OPCODE_RDMA_WRITE, SIGNALED, MEMORY - 8, 8, &witness.b,
			 MEMORY - 8);
		end_ring(&witness.a);
		if (!cq_wait(&witness.a.send, &cqe) || cqe.syndrome) {
			errno = EIO;
			bail("the two ports do not reach each other, syndrome 0x%x", cqe.syndrome);
		}
	}
}

uint32_t sum(const struct end *end)
{
	const uint32_t *word = (void *)end->port->mem;
	uint32_t s = 0;
	size_t i;

	for (i = 0; i < (MEMORY - 8) / sizeof(*word); i++)
		s = s * 31 + word[i];
	return s;
}

static const char *untried(void)
{
	return "SKIP not tried";
}

static const char *kernel_qp(void)
{
	return assume_kernel_qp(&ports[0]);
}

static const struct {
	const char *what;
	const char *(*test)(void);
} tests[] = {
	{ "ERR ends sending", assume_err_sends },
	{ "ERR flushes what was posted, in order, behind all successes", assume_err_flushes },
	{ "ERR ends executing, and the query tells how far that got", assume_err_executes },
	{ "an error is of the oldest request without an answer", assume_own_errors },
	{ "after RESET nothing is completed", assume_reset },
	{ "a doorbell in RESET is without effect", assume_reset_doorbell },
	{ "PSNs of requests", assume_psns },
	{ "a NOP has no PSN", assume_nop },
	{ "binding and invalidating have no PSN", assume_umr },
	{ "what comes before the expected PSN is in memory", assume_memory },
	{ "wqe_counter is the index of the first block, or of the receive", assume_counters },
	{ "lengths 0 and 2^31", assume_lengths },
	{ "data in completions", assume_data },
	{ "masked atomics", assume_masked },
	{ "what was written without a doorbell is not posted", assume_producer },
	{ "a QP that was reset at work works again, with another peer", assume_again },
	{ "ERR and RESET of a QP on an SRQ", untried },
	{ "completions of an SRQ's receives", untried },
	{ "a kernel's QP works in an application's PD", kernel_qp },
};

#define TESTS	(sizeof(tests) / sizeof(tests[0]))

static void usage(FILE *to)
{
	fprintf(to, "usage: mlx5_assume [-g INDEX[,INDEX]] [-n NUMBER | -x NUMBER] DEVICE[:PORT] [DEVICE[:PORT]]\n"
		"Tries what rdma_shift assumes of mlx5 devices (Documentation/internals/mlx5.md), between\n"
		"two ports or from one port to itself.\n"
		"  -g  indices of the GIDs, on Ethernet (default: RoCE v2, IPv4)\n"
		"  -n  only this number of the list\n"
		"  -x  all but this number\n"
		"Exit status: 0 all is as assumed or was skipped, 1 something is not, 2 could not run.\n");
}

static void port_name(struct port *port, char *name)
{
	char *colon = strchr(name, ':');

	if (colon) {
		*colon = 0;
		port->num = atoi(colon + 1);
	}
	port->name = name;
}

/* Of the list? */
static bool number(const char *text, unsigned int *n)
{
	*n = atoi(text);
	return *n && *n <= TESTS;
}

static bool options(int argc, char **argv, unsigned int *only, unsigned int *without)
{
	char *comma;
	int c;

	while ((c = getopt(argc, argv, "g:n:x:h")) != -1) {
		switch (c) {
		case 'g':
			comma = strchr(optarg, ',');
			ports[0].gid_index = atoi(optarg);
			ports[1].gid_index = atoi(comma ? comma + 1 : optarg);
			break;
		case 'n':
			if (!number(optarg, only))
				return false;
			break;
		case 'x':
			if (!number(optarg, without))
				return false;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			return false;
		}
	}
	if (argc - optind != 1 && argc - optind != 2)
		return false;
	port_name(&ports[0], argv[optind]);
	ports[1].name = ports[0].name;
	ports[1].num = ports[0].num;
	if (argc - optind == 2)
		port_name(&ports[1], argv[optind + 1]);
	return true;
}

int main(int argc, char **argv)
{
	unsigned int i, only = 0, without = 0, failed = 0;
	const char *why;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!options(argc, argv, &only, &without)) {
		usage(stderr);
		return 2;
	}
	port_open(&ports[0]);
	port_open(&ports[1]);
	make(&witness, &(struct setup){});
	settle();
	printf("TAP version 13\n1..%zu\n", TESTS);
	for (i = 0; i < TESTS; i++) {
		if ((only && only != i + 1) || without == i + 1) {
			printf("ok %u - %s # SKIP not asked for\n", i + 1, tests[i].what);
			continue;
		}
		why = tests[i].test();
		if (why && !strncmp(why, "SKIP ", 5)) {
			printf("ok %u - %s # %s\n", i + 1, tests[i].what, why);
			continue;
		}
		if (why)
			printf("# %s\n", why);
		printf("%s %u - %s\n", why ? "not ok" : "ok", i + 1, tests[i].what);
		failed += !!why;
	}
	pair_end(&witness);
	return failed ? 1 : 0;
}
