// SPDX-License-Identifier: GPL-2.0
/*
 * An application at its memlock limit: how many buffers can it register?
 *
 * usage: memlock_edge DEVICE PAGES COUNT [DEPTH]
 * With DEPTH makes a CQ and a QP of as many entries, prints "rings N", the pages that
 * are charged for them, and waits for a line. Then registers buffers of PAGES pages until
 * that is refused, with a limit for COUNT of them on top of what the context itself needs;
 * frees one and registers it again. Prints "registered N" and how many there were after
 * the refill. With a COUNT of 0 it ends after the rings.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define MAX_COUNT 64

static struct ibv_pd *open_pd(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	return context ? ibv_alloc_pd(context) : NULL;
}

static int fill(struct ibv_pd *pd, struct ibv_mr **mr, char **buf, size_t len)
{
	int n = 0;

	while (n < MAX_COUNT && mr[n])
		n++;
	for (; n < MAX_COUNT; n++) {
		mr[n] = ibv_reg_mr(pd, buf[n], len, IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE);
		if (!mr[n])
			break;
	}
	return n;
}

/* What the process is charged for, in pages. */
static long pinned(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[200];
	long kb = -1;

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "VmPin: %ld", &kb);
	if (status)
		fclose(status);
	return kb * 1024 / sysconf(_SC_PAGESIZE);
}

static int rings(struct ibv_pd *pd, int depth)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = depth, .max_recv_wr = depth,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	long before = pinned();

	attr.send_cq = attr.recv_cq = ibv_create_cq(pd->context, 2 * depth - 1, NULL, NULL, 0);
	if (!attr.send_cq || !ibv_create_qp(pd, &attr)) {
		perror("a CQ and a QP");
		return 1;
	}
	printf("rings %ld\n", pinned() - before);
	fflush(stdout);
	return getchar() == EOF;
}

int main(int argc, char **argv)
{
	static struct ibv_mr *mr[MAX_COUNT + 1];
	static char *buf[MAX_COUNT];
	long page = sysconf(_SC_PAGESIZE);
	struct rlimit limit;
	struct ibv_pd *pd;
	size_t len;
	int i, n;

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: memlock_edge DEVICE PAGES COUNT [DEPTH]\n");
		return 2;
	}
	len = atol(argv[2]) * page;
	limit.rlim_cur = limit.rlim_max = len * atol(argv[3]);
	pd = open_pd(argv[1]);
	if (!pd) {
		fprintf(stderr, "cannot open %s: %s\n", argv[1], strerror(errno));
		return 2;
	}
	if (argc == 5 && rings(pd, atoi(argv[4])))
		return 1;
	if (!atol(argv[3]))
		return 0;
	for (i = 0; i < MAX_COUNT; i++) {
		void *p = NULL;

		if (posix_memalign(&p, page, len))
			return 2;
		buf[i] = memset(p, 1, len);
	}
	if (setrlimit(RLIMIT_MEMLOCK, &limit)) {
		perror("setrlimit");
		return 2;
	}
	n = fill(pd, mr, buf, len);
	printf("registered %d\n", n);
	if (!n)
		return 1;
	/* What was freed must be there again, no more and no less. */
	for (i = 0; i < 3; i++) {
		if (ibv_dereg_mr(mr[n - 1]))
			return 1;
		mr[n - 1] = NULL;
		printf("refilled %d\n", fill(pd, mr, buf, len));
	}
	while (n--)
		if (ibv_dereg_mr(mr[n]))
			return 1;
	return 0;
}
