// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A shared receive queue of the patched rxe provider and its table, at home and away. */
#include <errno.h>
#include <stdint.h>
#include "test_rxe.h"

static int post_srq(uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf + 1024, .length = 64, .lkey = mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static void post_to_self(uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .length = 64, .lkey = mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
	};

	CHECK(!ibv_post_send(qp, &wr, &bad));
	settle();
}

static struct shift_abi_srq_entry *entry(uint32_t recv_id)
{
	return (void *)((char *)kern.table + kern.srq.entry_offset +
			(recv_id & SHIFT_RECV_ID_INDEX) * SRQ_ENTRY_SIZE);
}

/* A message to itself: the completion of its receive */
static struct ibv_wc received(void)
{
	struct ibv_wc wc[4], got = { 0 };
	int i, n;

	post_to_self(1);
	n = ibv_poll_cq(cq, 4, wc);
	CHECK(n == 2);
	for (i = 0; i < n; i++) {
		if (wc[i].opcode & IBV_WC_RECV)
			got = wc[i];
		else
			CHECK(wc[i].wr_id == 1);
	}
	return got;
}

/* Receives have ids that nobody sees; away, the table is all there is */
void test_srq(struct ibv_device *dev)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 2 } };
	uint32_t recv_id, again;
	struct ibv_wc wc[4];
	int i;

	kern.srq_regs = kern.srq_unregs = kern.srq_kicks = 0;
	open_device(dev);
	srq = ibv_create_srq(pd, &attr);
	CHECK(srq && kern.srq_regs == 1 && kern.srq.handle == srq->handle);
	setup(0);
	CHECK(!kern.qp.rq.addr);

	CHECK(!post_srq(11));
	recv_id = kern.table->order[0];
	CHECK(kern.table->posted == 1 && entry(recv_id)->recv_id == recv_id &&
	      entry(recv_id)->seq == 0);
	CHECK(entry(recv_id)->wr_id == 11 && entry(recv_id)->num_sge == 1 &&
	      entry(recv_id)->sge[0].lkey == mr->lkey && entry(recv_id)->sge[0].length == 64);
	CHECK(received().wr_id == 11 && !entry(recv_id)->recv_id);
	CHECK(!post_srq(12));
	again = kern.table->order[1];
	CHECK(again != recv_id && entry(again)->recv_id == again && entry(again)->seq == 1);
	CHECK(received().wr_id == 12 && !kern.srq_kicks);

	/* away: what is posted is kicked, and not in the ring */
	*(volatile uint32_t *)(uintptr_t)kern.srq.flag_addr = SHIFT_SRQ_FLAG_AWAY;
	CHECK(!post_srq(13) && kern.srq_kicks == 1);
	recv_id = kern.table->order[2];
	CHECK(kern.table->posted == 3 && entry(recv_id)->wr_id == 13);
	kern_complete((uint64_t)SRQ_KEY << 32 | recv_id, 5);
	kern_raise();
	CHECK(ibv_poll_cq(cq, 4, wc) == 1 && wc[0].wr_id == 13 && !entry(recv_id)->recv_id);
	for (i = 0; i < SRQ_ENTRIES; i++)
		CHECK(!post_srq(14));
	CHECK(post_srq(15) == ENOMEM && !kern.srq_unregs);
	for (i = 0; i < SRQ_ENTRIES; i++)
		kern_complete((uint64_t)SRQ_KEY << 32 | kern.table->order[(3 + i) % 4], 5);
	kern_raise();
	CHECK(ibv_poll_cq(cq, 4, wc) == 4 && wc[3].wr_id == 14);

	/* at home with a full table: as stock, and nothing is lost */
	*(volatile uint32_t *)(uintptr_t)kern.srq.flag_addr = 0;
	for (i = 0; i < SRQ_ENTRIES + 2; i++)
		CHECK(!post_srq(20 + i));
	CHECK(kern.srq_unregs == 1);
	for (i = 0; i < SRQ_ENTRIES + 2; i++)
		CHECK(received().wr_id == 20u + i);

	/* what lies in the CQ when the SRQ goes */
	teardown();
	CHECK(!ibv_destroy_srq(srq));
	srq = ibv_create_srq(pd, &attr);
	setup(0);
	CHECK(!post_srq(31));
	post_to_self(1);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_srq(srq) && kern.srq_unregs == 2);
	CHECK(ibv_poll_cq(cq, 4, wc) == 2 && (wc[0].wr_id == 31 || wc[1].wr_id == 31));
	CHECK(!ibv_destroy_cq(cq));
	srq = NULL;
	close_device();
}
