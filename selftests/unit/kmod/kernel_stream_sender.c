// SPDX-License-Identifier: GPL-2.0
/*
 * The end that begins.  A round of it is: register memory with a new key, some messages, a WRITE
 * to the next slot, a FETCH_ADD, and a message that tells the key.  The peer writes by this key,
 * and answers.  A round, and its memory, is over when it has its answer and all of its completions.
 */
#include "kernel_stream.h"

/* A round has an MR, which has other memory each time. */
static struct stream_mr *mr_of(struct stream_qp *q, u64 round)
{
	return &q->mr[(round + round / ROUNDS) % ROUNDS];
}

/* One whose key was used is invalidated first. */
static bool mr_is_free(struct stream_qp *q, struct stream_mr *m)
{
	if (q->stream->options.global_key || m->state == STREAM_MR_FREE)
		return true;
	if (m->state == STREAM_MR_ANSWERED) {
		stream_add(q, IB_WR_LOCAL_INV, true)->send.ex.invalidate_rkey = m->mr->rkey;
		m->state = STREAM_MR_LEAVING;
	}
	return false;
}

static void add_key(struct stream_qp *q, struct stream_mr *m, struct stream_msg *msg)
{
	u8 *memory = q->memory->answer[msg->round % ROUNDS];

	if (msg->round >= ROUNDS)
		stream_expect_poison(q, memory, msg->round - ROUNDS);
	msg->addr = stream_dma(q, memory);
	if (q->stream->options.global_key) {
		msg->key = q->stream->pd->unsafe_global_rkey;
		return;
	}
	ib_update_fast_reg_key(m->mr, ib_inc_rkey(m->mr->rkey) & (q->stream->options.keys - 1));
	stream_add_reg(q, msg->round % 5 == 0, m->mr, memory, PAGE_SIZE,
		       IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	m->state = STREAM_MR_REGISTERED;
	msg->key = m->mr->rkey;
	msg->addr = m->mr->iova;
}

static void add_fetch_add(struct stream_qp *q)
{
	u64 *result = &q->memory->result[q->posted % SENDS];
	struct stream_request *request = stream_add(q, IB_WR_ATOMIC_FETCH_AND_ADD, true);

	*result = U64_MAX;
	request->sge.addr = stream_dma(q, result);
	request->sge.length = sizeof(*result);
	request->send.sg_list = &request->sge;
	request->send.num_sge = 1;
	request->atomic.remote_addr = q->addr + offsetof(struct stream_memory, counter) -
				      offsetof(struct stream_memory, slot);
	request->atomic.rkey = q->key;
	request->atomic.compare_add = 1;
}

static void add_round(struct stream_qp *q, struct stream_mr *m)
{
	u64 round = q->rounds++;
	struct stream_msg msg = { .round = round };
	unsigned int i;

	add_key(q, m, &msg);
	for (i = 0; i < 1 + round % 3; i++)
		stream_add_message(q, IB_WR_SEND, (round + i) & 1, &msg);
	stream_add_write(q, round & 2, round, q->addr + round % SLOTS * LONG, q->key);
	if (q->stream->options.atomics)
		add_fetch_add(q);
	msg.kind = STREAM_KEY;
	stream_add_message(q, IB_WR_SEND, true, &msg);
}

/**
 * stream_sender_posts - begin a round, if one may begin
 * @q: the QP
 *
 * Context: the thread, which alone posts to the sender's QPs: it does so without a lock.
 * Return: true: it has, and another one may.
 */
bool stream_sender_posts(struct stream_qp *q)
{
	bool may;

	spin_lock_bh(&q->lock);
	/* two beside the round: its MR is invalidated, and the end drains the queue */
	may = READ_ONCE(q->stream->running) && stream_has_room(q, CHAIN_MOST + 2) &&
	      q->rounds - min(q->answered, q->ended) < ROUNDS &&
	      mr_is_free(q, mr_of(q, q->rounds));
	if (may)
		add_round(q, mr_of(q, q->rounds));
	spin_unlock_bh(&q->lock);
	if (q->chain.n)
		stream_post(q);
	return may;
}

/* An answer; the QP's lock. */
void stream_sender_heard(struct stream_qp *q, const struct stream_msg *msg, const struct ib_wc *wc)
{
	struct stream_mr *m = mr_of(q, msg->round);
	bool invalidates = stream_invalidates(q->stream, msg->round);
	u8 *memory = q->memory->answer[msg->round % ROUNDS];

	if (msg->kind != STREAM_ANSWER || msg->round != q->answered || msg->round >= q->rounds) {
		stream_violated(q, "an answer to round %llu comes, and next is %llu", msg->round,
				q->answered);
		return;
	}
	q->answered++;
	stream_expect(q, memory, msg->round, true);
	stream_poison(memory);
	if (invalidates != !!(wc->wc_flags & IB_WC_WITH_INVALIDATE))
		stream_violated(q, "round %llu: invalidates: %d", msg->round, !invalidates);
	else if (invalidates && wc->ex.invalidate_rkey != m->mr->rkey)
		stream_violated(q, "round %llu: key %#x is invalidated, and not %#x", msg->round,
				wc->ex.invalidate_rkey, m->mr->rkey);
	if (invalidates)
		atomic64_inc(&q->stream->remotely);
	m->state = invalidates ? STREAM_MR_FREE : STREAM_MR_ANSWERED;
}

/* A completion; the QP's lock. */
void stream_sender_sent(struct stream_qp *q, const struct stream_token *token)
{
	if (token->opcode != IB_WC_LOCAL_INV)
		return;
	/* it was posted for the round that is next */
	mr_of(q, q->rounds)->state = STREAM_MR_FREE;
	atomic64_inc(&q->stream->invalidated);
}
