// SPDX-License-Identifier: GPL-2.0
/*
 * The end that answers.  What was written in a round is checked when its last message comes, and
 * poisoned.  A while later it has to be as it was left: a WRITE that is done twice is seen.
 */
#include "kernel_stream.h"

/* While the sender begins a round, those that it may still be about are so many. */
#define OLD	(SLOTS - ROUNDS)

static void check_round(struct stream_qp *q, u64 round)
{
	u8 *slot = q->memory->slot[round % SLOTS];

	stream_expect(q, slot, round, false);
	stream_poison(slot);
	if (round >= OLD)
		stream_expect_poison(q, q->memory->slot[(round - OLD) % SLOTS], round - OLD);
}

/* Answers that are owed, as long as memory that they are sent from is free; the QP's lock. */
void stream_receiver_answers(struct stream_qp *q)
{
	while (q->answered < q->rounds && q->answered - q->ended < ROUNDS &&
	       stream_has_room(q, 3)) {
		u64 round = q->answered++;
		struct stream_msg msg = q->owed[round % ROUNDS];

		stream_add_write(q, round & 1, round, msg.addr, msg.key);
		msg.kind = STREAM_ANSWER;
		stream_add_message(q, stream_invalidates(q->stream, round) ? IB_WR_SEND_WITH_INV :
				   IB_WR_SEND, true, &msg);
		stream_post(q);
	}
}

/* A message; the QP's lock. */
void stream_receiver_heard(struct stream_qp *q, const struct stream_msg *msg)
{
	if (msg->round != q->rounds || (msg->kind != STREAM_PLAIN && msg->kind != STREAM_KEY)) {
		stream_violated(q, "a message of round %llu comes in round %llu", msg->round,
				q->rounds);
		return;
	}
	if (msg->kind == STREAM_PLAIN)
		return;
	if (q->rounds - q->answered == ROUNDS) {
		stream_violated(q, "round %llu is one too many", msg->round);
		return;
	}
	check_round(q, msg->round);
	q->owed[q->rounds++ % ROUNDS] = *msg;
	stream_receiver_answers(q);
}

/**
 * stream_receiver_opens - register what the sender writes to
 * @q: the QP, which is connected
 *
 * Return: 0 or a negative errno.
 */
int stream_receiver_opens(struct stream_qp *q)
{
	unsigned int length = offsetof(struct stream_memory, source) -
			      offsetof(struct stream_memory, slot);

	spin_lock_bh(&q->lock);
	stream_add_reg(q, true, q->slots, q->memory->slot, length,
		       IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC);
	stream_post(q);
	spin_unlock_bh(&q->lock);
	return 0;
}
