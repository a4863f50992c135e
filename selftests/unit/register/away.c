// SPDX-License-Identifier: GPL-2.0
/*
 * An SRQ leaves its ring: what is outstanding is looked for in a table and in CQs that the process
 * writes to.
 */
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/ring.h"
#include "fuzz.h"
#include "provider/mlx5/format.h"
#include "srq/srq.h"

#define CQS	2

static struct ib_srq ib_srq;
static struct shift_srq_pool pool;
static struct shift_srq_cq links[CQS];
static u32 written;		/* the entry of the table that was written last */

static int no_query(struct ib_srq *srq, struct ib_srq_attr *attr)
{
	return -EIO;
}

/* What it has from the beginning, and a pool that it is to go to. */
void fuzz_srq_init(struct shift_srq *ssrq)
{
	INIT_LIST_HEAD(&ssrq->members);
	INIT_LIST_HEAD(&ssrq->cqs);
	INIT_LIST_HEAD(&ssrq->rec.pending);
	INIT_LIST_HEAD(&ssrq->rec.posted);
	ssrq->sdev->saved.query_srq = no_query;
	ssrq->srq = &ib_srq;
	pool = (struct shift_srq_pool) { .path = SHIFT_PATH_BACKUP };
	ssrq->target = &pool;
}

/* The id of an entry; or of another one, mostly of one just behind the last; or anything. */
static u32 some_id(const struct shift_srq *ssrq, u32 entry)
{
	u8 how = fuzz_byte();

	if (!(how & 7))
		return fuzz_word();
	if (how & 1)
		entry = ssrq->rings.entries + (how >> 6);
	return entry | 1u << SHIFT_RECV_ID_GENERATION;
}

/* The process writes to the table. */
void fuzz_write_table(struct shift_srq *ssrq)
{
	struct shift_abi_srq_table *table = shift_srq_table(ssrq);
	struct shift_abi_srq_entry *e;
	u32 n = fuzz_byte() % 8;

	for (; n; n--) {
		written = fuzz_byte() % (fuzz_byte() & 1 ? ssrq->rings.entries :
				    ssrq->rings.ring.slots);
		e = shift_srq_entry(ssrq, written);
		e->recv_id = some_id(ssrq, written);
		e->seq = table->posted;
		e->num_sge = fuzz_byte();
		table->order[table->posted % ssrq->rings.entries] = e->recv_id;
		table->posted += fuzz_byte() & 3 ? 1 : fuzz_byte();
	}
}

/* An entry of a CQ of mlx5's, as the device writes it for a receive, or nearly so. */
void fuzz_complete(struct shift_cq *scq, u32 qpn)
{
	const struct shift_ring *ring = &scq->pins.ring;
	struct shift_mlx5_cqe64 cqe = {
		.opcode_qpn = cpu_to_be32(qpn),
		.wqe_index = cpu_to_be16(fuzz_byte() & 3 ? written : fuzz_word()),
	};
	u32 index = fuzz_byte() % ring->slots;
	u8 opcode = fuzz_byte() & 3 ? SHIFT_MLX5_CQE_RECV : SHIFT_MLX5_CQE_RECV_ERR;

	/* in the first lap, in which all are written */
	cqe.op_own = opcode << 4;
	shift_ring_write_slot(ring, index, ring->slot_size - sizeof(cqe), &cqe, sizeof(cqe));
}

/* As what is lent to a ring that was emptied. */
void fuzz_lend(struct shift_srq *ssrq)
{
	u32 recv_id = 1u << SHIFT_RECV_ID_GENERATION | fuzz_word() % ssrq->rings.entries;
	struct shift_sge sge = { .addr = fuzz_word(), .length = fuzz_byte(), .lkey = fuzz_byte() };

	spin_lock_bh(&ssrq->post_lock);
	ssrq->ops->posted(ssrq);
	ssrq->ops->post(ssrq, recv_id, &sge, !!ssrq->max_sge);
	spin_unlock_bh(&ssrq->post_lock);
}

/* It is away from now on, if it was not before; its pool has no room. */
void fuzz_take_over(struct shift_srq *ssrq, struct shift_cq *scq)
{
	u32 i;

	INIT_LIST_HEAD(&ssrq->cqs);
	for (i = 0; i < CQS; i++) {
		links[i].scq = &scq[i];
		if (scq[i].registered)
			list_add_tail(&links[i].node, &ssrq->cqs);
	}
	mutex_lock(&ssrq->lock);
	shift_srq_take_over(ssrq);
	mutex_unlock(&ssrq->lock);
}
