// SPDX-License-Identifier: GPL-2.0
/*
 * Control verbs while the kernel's allocations fail, each of them once.
 *
 * usage: alloc_edge DEVICE
 * Each call is repeated with its first, second, third... allocation failing, on
 * fresh objects, until one had no allocation left to fail. Prints a line per
 * call: how many allocations could fail and how many of those failed the call.
 * Copies from and to user memory count as allocations where they can be made to
 * fail. Needs a kernel with FAULT_INJECTION (fail-nth) and failslab that does not
 * pass over allocations that may wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define MAX_NTH 400
#define BUF_LEN 65536
#define AGAIN_S 30	/* a verb of another thread that fails may wait so long: core/account.c */

struct objects {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	union ibv_gid gid;
	char *buf;
};

static int reg_mr(struct objects *o)
{
	o->mr = ibv_reg_mr(o->pd, o->buf, BUF_LEN, IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	return o->mr ? 0 : -1;
}

static int create_cq(struct objects *o)
{
	o->cq = ibv_create_cq(o->context, 64, NULL, NULL, 0);
	return o->cq ? 0 : -1;
}

static int create_qp(struct objects *o)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = o->cq, .recv_cq = o->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16,
			 .max_send_sge = 2, .max_recv_sge = 2 },
	};

	o->qp = ibv_create_qp(o->pd, &attr);
	return o->qp ? 0 : -1;
}

static int to_init(struct objects *o)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	return ibv_modify_qp(o->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			     IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* To itself: what is established with a peer is not the caller's to wait for. */
static int to_rtr(struct objects *o)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = o->qp->qp_num, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .sgid_index = 1, .hop_limit = 1 } },
	};

	attr.ah_attr.grh.dgid = o->gid;
	return ibv_modify_qp(o->qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			     IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct objects *o)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 3,
		.rnr_retry = 7, .max_rd_atomic = 1,
	};

	return ibv_modify_qp(o->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static const struct {
	const char *name;
	int (*call)(struct objects *o);
} steps[] = {
	{ "reg_mr", reg_mr }, { "create_cq", create_cq },
	{ "create_qp", create_qp }, { "init", to_init },
	{ "rtr", to_rtr }, { "rts", to_rts },
};

#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

static void fresh(struct objects *o)
{
	if ((o->qp && ibv_destroy_qp(o->qp)) ||
	    (o->cq && ibv_destroy_cq(o->cq)) ||
	    (o->mr && ibv_dereg_mr(o->mr))) {
		fprintf(stderr, "cannot destroy: %s\n", strerror(errno));
		exit(1);
	}
	o->qp = NULL;
	o->cq = NULL;
	o->mr = NULL;
}

/* Setting and reading the count are system calls that fail by it, too. */
static void arm(int fd, int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", nth);

	if (pwrite(fd, text, len, 0) != len && (nth || errno != EFAULT)) {
		perror("fail-nth");
		exit(2);
	}
}

/* What is left of the count: 0 when the failure has happened. */
static int disarm(int fd)
{
	char text[16] = "";
	int left;

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0) {
		if (errno == EFAULT)
			return 1;
		perror("fail-nth");
		exit(2);
	}
	left = atoi(text);
	if (left)
		arm(fd, 0);
	return left;
}

/* The call of a step with its nth allocation failing; 0: it had fewer. */
static int once(struct objects *o, int fd, size_t step, int nth, int *failed)
{
	int left, bad;
	time_t began;
	size_t i;

	for (i = 0; i < step; i++)
		if (steps[i].call(o)) {
			fprintf(stderr, "%s for %s %d: %s\n", steps[i].name,
				steps[step].name, nth, strerror(errno));
			exit(1);
		}
	arm(fd, nth);
	began = time(NULL);
	bad = steps[step].call(o) != 0;
	left = disarm(fd);
	if (time(NULL) - began >= AGAIN_S) {
		fprintf(stderr, "%s %d has waited: there is no other thread\n", steps[step].name,
			nth);
		exit(1);
	}
	fresh(o);
	if (left && bad) {
		fprintf(stderr, "%s failed without a cause\n",
			steps[step].name);
		exit(1);
	}
	*failed += bad;
	return !left;
}

static void open_all(struct objects *o, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	void *p = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			o->context = ibv_open_device(list[i]);
	o->pd = o->context ? ibv_alloc_pd(o->context) : NULL;
	if (!o->pd || ibv_query_gid(o->context, 1, 1, &o->gid) ||
	    posix_memalign(&p, BUF_LEN, BUF_LEN)) {
		fprintf(stderr, "cannot open %s: %s\n", name, strerror(errno));
		exit(2);
	}
	o->buf = memset(p, 1, BUF_LEN);
}

int main(int argc, char **argv)
{
	struct objects o = {};
	size_t step;
	int fd, i;

	if (argc != 2) {
		fprintf(stderr, "usage: alloc_edge DEVICE\n");
		return 2;
	}
	fd = open("/proc/thread-self/fail-nth", O_RDWR);
	if (fd < 0) {
		perror("/proc/thread-self/fail-nth");
		return 2;
	}
	open_all(&o, argv[1]);
	for (step = 0; step < N_STEPS; step++) {
		int nth = 1, failed = 0;

		/* once without: caches and the heap are filled */
		for (i = 0; i <= (int)step; i++)
			steps[i].call(&o);
		fresh(&o);
		while (nth < MAX_NTH && once(&o, fd, step, nth, &failed))
			nth++;
		printf("%s %d %d\n", steps[step].name, nth - 1, failed);
		fflush(stdout);
	}
	return 0;
}
