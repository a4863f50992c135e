// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The patched rxe provider against a make-believe /dev/shift.
 *
 * Runs on any machine with an rxe device and no rdma_shift module: this program
 * takes the place of open, ioctl and mmap for /dev/shift only, so that each
 * thing the provider should ask or obey can be provoked. The QP is connected to
 * itself.
 *
 * cc -rdynamic -Iuapi -o test_rxe_provider selftests/provider/test_rxe_provider.c -libverbs
 * LD_LIBRARY_PATH=<prefix>/lib ./test_rxe_provider rxe0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/shift-abi.h>

#define SIDE_ENTRIES	8
#define SIDE_LEN	4096
#define SIDE_OFFSET	0x10000
#define CQ_ID		77
#define QP_ID		78

/* The make-believe kernel */
static struct {
	int		fd;		/* of /dev/shift; 0: not open */
	int		absent;
	uint32_t	version;
	int		opens, queries, waits, kicks, cqes;
	int		cq_regs, cq_unregs, qp_regs, qp_unregs;
	int		reg_cq_error;
	uint32_t	verdict;
	struct shift_abi_reg_cq	cq;
	struct shift_abi_reg_qp	qp;
	struct shift_abi_cqe	cqe;
	struct shift_abi_side	*side;
} kern = { .version = SHIFT_ABI_VERSION };

static void kern_wait(void)
{
	kern.waits++;
	/* the provider must not hold the queue's lock now */
	if (*(volatile uint32_t *)(uintptr_t)kern.qp.sq_lock_addr != kern.qp.lock_free ||
	    *(volatile uint32_t *)(uintptr_t)kern.qp.rq_lock_addr != kern.qp.lock_free)
		kern.waits += 1000;
	*(volatile uint32_t *)(uintptr_t)kern.qp.flag_addr = 0;
}

static int kern_ioctl(unsigned long cmd, void *arg)
{
	struct shift_abi_id *id = arg;

	switch (cmd) {
	case SHIFT_IOC_QUERY:
		kern.queries++;
		((struct shift_abi_query *)arg)->abi_version = kern.version;
		return 0;
	case SHIFT_IOC_REGISTER_CQ:
		if (kern.reg_cq_error) {
			errno = kern.reg_cq_error;
			return -1;
		}
		kern.cq_regs++;
		kern.cq = *(struct shift_abi_reg_cq *)arg;
		((struct shift_abi_reg_cq *)arg)->id = CQ_ID;
		((struct shift_abi_reg_cq *)arg)->side_len = SIDE_LEN;
		((struct shift_abi_reg_cq *)arg)->side_offset = SIDE_OFFSET;
		return 0;
	case SHIFT_IOC_REGISTER_QP:
		kern.qp_regs++;
		kern.qp = *(struct shift_abi_reg_qp *)arg;
		((struct shift_abi_reg_qp *)arg)->id = QP_ID;
		return 0;
	case SHIFT_IOC_UNREGISTER:
		if (id->type == SHIFT_ABI_CQ && id->id == CQ_ID)
			kern.cq_unregs++;
		else if (id->type == SHIFT_ABI_QP && id->id == QP_ID)
			kern.qp_unregs++;
		else
			abort();
		return 0;
	case SHIFT_IOC_WAIT:
		if (id->type != SHIFT_ABI_QP || id->id != QP_ID)
			abort();
		kern_wait();
		return 0;
	case SHIFT_IOC_KICK:
		if (id->type != SHIFT_ABI_QP || id->id != QP_ID)
			abort();
		kern.kicks++;
		return 0;
	case SHIFT_IOC_CQE:
		kern.cqes++;
		kern.cqe = *(struct shift_abi_cqe *)arg;
		((struct shift_abi_cqe *)arg)->verdict = kern.verdict;
		return 0;
	}
	errno = ENOTTY;
	return -1;
}

int open(const char *path, int flags, ...)
{
	static int (*real)(const char *, int, ...);
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (!real)
		real = dlsym(RTLD_NEXT, "open");
	if (strcmp(path, SHIFT_ABI_DEVICE))
		return real(path, flags, mode);
	kern.opens++;
	if (kern.absent) {
		errno = ENOENT;
		return -1;
	}
	kern.fd = real("/dev/null", O_RDWR);
	return kern.fd;
}

int ioctl(int fd, unsigned long cmd, ...)
{
	static int (*real)(int, unsigned long, ...);
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!real)
		real = dlsym(RTLD_NEXT, "ioctl");
	if (kern.fd && fd == kern.fd)
		return kern_ioctl(cmd, arg);
	return real(fd, cmd, arg);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	static void *(*real)(void *, size_t, int, int, int, off_t);
	struct shift_abi_side *old = kern.side;

	if (!real)
		real = dlsym(RTLD_NEXT, "mmap");
	if (!kern.fd || fd != kern.fd)
		return real(addr, len, prot, flags, fd, off);
	if (len != SIDE_LEN || off != SIDE_OFFSET || !(flags & MAP_SHARED))
		abort();
	kern.side = real(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	kern.side->entries = SIDE_ENTRIES;
	kern.side->producer = UINT32_MAX - 2;
	kern.side->consumer = UINT32_MAX - 2;
	/* a CQ that is registered again keeps its side ring */
	if (old && kern.cq_regs > 1)
		memcpy(kern.side, old, SIDE_LEN);
	return kern.side;
}

static void kern_complete(uint64_t wr_id, uint32_t len)
{
	struct shift_abi_wc *wc = &kern.side->wc[kern.side->producer % SIDE_ENTRIES];

	memset(wc, 0, sizeof(*wc));
	wc->wr_id = wr_id;
	wc->opcode = IBV_WC_RDMA_WRITE;
	wc->byte_len = len;
	wc->qp_num = 0x123;
	__atomic_store_n(&kern.side->producer, kern.side->producer + 1, __ATOMIC_RELEASE);
}

static void kern_raise(void)
{
	*(volatile uint32_t *)(uintptr_t)kern.cq.flag_addr = SHIFT_CQ_FLAG_SIDE;
}

static uint32_t cq_flag(void)
{
	return *(volatile uint32_t *)(uintptr_t)kern.cq.flag_addr;
}

/* The application */
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_cq_ex *cq_ex;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static char buf[4096];

static int test_nr, failures, test_failures;

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# %s:%d: %s\n", __func__, __LINE__, #cond);	\
		test_failures++;					\
	}								\
} while (0)

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

static void setup(int ext)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 30, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM,
	};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 2, .max_recv_sge = 2 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
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
	qp = cq ? ibv_create_qp_ex(ctx, &attr) : NULL;
	if (!qp || connect_qp()) {
		printf("Bail out! cannot make a QP: %s\n", strerror(errno));
		exit(1);
	}
}

static void teardown(void)
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

/* Let the device put its completions into the CQ ring */
static void settle(void)
{
	usleep(300000);
}

static void open_device(struct ibv_device *dev)
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

static void close_device(void)
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
	kern.version = SHIFT_ABI_VERSION + 1;
	open_device(dev);
	setup(0);
	check_traffic();
	CHECK(kern.opens == 1 && kern.queries == 1 && !kern.cq_regs && !kern.qp_regs);
	teardown();
	close_device();
	kern.version = SHIFT_ABI_VERSION;
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
	CHECK(ibv_poll_cq(cq, 8, wc) == 2 && wc[0].wr_id == 4 && wc[1].wr_id == 101);
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
	kern.verdict = SHIFT_CQE_SWALLOW;
	kern_complete(100, 5);
	CHECK(ibv_poll_cq(cq, 8, wc) == 1 && wc[0].wr_id == 100);
	CHECK(kern.cqes == 2 && kern.cqe.cq_id == CQ_ID && kern.cqe.qp_num == qp->qp_num &&
	      kern.cqe.status == IBV_WC_WR_FLUSH_ERR);
	post_recv();
	settle();
	kern.verdict = SHIFT_CQE_DELIVER;
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
	CHECK(!ibv_start_poll(cq_ex, &attr) && cq_ex->wr_id == 3);
	CHECK(!ibv_next_poll(cq_ex) && cq_ex->wr_id == 102);
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
	kern.verdict = SHIFT_CQE_SWALLOW;
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
	kern.verdict = SHIFT_CQE_DELIVER;
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
	printf("1..10\n");
	run("provider_no_module", test_absent, dev);
	run("provider_other_abi", test_version, dev);
	run("provider_refused", test_refused, dev);
	run("provider_register", test_register, dev);
	run("provider_gate", test_gate, dev);
	run("provider_kick", test_kick, dev);
	run("provider_poll_cq", test_poll, dev);
	run("provider_swallow", test_swallow, dev);
	run("provider_poll_ex", test_poll_ex, dev);
	run("provider_resize", test_resize, dev);
	return !!failures;
}
