// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of /dev/shift with arbitrary words, for two CQs, two QPs and an SRQ of a device of rxe or
 * of mlx5, with arbitrary memory of the process behind the addresses.  What is registered is looked
 * at as a failover does.  In the end nothing may be pinned, charged, allocated or locked.
 */
#include <stdlib.h>
#include <stdio.h>
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/srq.h"
#include "ctl/ctl.h"
#include "fuzz.h"
#include "provider/provider.h"
#include "provider/rxe/wqe.h"
#include "pure/wr.h"
#include "stubs.h"

#define CALLS	48
#define HEAD	384u		/* bytes of struct rxe_queue_buf */
#define CQS	2
#define QPS	2
#define SRQ	9		/* its handle; those of the others follow 1 and 5 */

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static const u8 *input, *input_end;
static bool tidy;		/* all that is registered is right */
static u32 odds;		/* of 256: how often memory is short */
bool fuzz_unlimited;
static struct mm_struct mm;
static struct shift_dev sdev;
static struct ib_device ibdev;
static struct ib_cq cq[CQS];
static struct ib_qp qp[QPS];
static struct shift_cq scq[CQS];
static struct shift_qp sqp[QPS];
static struct shift_srq ssrq;
static struct file file;
static unsigned long long registrations, accepted;

u8 fuzz_byte(void)
{
	return input < input_end ? *input++ : 0;
}

u32 fuzz_word(void)
{
	return fuzz_byte() | fuzz_byte() << 8 | fuzz_byte() << 16 | (u32)fuzz_byte() << 24;
}

bool fuzz_refuses(void)
{
	return odds && !tidy && fuzz_byte() < odds;
}

/* An address that may be right: small steps from a page. */
static u64 address(void)
{
	u8 how = fuzz_byte();

	if (tidy)
		return USER_FIRST + how % 4 * PAGE_SIZE;
	if (how == 0xff)
		return (u64)fuzz_word() << 32 | fuzz_word();
	return USER_FIRST + (how % (USER_PAGES + 2)) * PAGE_SIZE + (how & 0x40 ? fuzz_byte() * 4 : 0);
}

static void object_init(struct shift_obj *obj, enum shift_obj_type type, u32 handle,
			struct list_head *list)
{
	obj->type = type;
	obj->handle = handle;
	obj->ufile = fuzz_ufile;
	obj->mm = &mm;
	list_add_tail(&obj->list, list);
}

static void device_begin(void)
{
	memset(&sdev, 0, sizeof(sdev));
	sdev.ibdev = &ibdev;
	sdev.provider = fuzz_byte() & 1 ? &shift_provider_mlx5 : &shift_provider_rxe;
	mutex_init(&sdev.list_lock);
	init_rwsem(&sdev.ring_sem);
	INIT_LIST_HEAD(&sdev.cqs);
	INIT_LIST_HEAD(&sdev.qps);
	INIT_LIST_HEAD(&sdev.srqs);
	fuzz_pair.sdev = &sdev;
}

static void objects_begin(void)
{
	u32 i;

	memset(scq, 0, sizeof(scq));
	memset(sqp, 0, sizeof(sqp));
	memset(&ssrq, 0, sizeof(ssrq));
	for (i = 0; i < CQS; i++) {
		memset(&cq[i], 0, sizeof(cq[i]));
		cq[i].cqe = (1u << fuzz_byte() % 8) - 1;
		kref_init(&scq[i].ref);
		spin_lock_init(&scq[i].lock);
		scq[i].sdev = &sdev;
		scq[i].cq = &cq[i];
		scq[i].cqe = cq[i].cqe;
		object_init(&scq[i].obj, SHIFT_OBJ_CQ, 1 + i, &sdev.cqs);
	}
	kref_init(&ssrq.ref);
	mutex_init(&ssrq.lock);
	spin_lock_init(&ssrq.post_lock);
	ssrq.sdev = &sdev;
	ssrq.ops = sdev.provider->srq;
	fuzz_srq_init(&ssrq);
	ssrq.max_wr = fuzz_byte() & 1 ? fuzz_byte() : (1u << fuzz_byte() % 8) - 1;
	ssrq.max_sge = fuzz_byte() % 33;
	object_init(&ssrq.obj, SHIFT_OBJ_SRQ, SRQ, &sdev.srqs);
	for (i = 0; i < QPS; i++) {
		kref_init(&sqp[i].ref);
		mutex_init(&sqp[i].lock);
		spin_lock_init(&sqp[i].ledger_lock);
		sqp[i].sdev = &sdev;
		sqp[i].qp = &qp[i];
		sqp[i].qpn = 17 + i;
		sqp[i].scq = &scq[0];
		sqp[i].rcq = &scq[fuzz_byte() & 1];
		sqp[i].srqm.ssrq = i && fuzz_byte() & 1 ? &ssrq : NULL;
		if (sqp[i].srqm.ssrq)
			list_add_tail(&sqp[i].srqm.node, &ssrq.members);
		sqp[i].app.asked_send = fuzz_byte();
		sqp[i].app.mtu = 1024;
		sqp[i].app.init.cap = (struct ib_qp_cap) {
			.max_send_wr = fuzz_byte(), .max_recv_wr = fuzz_byte(),
			.max_send_sge = fuzz_byte() % 33, .max_recv_sge = fuzz_byte() % 33,
			.max_inline_data = fuzz_byte() * 4,
		};
		sqp[i].fo.reason = SHIFT_REASON_NO_PROVIDER;
		object_init(&sqp[i].obj, SHIFT_OBJ_QP, 5 + i, &sdev.qps);
	}
}

/* What stays of objects until they are destroyed. */
static void objects_end(void)
{
	u32 i;

	for (i = 0; i < QPS; i++) {
		if (sqp[i].ref.n != 1)
			sim_fail("QP %u has %d references", i, sqp[i].ref.n);
		if (sqp[i].rings.priv)
			sqp[i].rings.provider->release(sqp[i].rings.priv);
		kvfree(sqp[i].rec.ledger.entry);
		kvfree(sqp[i].rec.ledger.raw);
		shift_recv_free(&sqp[i].rec.recvs);
	}
	for (i = 0; i < CQS; i++) {
		if (scq[i].ref.n != 1)
			sim_fail("CQ %u has %d references", i, scq[i].ref.n);
		kfree(scq[i].priv);
		vfree(scq[i].side);
	}
	if (ssrq.ref.n != 1)
		sim_fail("the SRQ has %d references", ssrq.ref.n);
	shift_srq_free_table(&ssrq);
}

/*
 * A ring for so many entries: mostly as the driver would make it, with rxe's head in the memory of
 * the process; or of any size, anywhere.
 */
static struct shift_abi_ring ring(u32 entries, u32 size)
{
	u32 slots = roundup_pow_of_two((u64)entries + 1);
	u32 log2 = order_base_2(size), mask = slots - 1;
	struct shift_abi_ring r = { .addr = address() };
	u8 how = fuzz_byte();

	if (tidy)
		how = 8;
	if (how >= 0xf0)
		r.addr = 0;
	if (sdev.provider == &shift_provider_mlx5) {
		r.len = how & 8 ? slots * size :
			how & 7 ? size << fuzz_byte() % 8 : fuzz_word();
		return r;
	}
	if (how & 7)
		r.addr &= PAGE_MASK;
	r.len = PAGE_ALIGN(HEAD + slots * size);
	if (how & 0x10)
		r.len = how & 0x20 ? fuzz_word() : (1 + fuzz_byte() % 8) * PAGE_SIZE;
	if (how & 0x40) {
		log2 = fuzz_byte() % 34;
		mask = (1u << fuzz_byte() % 8) - 1;
	}
	if (r.addr >= USER_FIRST && r.addr - USER_FIRST < USER_PAGES * PAGE_SIZE) {
		u8 *page = fuzz_user((r.addr - USER_FIRST) >> PAGE_SHIFT);

		memcpy(page, &log2, sizeof(log2));
		memcpy(page + 4, &mask, sizeof(mask));
	}
	return r;
}

/* Nearly right, and then some words of it are anything. */
static void spoil(void *reg, size_t size)
{
	u8 n = fuzz_byte();

	if (tidy || n < 0x80)
		return;
	for (n &= 3; n; n--)
		((u32 *)reg)[fuzz_byte() % (size / 4)] = fuzz_byte() & 1 ? fuzz_word() : fuzz_byte();
}

static long call(unsigned int cmd, const void *arg, size_t size)
{
	/* a piece of memory of that size, so that a step over its end is seen */
	void *user = malloc(size);
	long ret;

	memcpy(user, arg, size);
	cmd = (cmd & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT)) | size << _IOC_SIZESHIFT;
	ret = fuzz_fops.unlocked_ioctl(&file, cmd, (unsigned long)user);
	free(user);
	fuzz_locks_are_free();
	return ret;
}

/* Mostly of the size that it has, or else of any. */
static size_t size_of(size_t size)
{
	u8 other = fuzz_byte();

	return tidy || other < 0xf0 ? size : fuzz_byte();
}

static void count(long ret)
{
	registrations++;
	accepted += !ret;
}

static u32 provider(void)
{
	u8 other = fuzz_byte();

	return tidy || other < 0xf0 ? sdev.provider->id : other & 3;
}

static void register_cq(void)
{
	u32 i = fuzz_byte() % CQS;
	union { struct shift_abi_reg_cq reg; u8 room[256]; } u = { .reg = {
		.abi_version = SHIFT_ABI_VERSION, .provider = provider(), .cmd_fd = FUZZ_FD,
		.handle = 1 + i, .ring = ring(cq[i].cqe, 64), .flag_addr = address(),
	} };

	if (u.reg.provider == SHIFT_PROVIDER_MLX5) {
		u.reg.stride = 64 << (fuzz_byte() & 1);
		u.reg.db_addr = address();
	}
	spoil(&u.reg, sizeof(u.reg));
	count(call(SHIFT_IOC_REGISTER_CQ, &u, size_of(sizeof(u.reg))));
}

static void register_qp(void)
{
	u32 i = fuzz_byte() % QPS;
	const struct ib_qp_cap *cap = &sqp[i].app.init.cap;
	bool rxe = sdev.provider == &shift_provider_rxe;
	u32 send = rxe ? shift_rxe_slot_size(cap->max_send_sge, cap->max_inline_data) : 64;
	u32 recv = rxe ? shift_rxe_recv_slot_size(cap->max_recv_sge) : 16 << fuzz_byte() % 11;
	union { struct shift_abi_reg_qp reg; u8 room[256]; } u = { .reg = {
		.abi_version = SHIFT_ABI_VERSION, .provider = provider(), .cmd_fd = FUZZ_FD,
		.handle = 5 + i, .sq = ring(cap->max_send_wr, roundup_pow_of_two(send)),
		.rq = ring(cap->max_recv_wr, roundup_pow_of_two(recv)), .flag_addr = address(),
	} };

	if (u.reg.provider == SHIFT_PROVIDER_MLX5) {
		u.reg.db_addr = address();
		u.reg.rq_slot = recv;
		u.reg.create_flags = fuzz_byte() & 0xa;
		u.reg.anchor_addr = address();
		u.reg.sq_tail_addr = address();
		u.reg.sq_heads_addr = address();
		if (u.reg.rq.addr)
			u.reg.rq_tail_addr = address();
	} else {
		u.reg.sq_lock_addr = address();
		u.reg.rq_lock_addr = address();
		u.reg.lock_free = fuzz_byte();
	}
	spoil(&u.reg, sizeof(u.reg));
	count(call(SHIFT_IOC_REGISTER_QP, &u, size_of(sizeof(u.reg))));
}

static void register_srq(void)
{
	u32 size = roundup_pow_of_two(shift_rxe_recv_slot_size(ssrq.max_sge));
	union { struct shift_abi_reg_srq reg; u8 room[256]; } u = { .reg = {
		.abi_version = SHIFT_ABI_VERSION, .provider = provider(), .cmd_fd = FUZZ_FD,
		.handle = SRQ, .flag_addr = address(),
	} };

	if (u.reg.provider == SHIFT_PROVIDER_RXE) {
		u.reg.ring = ring(ssrq.max_wr, size);
	} else {
		u.reg.slot = roundup_pow_of_two(16 + 16 * max(ssrq.max_sge, 1u));
		u.reg.ring.addr = address();
		u.reg.ring.len = (ssrq.max_wr + 1) * u.reg.slot;
		u.reg.db_addr = address();
	}
	spoil(&u.reg, sizeof(u.reg));
	count(call(SHIFT_IOC_REGISTER_SRQ, &u, size_of(sizeof(u.reg))));
}

static void anything(void)
{
	u8 bytes[256], i, n = fuzz_byte();
	unsigned int cmd = _IOC(_IOC_READ | _IOC_WRITE, fuzz_byte() ? 0xf5 : fuzz_byte(), fuzz_byte() % 12, 0);

	for (i = 0; i < n; i++)
		bytes[i] = fuzz_byte();
	call(cmd, bytes, n);
}

/* All that takes an id. */
static void by_id(void)
{
	static const unsigned int cmds[] = { SHIFT_IOC_UNREGISTER, SHIFT_IOC_WAIT, SHIFT_IOC_KICK };
	struct shift_abi_id id = { .type = fuzz_byte() % 5, .id = fuzz_byte() % 8 };

	call(cmds[fuzz_byte() % ARRAY_SIZE(cmds)], &id, sizeof(id));
}

static void ask(void)
{
	struct shift_abi_cqe cqe = { fuzz_byte() % 8, 16 + fuzz_byte() % 4, fuzz_byte() };
	struct shift_abi_rebase base = { .id = fuzz_byte() % 8, .step = fuzz_byte() % 4 };
	struct shift_abi_query query = { fuzz_byte() % 12, fuzz_byte() & 1 };
	struct shift_abi_empty empty = { .id = fuzz_byte() % 8, .handed = fuzz_byte() & 1, .head = fuzz_byte() };

	call(SHIFT_IOC_EMPTY, &empty, sizeof(empty));
	call(SHIFT_IOC_CQE, &cqe, sizeof(cqe));
	call(SHIFT_IOC_REBASE, &base, sizeof(base));
	call(SHIFT_IOC_QUERY, &query, sizeof(query));
}

static void map(void)
{
	struct vm_area_struct vma = {
		.vm_start = 1ul << 30, .vm_pgoff = (unsigned long)fuzz_byte() % 8 << (24 - PAGE_SHIFT),
		.vm_flags = VM_SHARED,
	};

	if (fuzz_byte() >= 0xf0)
		vma.vm_pgoff = (u64)fuzz_word() << 32 | fuzz_word();
	vma.vm_end = vma.vm_start + (1 + fuzz_byte()) * PAGE_SIZE;
	fuzz_fops.mmap(&file, &vma);
	fuzz_locks_are_free();
}

/* The process writes: the indices of a ring of rxe's, or anything anywhere. */
static void scribble(void)
{
	u8 *page = fuzz_user(fuzz_byte()), n = fuzz_byte();
	u32 value, at;

	if (n & 1) {
		page[HEAD / 3] = fuzz_byte();
		page[HEAD / 3 * 2] = fuzz_byte();
	}
	for (n >>= 4; n; n--) {
		at = (fuzz_byte() | fuzz_byte() << 8) % (PAGE_SIZE - 3);
		value = fuzz_word();
		memcpy(page + at, &value, sizeof(value));
	}
}

static void see(void *arg, u64 wr_id, u32 status, u32 qpn)
{
}

/* Into the ledger, valid or not, as when the QP is away. */
static void take_in(struct shift_qp *q)
{
	const struct shift_provider *provider = q->rings.provider;
	struct shift_ledger *l = &q->rec.ledger;
	struct shift_wr wr;
	int got;

	while (shift_ledger_count(l) < l->slots - 1 && (got = provider->take(q, &wr))) {
		if (got < 0)
			shift_ledger_append(l, 0, 0);
		if (got < 0 || shift_replay_enter(q, &wr))
			continue;
		if (provider->decode(q, l->head - 1, &wr))
			sim_fail("what was taken in cannot be decoded");
	}
}

/*
 * The first slot, and receives that were posted.  mlx5 may refuse them for what is in them, not for
 * the ring that they are in.
 */
static void take_in_recvs(struct shift_qp *q)
{
	const struct shift_provider *provider = q->rings.provider;
	u32 i, n = max(min(provider->recvs_posted(q), q->rec.recvs.slots), 1u);
	struct shift_wr wr;
	int err;

	for (i = 0; i < n; i++) {
		shift_recv_copy(q, i);
		err = provider->decode_recv(q, i, &wr);
		if (err == -EINVAL && provider == &shift_provider_mlx5)
			sim_fail("a ring with slots of %u bytes was registered",
				 q->rec.recvs.slot_size);
	}
}

/* As what a failover looks at first. */
static void look(void)
{
	struct shift_qp *q = &sqp[fuzz_byte() % QPS];
	struct shift_cq *c = &scq[fuzz_byte() % CQS];
	const struct shift_provider *provider = q->rings.provider;
	u32 done;

	if (c->registered && provider && provider->srq->unpolled) {
		down_read(&sdev.ring_sem);
		provider->srq->unpolled(c, see, NULL);
		up_read(&sdev.ring_sem);
	}
	if (c->registered && provider && provider->cq && provider->cq->armed) {
		spin_lock_bh(&c->lock);
		provider->cq->armed(c, fuzz_byte() & 1);
		spin_unlock_bh(&c->lock);
		provider->cq->sleeps(c);
	}
	if (ssrq.rings.registered && sdev.provider->srq->posted)
		fuzz_lend(&ssrq);
	if (!q->rings.registered)
		return;
	mutex_lock(&q->lock);
	spin_lock_bh(&q->ledger_lock);
	provider->send_slots(q);
	if (provider == &shift_provider_rxe) {
		provider->movable(q);
		provider->once(q);
		provider->still(q, &done);
	} else {
		provider->keeps(q);
		provider->cause(q);
	}
	if (q->rec.recvs.slots)
		take_in_recvs(q);
	if (fuzz_byte() & 1)
		take_in(q);
	spin_unlock_bh(&q->ledger_lock);
	mutex_unlock(&q->lock);
}

/* An SRQ leaves its ring, whatever the process has written where that is looked at. */
static void leave(void)
{
	struct shift_cq *c = &scq[fuzz_byte() % CQS];

	if (!ssrq.rings.registered)
		return;
	fuzz_write_table(&ssrq);
	if (c->registered && c->provider == &shift_provider_mlx5)
		fuzz_complete(c, 17 + fuzz_byte() % QPS);
	if (fuzz_byte() & 1)
		fuzz_take_over(&ssrq, scq);
}

static void reopen(void)
{
	u32 was = odds;

	fuzz_fops.release(NULL, &file);
	fuzz_locks_are_free();
	if (fuzz_pins || mm.pinned_vm.counter)
		sim_fail("%ld pages are pinned and %ld charged", fuzz_pins, mm.pinned_vm.counter);
	odds = 0;
	fuzz_fops.open(NULL, &file);
	odds = was;
}

static void step(void)
{
	static void (*const steps[])(void) = {
		register_cq, register_cq, register_qp, register_qp, register_qp, register_srq,
		anything, by_id, ask, map, scribble, scribble, scribble, look, look, leave, leave,
		leave, reopen,
	};

	steps[fuzz_byte() % ARRAY_SIZE(steps)]();
}

static void tell(void)
{
	fprintf(stderr, "%llu registrations, of which %llu were accepted\n", registrations,
		accepted);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static bool begun;
	u32 i;

	if (!begun) {
		shift_chardev_init();
		atexit(tell);
		begun = true;
	}
	input = data;
	input_end = data + size;
	odds = 0;
	fuzz_ufile = &ibdev;
	sim_task.mm = &mm;
	fuzz_user_reset();
	device_begin();
	objects_begin();
	fuzz_fops.open(NULL, &file);
	i = fuzz_byte();
	odds = i & 1 ? 8 : 0;
	fuzz_unlimited = i & 2;
	tidy = i & 4;
	if (tidy) {
		register_cq();
		register_cq();
		register_srq();
		leave();
		leave();
	}
	tidy = false;
	for (i = 0; i < CALLS && input < input_end; i++)
		step();
	odds = 0;
	reopen();
	fuzz_fops.release(NULL, &file);
	objects_end();
	if (fuzz_memory)
		sim_fail("%ld pieces of memory are left", fuzz_memory);
	return 0;
}
