// SPDX-License-Identifier: GPL-2.0
/* Verbs objects of a stock provider, and where their rings are mapped. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abuse.h"

#define MAX_MAPS 64

int failures;

void report(bool good, const char *format, ...)
{
	va_list args;

	printf("%s: ", good ? "good" : "BAD");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	failures += !good;
}

int open_shift(void)
{
	int fd = open(SHIFT_ABI_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		perror(SHIFT_ABI_DEVICE);
		exit(2);
	}
	return fd;
}

void refused(int fd, unsigned long cmd, void *arg, int want, const char *what)
{
	int ret = ioctl(fd, cmd, arg);
	int error = ret < 0 ? errno : 0;

	report(ret < 0 && (!want || error == want), "%s: %s%s", what,
	       ret < 0 ? strerror(error) : "was accepted",
	       ret < 0 && want && error != want ? " (not the right error)" : "");
}

void allowed(int fd, unsigned long cmd, void *arg, const char *what)
{
	int ret = ioctl(fd, cmd, arg);

	report(!ret, "%s: %s", what, ret ? strerror(errno) : "accepted");
}

struct map {
	uint64_t start, end;
};

static unsigned int uverbs_maps(struct map *maps)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int n = 0;
	char line[512];

	while (f && n < MAX_MAPS && fgets(line, sizeof(line), f))
		if (strstr(line, "uverbs") &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &maps[n].start,
			   &maps[n].end) == 2)
			n++;
	if (f)
		fclose(f);
	return n;
}

/* Mappings that were not there before, in ascending order of address. */
static unsigned int new_maps(const struct map *before, unsigned int n_before,
			     struct map *found)
{
	struct map now[MAX_MAPS];
	unsigned int i, j, n = uverbs_maps(now), m = 0;

	for (i = 0; i < n; i++) {
		for (j = 0; j < n_before; j++)
			if (before[j].start == now[i].start)
				break;
		if (j == n_before)
			found[m++] = now[i];
	}
	return m;
}

static struct shift_abi_ring ring_of(const struct map *map)
{
	return (struct shift_abi_ring) {
		.addr = map->start, .len = map->end - map->start,
	};
}

static void need(const void *p, const char *what)
{
	if (p)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

static void create_objects(struct victim *v)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 16, .max_recv_wr = 64,
			 .max_send_sge = 2, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 63, .max_sge = 2 } };
	struct map before[MAX_MAPS], found[MAX_MAPS];
	unsigned int n;

	n = uverbs_maps(before);
	v->srq = ibv_create_srq(v->pd, &srq_init);
	need(v->srq, "ibv_create_srq");
	if (new_maps(before, n, found) != 1)
		need(NULL, "SRQ ring not found");
	v->srq_ring = ring_of(found);

	n = uverbs_maps(before);
	v->cq = ibv_create_cq(v->context, 63, NULL, v->channel, 0);
	need(v->cq, "ibv_create_cq");
	if (new_maps(before, n, found) != 1)
		need(NULL, "CQ ring not found");
	v->cq_ring = ring_of(found);

	n = uverbs_maps(before);
	init.send_cq = init.recv_cq = v->cq;
	v->qp = ibv_create_qp(v->pd, &init);
	need(v->qp, "ibv_create_qp");
	if (new_maps(before, n, found) != 2)
		need(NULL, "QP rings not found");
	/* The send ring has the larger elements. */
	v->sq = ring_of(&found[0]);
	v->rq = ring_of(&found[1]);
}

void victim_open(struct victim *v, const char *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	memset(v, 0, sizeof(*v));
	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device))
			v->context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	need(v->context, device);
	v->pd = ibv_alloc_pd(v->context);
	need(v->pd, "ibv_alloc_pd");
	v->channel = ibv_create_comp_channel(v->context);
	need(v->channel, "ibv_create_comp_channel");
	create_objects(v);
	v->words = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(v->words == MAP_FAILED ? NULL : v->words, "mmap");
}

void victim_close(struct victim *v)
{
	if (ibv_destroy_qp(v->qp) || ibv_destroy_srq(v->srq) || ibv_destroy_cq(v->cq) ||
	    ibv_destroy_comp_channel(v->channel) || ibv_dealloc_pd(v->pd) ||
	    ibv_close_device(v->context))
		report(false, "a destroy verb failed: %s", strerror(errno));
	munmap(v->words, 4096);
}

struct shift_abi_reg_cq valid_cq(const struct victim *v)
{
	return (struct shift_abi_reg_cq) {
		.abi_version = SHIFT_ABI_VERSION,
		.provider = SHIFT_PROVIDER_RXE,
		.cmd_fd = v->context->cmd_fd,
		.handle = v->cq->handle,
		.ring = v->cq_ring,
		.flag_addr = (uintptr_t)&v->words[0],
	};
}

struct shift_abi_reg_srq valid_srq(const struct victim *v)
{
	return (struct shift_abi_reg_srq) {
		.abi_version = SHIFT_ABI_VERSION,
		.provider = SHIFT_PROVIDER_RXE,
		.cmd_fd = v->context->cmd_fd,
		.handle = v->srq->handle,
		.ring = v->srq_ring,
		.flag_addr = (uintptr_t)&v->words[4],
	};
}

struct shift_abi_reg_qp valid_qp(const struct victim *v)
{
	return (struct shift_abi_reg_qp) {
		.abi_version = SHIFT_ABI_VERSION,
		.provider = SHIFT_PROVIDER_RXE,
		.cmd_fd = v->context->cmd_fd,
		.handle = v->qp->handle,
		.sq = v->sq,
		.rq = v->rq,
		.sq_lock_addr = (uintptr_t)&v->words[1],
		.rq_lock_addr = (uintptr_t)&v->words[2],
		.flag_addr = (uintptr_t)&v->words[3],
		.lock_free = 0,
	};
}
