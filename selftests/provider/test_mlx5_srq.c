// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receives of an SRQ of the patched libmlx5: their entries in the kernel's table, here and away. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include "test_mlx5.h"

#define WQES	8
#define SRQN	0x456
#define NO_WQE	0xffff

static uint8_t wqes[WQES << SLOT_SHIFT] __attribute__((aligned(64)));
static uint8_t kept[sizeof(wqes)];
static struct mlx5_srq shared;
static __be32 db;

static void (*free_srq)(struct mlx5_srq *);
static void (*leave_srq)(struct mlx5_srq *);

/* The QP of the other tests, on an SRQ */
static void srq_setup(void)
{
	static struct mlx5_srq *by_number[MLX5_SRQ_TABLE_MASK + 1];
	void (*register_srq)(struct mlx5_srq *) = golden_function("mlx5_shift_register_srq");
	int i;

	free_srq = golden_function("mlx5_shift_free_srq");
	leave_srq = golden_function("mlx5_shift_leave_srq");
	setup(64);
	memset(&shared, 0, sizeof(shared));
	memset(wqes, 0, sizeof(wqes));
	db = 0;
	shared.vsrq.srq.context = &golden_ctx.ibv_ctx.context;
	shared.vsrq.srq.handle = 9;
	mlx5_spinlock_init(&shared.lock, 1);
	mlx5_buf_addr(&shared.buf) = wqes;
	shared.wrid = calloc(WQES, sizeof(*shared.wrid));
	shared.free_wqe_bitmap = calloc(1, sizeof(*shared.free_wqe_bitmap));
	shared.max = WQES;
	shared.nwqes = WQES;
	shared.tail = WQES - 1;
	shared.wqe_shift = SLOT_SHIFT;
	shared.max_gs = SLOT_SGE - 1;
	shared.srqn = SRQN;
	shared.db = &db;
	for (i = 0; i < WQES - 1; i++)
		((struct mlx5_wqe_srq_next_seg *)(wqes + (i << SLOT_SHIFT)))->next_wqe_index =
			htobe16(i + 1);
	golden_ctx.srq_table[SRQN >> MLX5_SRQ_TABLE_SHIFT].refcnt = 1;
	golden_ctx.srq_table[SRQN >> MLX5_SRQ_TABLE_SHIFT].table = by_number;
	by_number[SRQN & MLX5_SRQ_TABLE_MASK] = &shared;
	golden_qp.ibv_qp->srq = &shared.vsrq.srq;
	golden_qp.rq.wqe_cnt = 0;
	kern.srq_entries = 2 * WQES;
	register_srq(&shared);
	register_qp(&golden_qp);
}

static void srq_teardown(void)
{
	clean_cq(&test_cq, golden_qp.rsc.rsn, &shared);
	golden_qp.ibv_qp->srq = NULL;
	teardown();
	free_srq(&shared);
	free(shared.wrid);
	free(shared.free_wqe_bitmap);
}

static int post_shared(uint64_t wr_id)
{
	struct ibv_sge sge[2] = { { .addr = wr_id << 12, .length = 64, .lkey = 5 },
				  { .addr = wr_id << 13, .length = 32, .lkey = 6 } };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = 2 };

	return ibv_post_srq_recv(&shared.vsrq.srq, &wr, &bad);
}

static struct shift_abi_srq_entry *entry(uint32_t i)
{
	return (void *)((char *)kern.table + kern.srq.entry_offset + i * kern.srq.entry_size);
}

/* the number of the entry of the receive that was posted last */
static uint32_t newest(void)
{
	return kern.table->order[(kern.table->posted - 1) % kern.srq.entries] &
	       SHIFT_RECV_ID_INDEX;
}

static int in_use(void)
{
	uint32_t i;
	int n = 0;

	for (i = 0; i < kern.srq.entries; i++)
		n += !!entry(i)->recv_id;
	return n;
}

static void device_recv(uint16_t index, uint8_t syndrome)
{
	struct shift_abi_wc wc = { .wr_id = index, .status = !!syndrome, .byte_len = 3 };

	device_put(&wc, syndrome ? MLX5_CQE_RESP_ERR : MLX5_CQE_RESP_SEND, syndrome);
	if (!v1)
		last_cqe()->srqn_uidx = htobe32(SRQN);
}

static uint16_t names(void)
{
	return be16toh(last_cqe()->wqe_counter);
}

static void side_recv(uint32_t recv_id)
{
	struct shift_abi_wc wc = {
		.wr_id = (uint64_t)kern.srq.key << 32 | recv_id, .opcode = IBV_WC_RECV,
		.byte_len = 7, .qp_num = QPN,
	};

	kern_put(&wc);
	kern_raise();
}

static void away(void)
{
	*(volatile uint32_t *)(uintptr_t)kern.srq.flag_addr = SHIFT_SRQ_FLAG_AWAY;
}

static uint64_t polled(void)
{
	struct ibv_wc wc = {};

	return poll_wc(&wc, 1) == 1 && !wc.status && wc.opcode == IBV_WC_RECV ? wc.wr_id : 0;
}

/* At home an entry has the number of its WQE, from the post until the completion is polled */
void test_srq_home(void)
{
	uint32_t recv_id, last[WQES] = {};
	int i;

	srq_setup();
	CHECK(kern.srq_regs == 1 && kern.srq.provider == SHIFT_PROVIDER_MLX5);
	CHECK(kern.srq.handle == 9 && kern.srq.ring.addr == (uintptr_t)wqes);
	CHECK(kern.srq.ring.len == sizeof(wqes) && kern.srq.slot == 1u << SLOT_SHIFT);
	CHECK(kern.srq.db_addr == (uintptr_t)&db);
	CHECK(kern.srq.flag_addr == (uintptr_t)&shared.shift_flag);
	CHECK(kern.qp_regs == 2 && !kern.qp.rq.addr && !kern.qp.rq_tail_addr);
	CHECK(!(kern.qp.create_flags & SHIFT_QP_CREATE_REBASE));

	for (i = 1; i <= 5 * WQES; i++) {
		CHECK(!post_shared(i));
		recv_id = entry(newest())->recv_id;
		CHECK(kern.table->posted == (uint64_t)i && entry(newest())->seq == (uint64_t)i - 1);
		CHECK(newest() < WQES && recv_id >> SHIFT_RECV_ID_GENERATION);
		CHECK((recv_id & SHIFT_RECV_ID_INDEX) == newest() && last[newest()] != recv_id);
		CHECK(entry(newest())->num_sge == 2 && entry(newest())->sge[1].lkey == 6 &&
		      entry(newest())->sge[0].addr == (uint64_t)i << 12);
		last[newest()] = recv_id;
		CHECK(be32toh(db) == (uint32_t)i && in_use() == 1);
		device_recv(newest(), 0);
		CHECK(names() == newest());
		if (i & 1) {
			CHECK(polled() == (uint64_t)i);
		} else {
			CHECK(!start_poll() && ex()->wr_id == (uint64_t)i);
			ibv_end_poll(ex());
		}
		/* the kernel may still take it for one that was not polled */
		CHECK(!in_use() && names() == NO_WQE);
	}
	CHECK(!kern.srq_kicks && !kern.cqes);
	srq_teardown();
	CHECK(kern.srq_unregs == 1);
}

/* What is completed in no order goes back to the ring as ever; a full one is full */
void test_srq_order(void)
{
	uint16_t at[WQES];
	int i;

	srq_setup();
	for (i = 0; i < WQES; i++) {
		CHECK(!post_shared(100 + i) || i == WQES - 1);
		at[i] = newest();
	}
	CHECK(in_use() == WQES - 1 && post_shared(1) == ENOMEM && in_use() == WQES - 1);
	device_recv(at[4], 0);
	device_recv(at[1], 0);
	CHECK(polled() == 104 && polled() == 101 && in_use() == WQES - 3);
	CHECK(!post_shared(200) && !entry(at[0])->seq && in_use() == WQES - 2);
	srq_teardown();
}

/* The receive of an error that is kept back stays in use, polled or dropped */
void test_srq_errors(void)
{
	struct ibv_wc wc;

	srq_setup();
	CHECK(!post_shared(1) && !post_shared(2) && !post_shared(3) && !post_shared(4));
	kern.answer = SHIFT_CQE_SWALLOW;
	device_recv(0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	CHECK(!poll_wc(&wc, 1) && kern.cqes == 1 && in_use() == 4 && names() == 0);
	kern.answer = SHIFT_CQE_DELIVER;
	device_recv(1, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
	CHECK(poll_wc(&wc, 1) == 1 && wc.wr_id == 2 && wc.status == IBV_WC_LOC_LEN_ERR);
	CHECK(in_use() == 3 && names() == NO_WQE);
	away();
	device_recv(2, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	device_recv(3, 0);
	clean_cq(&test_cq, golden_qp.rsc.rsn, &shared);
	CHECK(in_use() == 2 && entry(0)->recv_id && entry(2)->recv_id);
	CHECK(!poll_wc(&wc, 1));
	srq_teardown();
}

/* Away: posts go to the table only, into any free entry; the ring stays as it is */
void test_srq_away(void)
{
	uint32_t first, i, n;
	struct ibv_wc wc;

	srq_setup();
	CHECK(!post_shared(1) && !post_shared(2));
	first = entry(0)->recv_id;
	memcpy(kept, wqes, sizeof(wqes));
	away();
	CHECK(!post_shared(3) && kern.srq_kicks == 1 && newest() >= WQES && in_use() == 3);
	CHECK(entry(newest())->sge[0].addr == 3ULL << 12);

	/* from the pool; then the same once more, which is of nothing */
	side_recv(first);
	CHECK(poll_wc(&wc, 1) == 1 && wc.wr_id == 1 && wc.byte_len == 7 && wc.qp_num == QPN);
	CHECK(wc.opcode == IBV_WC_RECV && in_use() == 2);
	side_recv(first);
	CHECK(!poll_wc(&wc, 1));
	/* its entry is used again, by another receive */
	CHECK(!post_shared(4) && newest() == 0 && entry(0)->recv_id != first);
	side_recv(first);
	CHECK(!poll_wc(&wc, 1) && in_use() == 3);
	side_recv(entry(0)->recv_id);
	CHECK(!start_poll() && ex()->wr_id == 4 && ibv_wc_read_byte_len(ex()) == 7);
	ibv_end_poll(ex());
	/* one that the device had completed before */
	device_recv(1, 0);
	CHECK(polled() == 2 && in_use() == 1);

	for (n = in_use(), i = 0; n < 2 * WQES - 6; n++, i++)
		CHECK(!post_shared(20 + i));
	while (!post_shared(50))
		n++;
	CHECK(post_shared(60) == ENOMEM && (uint32_t)in_use() == n && n >= WQES);
	/* of a QP that is reset: dropped, and free */
	side_recv(entry(newest())->recv_id);
	clean_cq(&test_cq, golden_qp.rsc.rsn, &shared);
	CHECK((uint32_t)in_use() == n - 1 && !post_shared(61));
	CHECK(be32toh(db) == 2 && !memcmp(kept, wqes, sizeof(wqes)));
	srq_teardown();
}

/* Its ring is exported: the kernel is told, unless the receives are elsewhere */
void test_srq_export(void)
{
	srq_setup();
	leave_srq(&shared);
	CHECK(kern.srq_unregs == 1);
	CHECK(!post_shared(1) && !kern.table->posted && be32toh(db) == 1);
	device_recv(0, 0);
	CHECK(polled() == 1);
	srq_teardown();

	srq_setup();
	away();
	leave_srq(&shared);
	CHECK(!kern.srq_unregs && !post_shared(1) && kern.srq_kicks == 1);
	srq_teardown();

	/* not registered: as stock */
	srq_setup();
	free_srq(&shared);
	shared.shift_ids = NULL;
	CHECK(!post_shared(1) && be32toh(db) == 1 && !kern.srq_kicks);
	device_recv(0, 0);
	CHECK(polled() == 1 && names() == 0);
	srq_teardown();
}

/* The kernel has posted a receive in a WQE */
static void lend(uint16_t wqe, uint32_t recv_id)
{
	uint32_t *ids = (void *)((char *)kern.table + kern.srq.wqe_offset);

	ids[wqe] = recv_id;
}

/* What the QP receives while it empties the ring is polled, or not, and shown in no case */
static int takes_all(void)
{
	struct ibv_wc wc;

	CHECK(kern.empty.id == QP_ID && kern.empty.handed == 1);
	CHECK(kern.empty.head == 3 && kern.empty.counter == 3);
	CHECK(cq_flag() == SHIFT_CQ_FLAG_SIDE);
	device_recv(kern.empties == 1 ? 0 : 1, 0);
	if (kern.empties == 1) {
		CHECK(!poll_wc(&wc, 1) && start_poll() == ENOENT);
		device_recv(2, 0);
		return EAGAIN;
	}
	CHECK(!poll_wc(&wc, 1));
	return 0;
}

static int refuses(void)
{
	return EBUSY;
}

/* A ring is emptied, and the kernel posts in it: its WQEs have any receive */
void test_srq_empty(void)
{
	bool (*empty)(struct mlx5_qp *) = golden_function("mlx5_shift_empty");
	uint32_t third, fourth;
	struct ibv_wc wc;

	srq_setup();
	CHECK(!post_shared(1) && !post_shared(2) && !post_shared(3));
	third = entry(newest())->recv_id;
	away();
	CHECK(!post_shared(4));
	fourth = entry(newest())->recv_id;
	kern.empties = 0;
	kern.empty_ring = takes_all;
	CHECK(empty(&golden_qp) && kern.empties == 2);
	CHECK(!poll_wc(&wc, 1) && in_use() == 4 && !cq_flag());

	lend(3, fourth);
	device_recv(3, 0);
	CHECK(polled() == 4 && in_use() == 3 && !entry(fourth & SHIFT_RECV_ID_INDEX)->recv_id);
	CHECK(names() == NO_WQE);
	/* a side ring's names an entry, also one whose WQE was lent to another receive */
	lend(2, fourth);
	side_recv(third);
	CHECK(polled() == 3 && in_use() == 2);
	lend(0, entry(1)->recv_id);
	device_recv(0, 0);
	CHECK(!start_poll() && ex()->wr_id == 2 && in_use() == 1);
	ibv_end_poll(ex());

	kern.empty_ring = refuses;
	CHECK(!empty(&golden_qp) && kern.empties == 3);
	kern.empty_ring = NULL;
	/* another thread is between start and end of a poll, for ever */
	mlx5_spin_lock(&test_cq.lock);
	CHECK(!empty(&golden_qp) && kern.empties == 3);
	mlx5_spin_unlock(&test_cq.lock);
	srq_teardown();
}
