// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The patched rxe provider against a make-believe /dev/shift.
 *
 * Runs on any machine with an rxe device and no rdma_shift module: fake_kernel.c
 * stands in for that, so that each thing the provider should ask or obey can be
 * provoked. The QP is connected to itself.
 *
 * cc -rdynamic -Iuapi -o test_rxe_provider selftests/provider/test_rxe_*.c \
 *	selftests/provider/fake_kernel.c -libverbs
 * LD_LIBRARY_PATH=<prefix>/lib ./test_rxe_provider rxe0
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "test_rxe.h"

/* The application */
struct ibv_pd *pd;
struct ibv_mr *mr;
struct ibv_cq *cq;
struct ibv_qp *qp;
struct ibv_srq *srq;
char buf[4096];
static struct ibv_context *ctx;
static struct ibv_cq_ex *cq_ex;

int test_failures;
static int test_nr, failures;

static int modify(enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };
	int mask = IBV_QP_STATE;

	switch (state) {
	case IBV_QPS_INIT:
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
		break;
	case IBV_QPS_RTR:
		attr.path_mtu = IBV_MTU_1024;
		attr.dest_qp_num = qp->qp_num;
		attr.rq_psn = 1000;
		attr.min_rnr_timer = 1;
		attr.ah_attr.is_global = 1;
		attr.ah_attr.port_num = 1;
		attr.ah_attr.grh.hop_limit = 1;
		if (ibv_query_gid(ctx, 1, 1, &attr.ah_attr.grh.dgid))
			return -1;
		attr.ah_attr.grh.sgid_index = 1;
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		break;
	case IBV_QPS_RTS:
		attr.timeout = 14;
		attr.retry_cnt = 7;
		attr.rnr_retry = 7;
		attr.sq_psn = 1000;
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			IBV_QP_MAX_QP_RD_ATOMIC;
		break;
	default:
		break;
	}
	return ibv_modify_qp(qp, &attr, mask);
}

static int connect_qp(void)
{
	return modify(IBV_QPS_INIT) || modify(IBV_QPS_RTR) || modify(IBV_QPS_RTS);
}

void setup(int ext)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 30, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM,
	};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 2, .max_recv_sge = 2 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND,
	};

	if (ext) {
		cq_ex = ibv_create_cq_ex(ctx, &cq_attr);
		cq = cq_ex ? ibv_cq_ex_to_cq(cq_ex) : NULL;
	} else {
		cq = ibv_create_cq(ctx, 30, NULL, NULL, 0);
	}
	attr.pd = pd;
	attr.send_cq = cq;
	attr.recv_cq = cq;
	attr.srq = srq;
	qp = cq ? ibv_create_qp_ex(ctx, &attr) : NULL;
	if (!qp || connect_qp()) {
		printf("Bail out! cannot make a QP: %s\n", strerror(errno));
		exit(1);
	}
}

void teardown(void)
{
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_cq(cq));
}

static void post(uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .length = 64, .lkey = mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = (uintptr_t)buf + 64, .rkey = mr->rkey },
	};

	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void post_recv(void)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = 9 };

	CHECK(!ibv_post_recv(qp, &wr, &bad));
}

void settle(void)
{
	usleep(300000);
}

void open_device(struct ibv_device *dev)
{
	memset(&kern.cq, 0, sizeof(kern.cq));
	memset(&kern.qp, 0, sizeof(kern.qp));
	kern.opens = kern.queries = kern.waits = kern.cqes = 0;
	kern.cq_regs = kern.cq_unregs = kern.qp_regs = kern.qp_unregs = 0;
	ctx = ibv_open_device(dev);
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	mr = pd ? ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE |
			     IBV_ACCESS_REMOTE_WRITE) : NULL;
	if (!mr) {
		printf("Bail out! cannot open the device\n");
		exit(1);
	}
}

void close_device(void)
{
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
	CHECK(!ibv_close_device(ctx));
	kern.fd = 0;
}

/* A write and its completion, as any application does it */
static void check_traffic(void)
{
	struct ibv_wc wc[4];

	post(1);
	settle();
	CHECK(ibv_poll_cq(cq, 4, wc) == 1 && wc[0].wr_id == 1 && !wc[0].status);
}

static void test_absent(struct ibv_device *dev)
{
	kern.absent = 1;
	open_device(dev);
	setup(0);
	check_traffic();
	CHECK(kern.opens == 1 && !kern.queries && !kern.cq_regs && !kern.qp_regs);
	teardown();
	close_device();
	kern.absent = 0;
}

static void test_version(struct ibv_device *dev)
{
	int newer;

	/* a module that is newer, one that is older, and a newer one that still knows ours */
	for (newer = 2; newer >= 0; newer--) {
		kern.version = newer ? SHIFT_ABI_VERSION + 1 : SHIFT_ABI_VERSION - 1;
		kern.oldest = newer == 1 ? SHIFT_ABI_VERSION : kern.version;
		kern.opens = kern.queries = 0;
		open_device(dev);
		setup(0);
		check_traffic();
		CHECK(kern.opens == 1 && kern.queries == 1);
		CHECK(newer == 1 ? kern.cq_regs && kern.qp_regs :
				   !kern.cq_regs && !kern.qp_regs);
		CHECK(newer != 1 || kern.qp.abi_version == SHIFT_ABI_VERSION);
		teardown();
		close_device();
		kern.cq_regs = kern.qp_regs = 0;
	}
	kern.version = kern.oldest = SHIFT_ABI_VERSION;
}

static void test_refused(struct ibv_device *dev)
{
	kern.reg_cq_error = ENOMEM;
	open_device(dev);
	setup(0);
	check_traffic();
	CHECK(!kern.cq_regs && !kern.qp_regs);
	teardown();
	CHECK(!kern.cq_unregs && !kern.qp_unregs);
	close_device();
	kern.reg_cq_error = 0;
}

static void test_register(struct ibv_device *dev)
{
	open_device(dev);
	CHECK(!kern.opens);		/* nobody needs it yet */
	setup(0);
	CHECK(kern.opens == 1 && kern.queries == 1 && kern.cq_regs == 1 && kern.qp_regs == 1);
	if (!kern.cq_regs || !kern.qp_regs) {
		printf("Bail out! the provider does not register: is it the patched one?\n");
		exit(1);
	}
	CHECK(kern.cq.cmd_fd == ctx->cmd_fd && kern.cq.handle == cq->handle);
	CHECK(kern.qp.cmd_fd == ctx->cmd_fd && kern.qp.handle == qp->handle);
	CHECK(kern.cq.ring.addr && !(kern.cq.ring.addr & 4095) && kern.cq.ring.len);
	CHECK(kern.qp.sq.addr && kern.qp.sq.len && kern.qp.rq.addr && kern.qp.rq.len);
	CHECK(!(kern.qp.flag_addr & 3) && !(kern.cq.flag_addr & 3));
	CHECK(*(uint32_t *)(uintptr_t)kern.qp.sq_lock_addr == kern.qp.lock_free);
	CHECK(*(uint32_t *)(uintptr_t)kern.qp.rq_lock_addr == kern.qp.lock_free);
	check_traffic();
	CHECK(!kern.waits && !kern.cqes);
	CHECK(ibv_destroy_cq(cq));	/* busy: and registered again */
	CHECK(kern.cq_unregs == 1 && kern.cq_regs == 2);
	teardown();
	CHECK(kern.cq_unregs == 2 && kern.qp_unregs == 1);
	close_device();
}

static void test_gate(struct ibv_device *dev)
{
	struct ibv_qp_ex *qpx;
	struct ibv_wc wc[4];
	volatile uint32_t *flag;

	open_device(dev);
	setup(0);
	flag = (uint32_t *)(uintptr_t)kern.qp.flag_addr;
	*flag = SHIFT_QP_FLAG_GATE;
	post(1);
	CHECK(kern.waits == 1);
	*flag = SHIFT_QP_FLAG_GATE;
	post_recv();
	CHECK(kern.waits == 2);
	*flag = SHIFT_QP_FLAG_GATE;
	qpx = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(qpx);
	qpx->wr_id = 2;
	ibv_wr_rdma_write(qpx, mr->rkey, (uintptr_t)buf + 64);
	ibv_wr_set_sge(qpx, mr->lkey, (uintptr_t)buf, 64);
	CHECK(!ibv_wr_complete(qpx));
	CHECK(kern.waits == 3);
	post(3);
	CHECK(kern.waits == 3);
	settle();
	CHECK(ibv_poll_cq(cq, 4, wc) == 3);
	CHECK(wc[0].wr_id == 1 && wc[1].wr_id == 2 && wc[2].wr_id == 3);
	teardown();
	close_device();
}

/* A fence lasts longer than one WAIT: nothing is posted into the rings that it reads */
static void test_gate_shut_for_long(struct ibv_device *dev)
{
	static const int again[] = { ETIMEDOUT, EINTR };
	volatile uint32_t *flag;
	struct ibv_wc wc[4];
	unsigned int i;

	open_device(dev);
	setup(0);
	flag = (uint32_t *)(uintptr_t)kern.qp.flag_addr;
	for (i = 0; i < 2; i++) {
		kern.wait_error = again[i];
		kern.wait_errors = 3;
		kern.waits = 0;
		*flag = SHIFT_QP_FLAG_GATE;
		if (i)
			post_recv();
		else
			post(1);
		CHECK(kern.waits == 4 && !*flag);
	}
	/* it does not wait for ever, nor if there is nobody to wait for */
	kern.wait_error = ETIMEDOUT;
	kern.wait_errors = 1000;
	kern.waits = 0;
	*flag = SHIFT_QP_FLAG_GATE;
	post(2);
	CHECK(kern.waits == 60);
	kern.wait_error = ENOENT;
	kern.waits = 0;
	post(3);
	CHECK(kern.waits == 1);
	kern.wait_errors = 0;
	settle();
	CHECK(ibv_poll_cq(cq, 4, wc) == 3);
	CHECK(wc[0].wr_id == 1 && wc[1].wr_id == 2 && wc[2].wr_id == 3);
	teardown();
	close_device();
}

/* Away from its device: posts go on as ever, and receives are told */
static void test_kick(struct ibv_device *dev)
{
	volatile uint32_t *flag;
	struct ibv_wc wc[4];

	open_device(dev);
	setup(0);
	flag = (uint32_t *)(uintptr_t)kern.qp.flag_addr;
	post_recv();
	CHECK(kern.kicks == 0);
	*flag = SHIFT_QP_FLAG_KICK;
	post_recv();
	CHECK(kern.kicks == 1 && kern.waits == 0);
	CHECK(*flag == SHIFT_QP_FLAG_KICK);
	post(1);
	CHECK(kern.kicks == 1 && kern.waits == 0);
	*flag = SHIFT_QP_FLAG_GATE;
	post_recv();		/* the kernel opens the gate: nothing to tell */
	CHECK(kern.kicks == 1 && kern.waits == 1);
	settle();
	CHECK(ibv_poll_cq(cq, 4, wc) == 1 && wc[0].wr_id == 1);
	teardown();
	close_device();
}

static void test_poll(struct ibv_device *dev)
{
	struct ibv_wc wc[8];

	open_device(dev);
	setup(0);
	post(1);
	post(2);
	settle();
	kern_complete(100, 5);		/* found when the ring is empty */
	kern_raise();
	CHECK(ibv_poll_cq(cq, 8, wc) == 3);
	CHECK(wc[0].wr_id == 1 && wc[1].wr_id == 2 && wc[2].wr_id == 100);
	CHECK(wc[2].byte_len == 5 && wc[2].qp_num == 0x123 && !wc[2].status);

	post(3);
	settle();
	kern_complete(101, 5);
	kern_raise();
	CHECK(ibv_poll_cq(cq, 1, wc) == 1 && wc[0].wr_id == 3);
	CHECK(cq_flag());
	post(4);
	settle();
	CHECK(ibv_poll_cq(cq, 8, wc) == 2 && wc[0].wr_id == 101 && wc[1].wr_id == 4);
	CHECK(!cq_flag());
	CHECK(ibv_poll_cq(cq, 8, wc) == 0);
	teardown();
	close_device();
}

static void test_swallow(struct ibv_device *dev)
{
	struct ibv_wc wc[8];

	open_device(dev);
	setup(0);
	post_recv();
	post_recv();
	modify(IBV_QPS_ERR);		/* two flushes */
	settle();
	kern.answer = SHIFT_CQE_SWALLOW;
	kern_complete(100, 5);
	CHECK(ibv_poll_cq(cq, 8, wc) == 1 && wc[0].wr_id == 100);
	CHECK(kern.cqes == 2 && kern.cqe.cq_id == CQ_ID && kern.cqe.qp_num == qp->qp_num &&
	      kern.cqe.status == IBV_WC_WR_FLUSH_ERR);
	post_recv();
	settle();
	kern.answer = SHIFT_CQE_DELIVER;
	teardown();
	close_device();

	open_device(dev);
	setup(0);
	post_recv();
	modify(IBV_QPS_ERR);
	settle();
	CHECK(ibv_poll_cq(cq, 8, wc) == 1 && wc[0].status == IBV_WC_WR_FLUSH_ERR && wc[0].wr_id == 9);
	CHECK(kern.cqes == 1);
	teardown();
	close_device();
}

static void test_poll_ex(struct ibv_device *dev)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc wc[8];

	open_device(dev);
	setup(1);
	CHECK(ibv_start_poll(cq_ex, &attr) == ENOENT);

	kern_complete(100, 5);		/* alone */
	kern_raise();
	CHECK(!ibv_start_poll(cq_ex, &attr) && cq_ex->wr_id == 100 && !cq_ex->status);
	CHECK(ibv_wc_read_byte_len(cq_ex) == 5 && ibv_wc_read_qp_num(cq_ex) == 0x123);
	CHECK(ibv_next_poll(cq_ex) == ENOENT);
	ibv_end_poll(cq_ex);
	CHECK(ibv_start_poll(cq_ex, &attr) == ENOENT);

	post(1);
	post(2);
	settle();
	kern_complete(101, 6);
	kern_complete(102, 7);
	kern_raise();
	CHECK(!ibv_start_poll(cq_ex, &attr) && cq_ex->wr_id == 1);
	CHECK(ibv_wc_read_qp_num(cq_ex) == qp->qp_num);
	CHECK(!ibv_next_poll(cq_ex) && cq_ex->wr_id == 2);
	CHECK(!ibv_next_poll(cq_ex) && cq_ex->wr_id == 101);
	CHECK(ibv_wc_read_byte_len(cq_ex) == 6);
	ibv_end_poll(cq_ex);
	post(3);
	settle();
	CHECK(!ibv_start_poll(cq_ex, &attr) && cq_ex->wr_id == 102);
	CHECK(!ibv_next_poll(cq_ex) && cq_ex->wr_id == 3);
	CHECK(ibv_next_poll(cq_ex) == ENOENT);
	ibv_end_poll(cq_ex);
	CHECK(!cq_flag());
	CHECK(ibv_start_poll(cq_ex, &attr) == ENOENT);
	CHECK(ibv_poll_cq(cq, 8, wc) == 0);

	/* an error in the middle, swallowed */
	post(4);
	settle();
	post_recv();
	modify(IBV_QPS_ERR);
	settle();
	kern.answer = SHIFT_CQE_SWALLOW;
	CHECK(!ibv_start_poll(cq_ex, &attr) && cq_ex->wr_id == 4);
	CHECK(ibv_next_poll(cq_ex) == ENOENT);
	ibv_end_poll(cq_ex);
	CHECK(kern.cqes == 1);
	CHECK(ibv_poll_cq(cq, 8, wc) == 0);
	post_recv();
	modify(IBV_QPS_RESET);
	CHECK(!connect_qp());
	post_recv();
	modify(IBV_QPS_ERR);
	settle();
	CHECK(ibv_start_poll(cq_ex, &attr) == ENOENT);	/* only what is swallowed */
	CHECK(ibv_poll_cq(cq, 8, wc) == 0);
	kern.answer = SHIFT_CQE_DELIVER;
	teardown();
	close_device();
}

static void test_resize(struct ibv_device *dev)
{
	struct ibv_wc wc[8];

	open_device(dev);
	setup(0);
	CHECK(!ibv_resize_cq(cq, 100));
	CHECK(kern.cq_unregs == 1 && kern.cq_regs == 2);
	check_traffic();
	post(1);
	settle();
	kern_complete(100, 5);		/* must outlive the next resize */
	CHECK(!ibv_resize_cq(cq, 200));
	CHECK(kern.cq_unregs == 2 && kern.cq_regs == 3);
	CHECK(ibv_poll_cq(cq, 8, wc) == 2 && wc[0].wr_id == 1 && wc[1].wr_id == 100);
	check_traffic();
	teardown();
	close_device();
}

static void run(const char *name, void (*fn)(struct ibv_device *), struct ibv_device *dev)
{
	test_failures = 0;
	fn(dev);
	printf("%sok %d %s\n", test_failures ? "not " : "", ++test_nr, name);
	failures += !!test_failures;
}

int main(int argc, char **argv)
{
	struct ibv_device **list, *dev = NULL;
	int i;

	setbuf(stdout, NULL);
	printf("KTAP version 1\n");
	list = ibv_get_device_list(NULL);
	for (i = 0; list && list[i]; i++)
		if (argc < 2 || !strcmp(ibv_get_device_name(list[i]), argv[1]))
			dev = dev ? dev : list[i];
	if (!dev) {
		printf("1..0 # SKIP no such RDMA device\n");
		return 4;
	}
	printf("1..11\n");
	run("provider_no_module", test_absent, dev);
	run("provider_other_abi", test_version, dev);
	run("provider_refused", test_refused, dev);
	run("provider_register", test_register, dev);
	run("provider_gate", test_gate, dev);
	run("provider_gate_long", test_gate_shut_for_long, dev);
	run("provider_kick", test_kick, dev);
	run("provider_poll_cq", test_poll, dev);
	run("provider_swallow", test_swallow, dev);
	run("provider_poll_ex", test_poll_ex, dev);
	run("provider_resize", test_resize, dev);
	run("provider_srq", test_srq, dev);
	return !!failures;
}
