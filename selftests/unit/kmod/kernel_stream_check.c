// SPDX-License-Identifier: GPL-2.0
/* What is insisted on: each completion, message and byte comes once, in order, and as sent. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/string.h>
#include "kernel_stream.h"

#define SAID	20	/* lines, of all that is counted */
#define WORDS	(LONG / sizeof(u64))
#define POISON	0x5a5a5a5a5a5a5a5aull

/* One line, and it is counted. */
void stream_violated(struct stream_qp *q, const char *text, ...)
{
	struct va_format format = { .fmt = text };
	va_list arguments;

	if (atomic_inc_return(&q->stream->violations) > SAID)
		return;
	va_start(arguments, text);
	format.va = &arguments;
	pr_err("VIOLATION: qp %u: %pV\n", q->index, &format);
	va_end(arguments);
}

static u64 word_of(const struct stream_qp *q, u64 round, bool answer, unsigned int i)
{
	u64 seed = (round << 8 | q->index << 1 | answer) + 1;

	return (seed + i) * 0x9e3779b97f4a7c15ull ^ seed;
}

void stream_fill(struct stream_qp *q, u8 *memory, u64 round, bool answer)
{
	u64 *word = (u64 *)memory;
	unsigned int i;

	for (i = 0; i < WORDS; i++)
		word[i] = word_of(q, round, answer, i);
}

/* What was checked: whoever writes it once more is seen. */
void stream_poison(u8 *memory)
{
	memset64((u64 *)memory, POISON, WORDS);
}

void stream_expect(struct stream_qp *q, const u8 *memory, u64 round, bool answer)
{
	const u64 *word = (const u64 *)memory;
	unsigned int i;

	for (i = 0; i < WORDS; i++) {
		if (READ_ONCE(word[i]) == word_of(q, round, answer, i))
			continue;
		stream_violated(q, "round %llu: byte %zu of its WRITE is wrong: %#llx", round,
				i * sizeof(*word), word[i]);
		return;
	}
}

void stream_expect_poison(struct stream_qp *q, const u8 *memory, u64 round)
{
	const u64 *word = (const u64 *)memory;
	unsigned int i;

	for (i = 0; i < WORDS; i++) {
		if (READ_ONCE(word[i]) == POISON)
			continue;
		stream_violated(q, "round %llu: byte %zu was written again later", round,
				i * sizeof(*word));
		return;
	}
}

/* The completion of a request: no other signaled one before it is left without. */
static void check_sent(struct stream_qp *q, struct stream_token *token, struct ib_wc *wc)
{
	u64 number = token->number;

	lockdep_assert_held(&q->lock);
	if (!token->signaled) {
		stream_violated(q, "request %llu is not signaled, and completes", number);
		return;
	}
	if (number < q->done || number >= q->posted) {
		stream_violated(q, "request %llu completes again, or too early: next is %llu",
				number, q->done);
		return;
	}
	for (; q->done < number; q->done++)
		if (q->sends[q->done % SENDS].signaled)
			stream_violated(q, "request %llu completes, and %llu did not", number,
					q->done);
	q->done++;
	if (wc->opcode != token->opcode)
		stream_violated(q, "request %llu completes as %d, and not as %d", number,
				wc->opcode, token->opcode);
	if (wc->qp != q->qp)
		stream_violated(q, "request %llu completes for another QP", number);
	if (token->opcode == IB_WC_FETCH_ADD) {
		u64 found = q->memory->result[number % SENDS];

		if (found != q->adds)
			stream_violated(q, "FETCH_ADD finds %llu, and not %llu", found, q->adds);
		q->adds = found + 1;
	}
	if (token->ends)
		q->ended++;
	if (q->stream->sends)
		stream_sender_sent(q, token);
	else
		stream_receiver_answers(q);
}

/* The handler of sends. */
void stream_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct stream_token *token = container_of(wc->wr_cqe, struct stream_token, cqe);
	struct stream_qp *q = token->q;

	/* the end flushes receives */
	if (wc->status && READ_ONCE(q->stream->ending))
		return;
	if (wc->status) {
		stream_violated(q, "request %llu ends with %s", token->number,
				ib_wc_status_msg(wc->status));
		return;
	}
	spin_lock_bh(&q->lock);
	check_sent(q, token, wc);
	spin_unlock_bh(&q->lock);
}

static void check_received(struct stream_qp *q, struct stream_token *token, struct ib_wc *wc)
{
	const struct stream_msg *msg = &q->memory->recv[token->number % RECVS];

	lockdep_assert_held(&q->lock);
	if (token->number != q->recvs_done) {
		stream_violated(q, "receive %llu completes, and next is %llu", token->number,
				q->recvs_done);
		return;
	}
	q->recvs_done++;
	if (wc->opcode != IB_WC_RECV || wc->byte_len != sizeof(*msg) || wc->qp != q->qp)
		stream_violated(q, "receive %llu completes as %d with %u bytes", token->number,
				wc->opcode, wc->byte_len);
	if (msg->seq != q->heard)
		stream_violated(q, "message %llu comes, and next is %llu", msg->seq, q->heard);
	q->heard = msg->seq + 1;
	if (q->stream->sends)
		stream_sender_heard(q, msg, wc);
	else
		stream_receiver_heard(q, msg);
	stream_post_recv(q);
}

/* The handler of receives. */
void stream_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct stream_token *token = container_of(wc->wr_cqe, struct stream_token, cqe);
	struct stream_qp *q = token->q;

	if (wc->status && READ_ONCE(q->stream->ending))
		return;
	if (wc->status) {
		stream_violated(q, "receive %llu ends with %s", token->number,
				ib_wc_status_msg(wc->status));
		return;
	}
	spin_lock_bh(&q->lock);
	check_received(q, token, wc);
	spin_unlock_bh(&q->lock);
}
