// SPDX-License-Identifier: GPL-2.0
/* The cases of abi_abuse, from the header's words to the object's end. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abuse.h"

#define KERNEL_ADDRESS	0xffff888000001000ULL

static void *unmapped(void)
{
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p, 8192);
	return p;
}

static void abuse_query(int fd)
{
	struct shift_abi_query q = { .abi_version = SHIFT_ABI_VERSION };

	allowed(fd, SHIFT_IOC_QUERY, &q, "QUERY");
	q.abi_version = SHIFT_ABI_VERSION + 1;
	refused(fd, SHIFT_IOC_QUERY, &q, EPROTONOSUPPORT, "QUERY newer version");
	q.abi_version = 0;
	refused(fd, SHIFT_IOC_QUERY, &q, EPROTONOSUPPORT, "QUERY version 0");
	report(q.abi_version == SHIFT_ABI_VERSION, "QUERY says which version there is");
	q.reserved = 1;
	refused(fd, SHIFT_IOC_QUERY, &q, 0, "QUERY with reserved bits");
	refused(fd, SHIFT_IOC_QUERY, NULL, EFAULT, "QUERY without memory");
	refused(fd, SHIFT_IOC_QUERY, (void *)KERNEL_ADDRESS, EFAULT,
		"QUERY into kernel memory");
}

static void abuse_numbers(int fd)
{
	uint8_t buf[512] = { 0 };
	unsigned int nr;

	for (nr = 8; nr < 256; nr += 25) {
		refused(fd, _IOWR(0xf5, nr, struct shift_abi_reg_qp), buf, 0,
			"unknown number");
		refused(fd, _IO(0xf5, nr), NULL, 0, "unknown number, no size");
	}
	refused(fd, 0x5401, buf, 0, "TCGETS");
	refused(fd, _IOWR(0xf5, 2, struct shift_abi_id), buf, 0,
		"REGISTER_QP of another size");
	refused(fd, _IOC(_IOC_READ | _IOC_WRITE, 0xf4, 0, sizeof(struct shift_abi_query)), buf,
		ENOTTY, "QUERY of another device");
}

/* A structure that has grown: what is unknown here has to be 0, and is not written. */
static void abuse_sizes(int fd)
{
	struct { struct shift_abi_query q; uint32_t more[2]; } big = {
		.q.abi_version = SHIFT_ABI_VERSION,
	};
	const unsigned long cmd = _IOWR(0xf5, 0, typeof(big));

	allowed(fd, cmd, &big, "QUERY that has grown");
	big.more[1] = 1;
	refused(fd, cmd, &big, E2BIG, "QUERY that wants something unknown");
	big.more[1] = 0;
	big.q.abi_version = 0;
	refused(fd, _IOWR(0xf5, 0, uint8_t), &big, EPROTONOSUPPORT, "QUERY that is cut off");
	report(big.q.abi_version == SHIFT_ABI_VERSION, "no more is written than has room");
	memset(&big, 0xff, sizeof(big));
	big.q.abi_version = 0;
	refused(fd, _IOC(_IOC_READ, 0xf5, 0, 0), &big, EPROTONOSUPPORT, "QUERY without a size");
	report(!big.q.abi_version, "nothing is written without room");
}

/* A field of a valid CQ registration is replaced. */
#define CQ_WITH(field, value, what) do {				\
	struct shift_abi_reg_cq r = valid_cq(v);			\
	r.field = (value);						\
	refused(fd, SHIFT_IOC_REGISTER_CQ, &r, 0, "CQ: " what);		\
} while (0)

#define QP_WITH(field, value, what) do {				\
	struct shift_abi_reg_qp r = valid_qp(v);			\
	r.field = (value);						\
	refused(fd, SHIFT_IOC_REGISTER_QP, &r, 0, "QP: " what);		\
} while (0)

#define SRQ_WITH(field, value, what) do {				\
	struct shift_abi_reg_srq r = valid_srq(v);			\
	r.field = (value);						\
	refused(fd, SHIFT_IOC_REGISTER_SRQ, &r, 0, "SRQ: " what);	\
} while (0)

static void abuse_descriptors(int fd, const struct victim *v)
{
	int null = open("/dev/null", O_RDWR), pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		exit(2);
	CQ_WITH(cmd_fd, -1, "descriptor -1");
	CQ_WITH(cmd_fd, 1000000, "descriptor that is not open");
	CQ_WITH(cmd_fd, null, "descriptor of /dev/null");
	CQ_WITH(cmd_fd, pair[0], "descriptor of a socket");
	CQ_WITH(cmd_fd, fd, "descriptor of /dev/shift");
	CQ_WITH(cmd_fd, v->context->async_fd, "descriptor of async events");
	CQ_WITH(cmd_fd, v->channel->fd, "descriptor of a channel");
	QP_WITH(cmd_fd, -1, "descriptor -1");
	QP_WITH(cmd_fd, null, "descriptor of /dev/null");
	QP_WITH(cmd_fd, pair[1], "descriptor of a socket");
	QP_WITH(cmd_fd, v->context->async_fd, "descriptor of async events");
	close(null);
	close(pair[0]);
	close(pair[1]);
}

static void abuse_words(int fd, const struct victim *v)
{
	void *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t hole = (uintptr_t)unmapped();

	CQ_WITH(abi_version, SHIFT_ABI_VERSION + 1, "newer version");
	CQ_WITH(provider, 0, "no provider");
	CQ_WITH(provider, 77, "unknown provider");
	CQ_WITH(provider, SHIFT_PROVIDER_MLX5, "another device's provider");
	CQ_WITH(stride, 64, "stride of another provider");
	CQ_WITH(reserved, 1, "reserved bits");
	CQ_WITH(db_addr, (uintptr_t)v->words, "doorbell of another provider");
	CQ_WITH(handle, 0xffffffff, "handle that cannot be");
	CQ_WITH(handle, v->qp->handle, "handle of a QP");
	CQ_WITH(handle, v->pd->handle, "handle of a PD");
	CQ_WITH(flag_addr, 0, "flag word at 0");
	CQ_WITH(flag_addr, (uintptr_t)v->words + 2, "flag word unaligned");
	CQ_WITH(flag_addr, KERNEL_ADDRESS, "flag word in the kernel");
	CQ_WITH(flag_addr, hole, "flag word unmapped");
	CQ_WITH(flag_addr, (uintptr_t)ro, "flag word in read-only memory");
	QP_WITH(abi_version, 0, "version 0");
	QP_WITH(provider, 77, "unknown provider");
	QP_WITH(provider, SHIFT_PROVIDER_MLX5, "another device's provider");
	QP_WITH(db_addr, (uintptr_t)v->words, "doorbell of another provider");
	QP_WITH(rq_slot, 64, "slots of another provider");
	QP_WITH(create_flags, SHIFT_QP_CREATE_SIGNATURE, "flags of another provider");
	QP_WITH(anchor_addr, (uintptr_t)v->words, "anchor of another provider");
	QP_WITH(sq_tail_addr, (uintptr_t)v->words, "tail of another provider");
	QP_WITH(sq_heads_addr, (uintptr_t)v->words, "numbers of another provider");
	QP_WITH(rq_tail_addr, (uintptr_t)v->words, "receive tail of another provider");
	QP_WITH(handle, 0xffffffff, "handle that cannot be");
	QP_WITH(handle, v->cq->handle, "handle of a CQ");
	QP_WITH(flag_addr, 0, "flag word at 0");
	QP_WITH(flag_addr, KERNEL_ADDRESS, "flag word in the kernel");
	QP_WITH(flag_addr, hole, "flag word unmapped");
	QP_WITH(flag_addr, (uintptr_t)v->words + 1, "flag word unaligned");
	QP_WITH(sq_lock_addr, 0, "lock word at 0");
	QP_WITH(sq_lock_addr, hole, "lock word unmapped");
	QP_WITH(sq_lock_addr, (uintptr_t)v->words + 3, "lock word unaligned");
	QP_WITH(rq_lock_addr, KERNEL_ADDRESS, "lock word in the kernel");
	munmap(ro, 4096);
}

static void abuse_rings(int fd, const struct victim *v)
{
	uint64_t hole = (uintptr_t)unmapped();

	CQ_WITH(ring.addr, 0, "ring at 0");
	CQ_WITH(ring.addr, v->cq_ring.addr + 8, "ring unaligned");
	CQ_WITH(ring.addr, KERNEL_ADDRESS, "ring in the kernel");
	CQ_WITH(ring.addr, hole, "ring unmapped");
	CQ_WITH(ring.addr, ~0xfffULL, "ring at the end of the address space");
	CQ_WITH(ring.len, 0, "ring of no length");
	CQ_WITH(ring.len, 0xffffffff, "ring of 4 GiB");
	CQ_WITH(ring.len, 0xfffff000, "ring of nearly 4 GiB");
	CQ_WITH(ring.len, v->cq_ring.len + (64u << 20), "ring beyond its mapping");
	CQ_WITH(ring.reserved, 1, "ring with reserved bits");
	QP_WITH(sq.addr, 0, "no send ring");
	QP_WITH(sq.addr, v->sq.addr + 4, "send ring unaligned");
	QP_WITH(sq.addr, KERNEL_ADDRESS, "send ring in the kernel");
	QP_WITH(sq.addr, hole, "send ring unmapped");
	QP_WITH(sq.len, 0, "send ring of no length");
	QP_WITH(sq.len, 0xffffffff, "send ring of 4 GiB");
	QP_WITH(rq.addr, hole, "receive ring unmapped");
	QP_WITH(rq.len, 0xfffff000, "receive ring of nearly 4 GiB");
	QP_WITH(rq.reserved, 3, "receive ring with reserved bits");
}

/*
 * Memory of the process' own whose header says what rxe's would.  Rings as large as that are rings
 * of other objects.
 */
static void abuse_large(int fd, const struct victim *v)
{
	const uint32_t log2_size = 8, slots = 1u << 16;
	const size_t len = 4096 + ((size_t)slots << log2_size);
	uint32_t *header = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);
	struct shift_abi_ring large = { .addr = (uintptr_t)header, .len = len };
	struct shift_abi_reg_cq cq = valid_cq(v);
	struct shift_abi_reg_qp qp = valid_qp(v);
	struct shift_abi_reg_srq srq = valid_srq(v);

	if (header == MAP_FAILED)
		exit(2);
	header[0] = log2_size;
	header[1] = slots - 1;
	cq.ring = large;
	refused(fd, SHIFT_IOC_REGISTER_CQ, &cq, EINVAL, "CQ: ring of a larger one");
	srq.ring = large;
	refused(fd, SHIFT_IOC_REGISTER_SRQ, &srq, EINVAL, "SRQ: ring of a larger one");
	qp.sq = large;
	refused(fd, SHIFT_IOC_REGISTER_QP, &qp, EINVAL, "QP: ring of a larger send queue");
	qp = valid_qp(v);
	qp.rq = large;
	refused(fd, SHIFT_IOC_REGISTER_QP, &qp, EINVAL, "QP: ring of a larger receive queue");
	munmap(header, len);
}

static void abuse_ids(int fd)
{
	static const uint32_t ids[] = { 0, 1, 2, 77, 0x7fffffff, 0xffffffff };
	unsigned int i;

	for (i = 0; i < 6; i++) {
		struct shift_abi_id id = { SHIFT_ABI_QP, ids[i] };
		struct shift_abi_cqe cqe = { .cq_id = ids[i], .qp_num = 1,
					     .status = 12 };

		struct shift_abi_rebase base = { .id = ids[i], .step = i % 4 };

		refused(fd, SHIFT_IOC_REBASE, &base, 0, "REBASE of nothing");
		refused(fd, SHIFT_IOC_WAIT, &id, 0, "WAIT for nothing");
		refused(fd, SHIFT_IOC_UNREGISTER, &id, 0, "UNREGISTER nothing");
		id.type = SHIFT_ABI_CQ;
		refused(fd, SHIFT_IOC_WAIT, &id, 0, "WAIT for a CQ");
		id.type = 99;
		refused(fd, SHIFT_IOC_UNREGISTER, &id, 0, "UNREGISTER no type");
		refused(fd, SHIFT_IOC_CQE, &cqe, 0, "CQE of no CQ");
	}
}

static void abuse_srqs(int fd, const struct victim *v)
{
	struct shift_abi_id id = { SHIFT_ABI_SRQ, 77 };
	uint64_t hole = (uintptr_t)unmapped();

	SRQ_WITH(abi_version, 2, "version 2");
	SRQ_WITH(provider, 77, "unknown provider");
	SRQ_WITH(cmd_fd, -1, "descriptor -1");
	SRQ_WITH(handle, 0xffffffff, "handle that cannot be");
	SRQ_WITH(handle, v->cq->handle, "handle of a CQ");
	SRQ_WITH(flag_addr, 0, "flag word at 0");
	SRQ_WITH(flag_addr, (uintptr_t)v->words + 2, "flag word unaligned");
	SRQ_WITH(flag_addr, KERNEL_ADDRESS, "flag word in the kernel");
	SRQ_WITH(flag_addr, hole, "flag word unmapped");
	SRQ_WITH(ring.addr, 0, "no ring");
	SRQ_WITH(ring.addr, KERNEL_ADDRESS, "ring in the kernel");
	SRQ_WITH(ring.addr, hole, "ring unmapped");
	SRQ_WITH(ring.len, 0, "ring of no length");
	SRQ_WITH(ring.len, 0xfffff000, "ring of nearly 4 GiB");
	SRQ_WITH(ring.reserved, 1, "ring with reserved bits");
	refused(fd, SHIFT_IOC_KICK, &id, 0, "KICK of no SRQ");
	refused(fd, SHIFT_IOC_WAIT, &id, 0, "WAIT for an SRQ");
}

static void no_map(int fd, size_t len, int prot, uint64_t offset,
		   const char *what)
{
	void *p = mmap(NULL, len, prot, MAP_SHARED, fd, offset);

	report(p == MAP_FAILED, "mmap %s", what);
	if (p != MAP_FAILED)
		munmap(p, len);
}

static void abuse_maps(int fd, const struct shift_abi_reg_cq *cq)
{
	void *p;

	no_map(fd, 4096, PROT_READ | PROT_WRITE, cq->side_offset + (1ull << 30),
	       "at a wrong offset");
	no_map(fd, cq->side_len + (1u << 20), PROT_READ | PROT_WRITE,
	       cq->side_offset, "longer than the ring");
	no_map(fd, cq->side_len, PROT_READ | PROT_WRITE, 1ull << 52,
	       "far away");
	p = mmap(NULL, cq->side_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 cq->side_offset);
	report(p != MAP_FAILED, "mmap of the side ring");
	if (p == MAP_FAILED)
		return;
	/* The kernel must not believe what it reads there. */
	memset(p, 0xff, cq->side_len);
	munmap(p, cq->side_len);
}

/* A table that says anything, registered or not. */
static void abuse_table(int fd, const struct victim *v)
{
	struct shift_abi_reg_srq srq = valid_srq(v), again = srq;
	struct shift_abi_id id = { SHIFT_ABI_SRQ, 0 };
	void *p;

	allowed(fd, SHIFT_IOC_REGISTER_SRQ, &srq, "a valid SRQ");
	refused(fd, SHIFT_IOC_REGISTER_SRQ, &again, 0, "the same SRQ again");
	no_map(fd, srq.table_len + 4096, PROT_READ | PROT_WRITE, srq.table_offset,
	       "longer than the table");
	p = mmap(NULL, srq.table_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 srq.table_offset);
	report(p != MAP_FAILED, "mmap of the table");
	id.id = srq.id;
	if (p != MAP_FAILED)
		memset(p, 0xff, srq.table_len);
	allowed(fd, SHIFT_IOC_KICK, &id, "KICK with garbage in the table");
	allowed(fd, SHIFT_IOC_UNREGISTER, &id, "UNREGISTER of the SRQ");
	refused(fd, SHIFT_IOC_REGISTER_SRQ, &again, 0, "the SRQ once more");
	if (p != MAP_FAILED)
		munmap(p, srq.table_len);
}

/* What a child that inherited everything may do: nothing. */
static void abuse_child(int fd, const struct victim *v, const struct shift_abi_reg_cq *reg,
			uint32_t qp_id)
{
	const volatile char *side = mmap(NULL, reg->side_len, PROT_READ, MAP_SHARED, fd,
					 reg->side_offset);
	struct shift_abi_reg_cq cq = valid_cq(v);
	struct shift_abi_id id = { SHIFT_ABI_QP, qp_id };
	struct shift_abi_query q = { .abi_version = SHIFT_ABI_VERSION };
	int own, status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		failures = 0;
		/* as its provider does, which has looked for the driver's ring there, too */
		(void)*side;
		refused(fd, SHIFT_IOC_QUERY, &q, EPERM, "child: QUERY");
		refused(fd, SHIFT_IOC_WAIT, &id, EPERM, "child: WAIT");
		refused(fd, SHIFT_IOC_REBASE, &(struct shift_abi_rebase) { .id = qp_id }, EPERM,
			"child: REBASE");
		refused(fd, SHIFT_IOC_UNREGISTER, &id, EPERM, "child: UNREGISTER");
		refused(fd, SHIFT_IOC_REGISTER_CQ, &cq, EPERM, "child: REGISTER");
		own = open_shift();
		refused(own, SHIFT_IOC_REGISTER_CQ, &cq, 0,
			"child: the parent's CQ in a file of its own");
		refused(own, SHIFT_IOC_UNREGISTER, &id, 0,
			"child: the parent's id in a file of its own");
		exit(failures != 0);
	}
	report(waitpid(pid, &status, 0) == pid && !status, "child refused, and not ended");
	munmap((void *)side, reg->side_len);
}

static void garbage_header(uint64_t addr)
{
	uint32_t *header = (uint32_t *)(uintptr_t)addr;
	unsigned int i;

	/* log2_elem_size, index_mask, pads, producer, pads, consumer. */
	for (i = 0; i < 96; i++)
		header[i] = 0xdeadbeef + i * 0x01234567;
}

static void abuse_registered(const char *device, bool paired)
{
	struct victim v;
	struct shift_abi_reg_cq cq, again;
	struct shift_abi_reg_qp qp, qp_again;
	struct shift_abi_id id = { SHIFT_ABI_QP, 0 };
	int fd = open_shift(), other = open_shift();
	bool ok;

	victim_open(&v, device);
	cq = again = valid_cq(&v);
	qp = qp_again = valid_qp(&v);
	refused(fd, SHIFT_IOC_REGISTER_QP, &qp, 0, "QP before its CQ");
	if (!paired) {
		refused(fd, SHIFT_IOC_REGISTER_CQ, &cq, 0, "CQ without a pair");
		goto out;
	}
	allowed(fd, SHIFT_IOC_REGISTER_CQ, &cq, "a valid CQ");
	refused(fd, SHIFT_IOC_REGISTER_CQ, &again, 0, "the same CQ again");
	refused(other, SHIFT_IOC_REGISTER_CQ, &again, 0,
		"the same CQ in another file");
	abuse_maps(fd, &cq);
	abuse_table(fd, &v);
	ok = !ioctl(fd, SHIFT_IOC_REGISTER_QP, &qp);
	if (!ok) {
		/* Which mapping is the send ring is a guess: try the other. */
		struct shift_abi_ring ring = v.sq;

		v.sq = v.rq;
		v.rq = ring;
		qp = qp_again = valid_qp(&v);
		ok = !ioctl(fd, SHIFT_IOC_REGISTER_QP, &qp);
	}
	report(ok, "a valid QP: %s", ok ? "accepted" : strerror(errno));
	refused(fd, SHIFT_IOC_REGISTER_QP, &qp_again, 0, "the same QP again");
	id.id = qp.id;
	refused(other, SHIFT_IOC_UNREGISTER, &id, 0, "another file's id");
	abuse_child(fd, &v, &cq, qp.id);
	allowed(fd, SHIFT_IOC_WAIT, &id, "WAIT with the gate open");
	refused(fd, SHIFT_IOC_REBASE, &(struct shift_abi_rebase) { .id = qp.id }, EAGAIN,
		"REBASE of rxe's");
	refused(fd, SHIFT_IOC_REBASE, (void *)KERNEL_ADDRESS, EFAULT, "REBASE in the kernel");

	/* The rings go bad and the words away while the kernel has them. */
	garbage_header(v.sq.addr);
	garbage_header(v.cq_ring.addr);
	munmap(v.words, 4096);
out:
	close(fd);
	/* Destroyed only now: the file that knew them is closed. */
	ibv_destroy_qp(v.qp);
	ibv_destroy_srq(v.srq);
	ibv_destroy_cq(v.cq);
	close(other);
	report(true, "closed and destroyed with garbage in the rings");
}

/* The other order: the verbs objects go first, their ids stay. */
static void abuse_order(const char *device)
{
	struct shift_abi_id id = { SHIFT_ABI_QP, 0 };
	struct shift_abi_reg_cq cq;
	struct shift_abi_reg_qp qp;
	int fd = open_shift();
	struct victim v;

	victim_open(&v, device);
	cq = valid_cq(&v);
	qp = valid_qp(&v);
	if (!ioctl(fd, SHIFT_IOC_REGISTER_CQ, &cq) &&
	    !ioctl(fd, SHIFT_IOC_REGISTER_QP, &qp))
		id.id = qp.id;
	victim_close(&v);
	ioctl(fd, SHIFT_IOC_WAIT, &id);
	ioctl(fd, SHIFT_IOC_UNREGISTER, &id);
	id = (struct shift_abi_id) { SHIFT_ABI_CQ, cq.id };
	ioctl(fd, SHIFT_IOC_UNREGISTER, &id);
	report(true, "ids used after their objects were destroyed");
	close(fd);
}

/* What keeps a QP's shadow does not keep the backup device that its memory was mirrored on. */
static int outlive(const char *device)
{
	struct shift_abi_reg_cq cq;
	struct shift_abi_reg_qp qp;
	int fd = open_shift();
	struct victim v;
	struct ibv_mr *mr;

	victim_open(&v, device);
	cq = valid_cq(&v);
	qp = valid_qp(&v);
	mr = ibv_reg_mr(v.pd, v.words, 4096, IBV_ACCESS_LOCAL_WRITE);
	report(mr, "memory registered");
	allowed(fd, SHIFT_IOC_REGISTER_CQ, &cq, "a valid CQ");
	if (ioctl(fd, SHIFT_IOC_REGISTER_QP, &qp)) {
		qp.sq = v.rq;
		qp.rq = v.sq;
		allowed(fd, SHIFT_IOC_REGISTER_QP, &qp, "a valid QP");
	}
	if (mr && ibv_dereg_mr(mr))
		report(false, "ibv_dereg_mr: %s", strerror(errno));
	victim_close(&v);
	puts("closed");
	fflush(stdout);
	getchar();
	close(fd);
	printf("%d bad\n", failures);
	return failures != 0;
}

int main(int argc, char **argv)
{
	bool paired = argc > 1 && !strcmp(argv[1], "--paired");
	const char *device = argc > 2 ? argv[2] : "rxe0";
	unsigned int rounds = argc > 3 ? atoi(argv[3]) : 2000;
	struct victim v;
	int fd;

	if (argc > 1 && !strcmp(argv[1], "--outlive"))
		return outlive(device);
	fd = open_shift();
	victim_open(&v, device);
	abuse_query(fd);
	abuse_numbers(fd);
	abuse_sizes(fd);
	abuse_descriptors(fd, &v);
	abuse_words(fd, &v);
	abuse_rings(fd, &v);
	if (paired)
		abuse_large(fd, &v);
	abuse_srqs(fd, &v);
	abuse_ids(fd);
	close(fd);
	abuse_registered(device, paired);
	abuse_order(device);
	abuse_fuzz(&v, rounds, 1);
	abuse_fuzz(&v, rounds, 2);
	abuse_race(&v);
	victim_close(&v);
	printf("%d bad\n", failures);
	return failures != 0;
}
