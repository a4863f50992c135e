// SPDX-License-Identifier: GPL-2.0
/* What is assumed of a QP that is stopped, or stops by itself: ERR, RESET, and the life after. */
#include <string.h>
#include "assume.h"

#define STREAM	64		/* requests under way when a QP is stopped */
#define SMALL	(64u << 10)	/* bytes of each, at first ... */
#define LARGE	(8u << 20)	/* ... and at most */

/* A QP can only be stopped at work if there is enough of it: larger until it succeeds. */
static const char *caught(const char *(*once)(struct pair *, uint32_t size, bool *cut))
{
	uint32_t size = SMALL;
	bool cut = false;
	int i;

	for (i = 0; i < TRIES; i++) {
		struct pair pair;
		const char *why;

		make(&pair, &(struct setup){});
		why = once(&pair, size, &cut);
		pair_end(&pair);
		if (why || cut)
			return why;
		size = size * 4 < LARGE ? size * 4 : LARGE;
	}
	return "SKIP it always was done before it was stopped";
}

static bool wait_ready(const struct cq *cq, unsigned int n)
{
	uint64_t since = 0;

	while (cq_ready(cq) < n)
		if (!patience(&since))
			return false;
	return true;
}

/* @n entries in the order of @index: *@done successes, of the first @ready, then flushes. */
static const char *successes_then_flushes(struct cq *cq, const uint16_t *index, unsigned int n,
					  unsigned int ready, unsigned int *done)
{
	struct cqe cqe;
	unsigned int i;

	*done = 0;
	for (i = 0; i < n; i++) {
		if (!cq_wait(cq, &cqe))
			return say("%u of %u have completions", i, n);
		if (cqe.counter != index[i])
			return say("completion %u is of index %u, not %u", i, cqe.counter,
				   index[i]);
		if (cqe.syndrome && cqe.syndrome != FLUSHED)
			return say("completion %u has syndrome 0x%x", i, cqe.syndrome);
		if (cqe.syndrome)
			continue;
		if (*done != i)
			return say("a success behind %u flushes", i - *done);
		if (i >= ready)
			return say("success %u was written after the QP had been stopped", i);
		++*done;
	}
	settle();
	return cq_ready(cq) ? "a completion more than there were requests" : NULL;
}

/* The peer of what was stopped has seen the last of it. */
static const char *is_quiet(struct pair *pair)
{
	uint32_t expects, memory;

	settle();
	expects = end_expects(&pair->b, &pair->a);
	memory = sum(&pair->b);
	settle();
	if (expects != end_expects(&pair->b, &pair->a))
		return "packets are executed that were sent after the QP had been stopped";
	return memory == sum(&pair->b) ? NULL : "memory is written after the QP was stopped";
}

static void post_stream(struct pair *pair, uint8_t opcode, uint32_t size, uint16_t *index)
{
	unsigned int i;

	for (i = 0; i < STREAM; i++) {
		if (opcode == MLX5_OPCODE_SEND)
			end_recv(&pair->b, 0, size);
		index[i] = end_post(&pair->a, opcode, SIGNALED, 0, size, &pair->b, 0);
	}
	end_ring(&pair->a);
}

static const char *err_sends_once(struct pair *pair, uint32_t size, bool *cut)
{
	uint16_t index[STREAM];
	unsigned int done;
	const char *why;

	post_stream(pair, MLX5_OPCODE_RDMA_WRITE, size, index);
	if (!wait_ready(&pair->a.send, 2))
		return "no completions";
	end_state(&pair->a, IBV_QPS_ERR);
	why = successes_then_flushes(&pair->a.send, index, STREAM, cq_ready(&pair->a.send), &done);
	if (!why)
		why = is_quiet(pair);
	if (!why && end_expects(&pair->b, &pair->a) < done * (size / MTU))
		why = "a WRITE succeeded that was not executed";
	*cut = done < STREAM;
	return why;
}

const char *assume_err_sends(void)
{
	return caught(err_sends_once);
}

/* Receives of @a that @b has used, and requests that wait: @b has no receive for them. */
static const char *flush_both(struct pair *pair)
{
	uint16_t sends[8], recvs[8];
	unsigned int i, done;
	const char *why;

	for (i = 0; i < 8; i++)
		recvs[i] = end_recv(&pair->a, 0, 64);
	for (i = 0; i < 3; i++)
		end_post(&pair->b, MLX5_OPCODE_SEND, SIGNALED, 0, 8, &pair->a, 0);
	end_ring(&pair->b);
	for (i = 0; i < 2; i++)
		sends[i] = end_post(&pair->a, MLX5_OPCODE_RDMA_WRITE, SIGNALED, 0, 8, &pair->b, 0);
	end_ring(&pair->a);
	if (!wait_ready(&pair->a.recv, 3) || !wait_ready(&pair->a.send, 2))
		return "no completions";
	for (; i < 8; i++)
		sends[i] = end_post(&pair->a, MLX5_OPCODE_SEND, i % 2 ? SIGNALED : 0, 0, 8,
				    &pair->b, 0);
	end_ring(&pair->a);
	end_state(&pair->a, IBV_QPS_ERR);
	why = successes_then_flushes(&pair->a.send, sends, 8, 2, &done);
	if (!why && done != 2)
		why = "sends that had succeeded were flushed";
	if (why)
		return why;
	why = successes_then_flushes(&pair->a.recv, recvs, 8, 3, &done);
	return why || done == 3 ? why : "receives that had succeeded were flushed";
}

const char *assume_err_flushes(void)
{
	struct pair pair;
	const char *why;

	make(&pair, &(struct setup){});
	why = flush_both(&pair);
	pair_end(&pair);
	return why;
}

static const char *err_executes_once(struct pair *pair, uint32_t size, bool *cut)
{
	uint32_t each = size / MTU, expects;
	uint16_t index[STREAM];
	unsigned int i, done;
	const char *why;

	post_stream(pair, MLX5_OPCODE_SEND, size, index);
	for (i = 0; i < STREAM; i++)
		index[i] = i;
	if (!wait_ready(&pair->b.recv, 2))
		return "no completions";
	end_state(&pair->b, IBV_QPS_ERR);
	why = successes_then_flushes(&pair->b.recv, index, STREAM, cq_ready(&pair->b.recv), &done);
	if (why)
		return why;
	*cut = done < STREAM;
	expects = end_expects(&pair->b, &pair->a);
	if (expects < done * each || expects >= (done + 1) * each)
		return say("%u SENDs of %u packets are received, and %u packets", done, each,
			   expects);
	return is_quiet(pair);
}

const char *assume_err_executes(void)
{
	return caught(err_executes_once);
}

/* The first error is of @index[0], with @syndrome, and the rest is flushed. */
static const char *first_error(struct cq *cq, const uint16_t *index, unsigned int n,
			       uint8_t syndrome)
{
	struct cqe cqe;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!cq_wait(cq, &cqe))
			return say("%u of %u have completions", i, n);
		if (cqe.counter != index[i] || cqe.syndrome != (i ? FLUSHED : syndrome))
			return say("completion %u is of index %u with syndrome 0x%x, not %u, 0x%x",
				   i, cqe.counter, cqe.syndrome, index[i],
				   i ? FLUSHED : syndrome);
	}
	settle();
	return cq_ready(cq) ? "a completion more than there were requests" : NULL;
}

/* Two receives for six SENDs. */
static const char *rnr_error(struct pair *pair)
{
	uint16_t index[6];
	const char *why;
	unsigned int i;

	for (i = 0; i < 2; i++)
		end_recv(&pair->b, 0, 64);
	for (i = 0; i < 6; i++)
		index[i] = end_post(&pair->a, MLX5_OPCODE_SEND, i == 5 ? SIGNALED : 0, 0, 8,
				    &pair->b, 0);
	end_ring(&pair->a);
	why = first_error(&pair->a.send, index + 2, 4, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
	if (!why && end_expects(&pair->b, &pair->a) != 2)
		why = say("%u packets are expected behind two receives",
			  end_expects(&pair->b, &pair->a));
	return why;
}

/* The peer goes while nothing is under way; none of what comes then is signaled. */
static const char *retry_error(struct pair *pair)
{
	uint16_t index[9];
	struct cqe cqe;
	unsigned int i;

	for (i = 0; i < 9; i++) {
		index[i] = end_post(&pair->a, MLX5_OPCODE_RDMA_WRITE, i == 4 ? SIGNALED : 0, 0,
				    3 * MTU, &pair->b, 0);
		if (i != 4)
			continue;
		end_ring(&pair->a);
		if (!cq_wait(&pair->a.send, &cqe) || cqe.syndrome || cqe.counter != index[4])
			return "the fifth WRITE has no completion";
		end_state(&pair->b, IBV_QPS_RESET);
	}
	end_ring(&pair->a);
	return first_error(&pair->a.send, index + 5, 4, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
}

const char *assume_own_errors(void)
{
	struct pair pair;
	const char *why;

	make(&pair, &(struct setup){ .rnr_retries = 1 });
	why = rnr_error(&pair);
	pair_end(&pair);
	if (why)
		return why;
	make(&pair, &(struct setup){ .timeout = 14, .retries = 1 });
	why = retry_error(&pair);
	if (!why && !end_is_broken(&pair.a))
		why = "a query says that the QP is not in ERR";
	pair_end(&pair);
	return why;
}

static const char *reset_once(struct pair *pair, uint32_t size, bool *cut)
{
	unsigned int sends, recvs, done = 0;
	uint16_t index[STREAM];
	struct cqe cqe;

	for (recvs = 0; recvs < 8; recvs++)
		end_recv(&pair->a, 0, 64);
	post_stream(pair, MLX5_OPCODE_RDMA_WRITE, size, index);
	if (!wait_ready(&pair->a.send, 2))
		return "no completions";
	end_state(&pair->a, IBV_QPS_RESET);
	sends = cq_ready(&pair->a.send);
	recvs = cq_ready(&pair->a.recv);
	settle();
	if (cq_ready(&pair->a.send) != sends || cq_ready(&pair->a.recv) != recvs)
		return say("%u completions of sends and %u of receives after RESET",
			   cq_ready(&pair->a.send) - sends, cq_ready(&pair->a.recv) - recvs);
	while (cq_take(&pair->a.send, &cqe))
		done += !cqe.syndrome;
	*cut = done < STREAM;
	return is_quiet(pair);
}

const char *assume_reset(void)
{
	return caught(reset_once);
}

static const char *rung_in_reset(struct pair *pair)
{
	uint8_t *target = pair->b.port->mem + 4096;
	struct cqe cqe;

	memset(pair->a.port->mem, 0x5a, 64);
	memset(target, 0, 128);
	end_post(&pair->a, MLX5_OPCODE_RDMA_WRITE, SIGNALED, 0, 64, &pair->b, 4096);
	end_ring(&pair->a);
	if (!cq_wait(&pair->a.send, &cqe) || cqe.syndrome || target[0] != 0x5a)
		return "a WRITE does not work";
	end_state(&pair->a, IBV_QPS_RESET);
	end_recv(&pair->a, 0, 64);
	end_post(&pair->a, MLX5_OPCODE_RDMA_WRITE, SIGNALED, 0, 64, &pair->b, 4096 + 64);
	end_ring(&pair->a);
	settle();
	if (cq_ready(&pair->a.send) || cq_ready(&pair->a.recv))
		return "it is completed";
	return target[64] ? "it is executed" : NULL;
}

const char *assume_reset_doorbell(void)
{
	struct pair pair;
	const char *why;

	make(&pair, &(struct setup){});
	why = rung_in_reset(&pair);
	pair_end(&pair);
	return why;
}

/* One WRITE, and its receiver stopped as soon as a part of it is seen. */
static const char *memory_once(struct pair *pair, uint32_t size, bool *cut)
{
	volatile uint32_t *seen = (uint32_t *)(pair->b.port->mem + size / 64);
	uint32_t *word = (void *)pair->a.port->mem;
	uint64_t since = 0;
	uint32_t packets;
	size_t i;

	for (i = 0; i < size / sizeof(*word); i++)
		word[i] = i * 2654435761u | 1;
	memset(pair->b.port->mem, 0, size);
	end_post(&pair->a, MLX5_OPCODE_RDMA_WRITE, SIGNALED, 0, size, &pair->b, 0);
	end_ring(&pair->a);
	while (!*seen)
		if (!patience(&since))
			return "nothing is written";
	end_state(&pair->b, IBV_QPS_ERR);
	packets = end_expects(&pair->b, &pair->a);
	if (packets > size / MTU)
		return say("%u packets of %u are received", packets, size / MTU);
	if (memcmp(pair->a.port->mem, pair->b.port->mem, (size_t)packets * MTU))
		return say("%u packets are received, and not all of them in memory", packets);
	*cut = packets && packets < size / MTU;
	return NULL;
}

const char *assume_memory(void)
{
	return caught(memory_once);
}

#define AGAIN	48		/* requests of each end, in the life after RESET ... */
#define BYTES	5000		/* ... of so many each ... */
#define PACKETS	(AGAIN * ((BYTES + MTU - 1) / MTU))
#define OUT	(1u << 20)	/* ... from here ... */
#define IN	(2u << 20)	/* ... to there, as in the life before */

/*
 * WRITEs, SENDs and READs in turn: number i of @end and that of @peer take one place each, and
 * after both have been executed what is in @end's is what @peer has to give.
 */
static void post_mixed(struct end *end, struct end *peer, unsigned int n, uint32_t size,
		       size_t out, size_t in, uint32_t step, uint16_t *index)
{
	static const uint8_t opcodes[] = { MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_SEND,
					   MLX5_OPCODE_RDMA_READ };
	unsigned int i;

	for (i = 0; i < n; i++) {
		uint8_t opcode = opcodes[i % 3];
		bool read = opcode == MLX5_OPCODE_RDMA_READ;

		if (opcode == MLX5_OPCODE_SEND)
			end_recv(peer, in + i * step, size);
		index[i] = end_post(end, opcode, SIGNALED, (read ? in : out) + i * step, size,
				    peer, (read ? out : in) + i * step);
	}
}

/* All of it succeeds, in order, and there is nothing else. */
static const char *all_complete(struct end *end, const uint16_t *index)
{
	uint16_t recvs[AGAIN / 3];
	unsigned int i, done;
	const char *why;

	for (i = 0; i < AGAIN / 3; i++)
		recvs[i] = i;
	why = successes_then_flushes(&end->send, index, AGAIN, AGAIN, &done);
	if (!why && done != AGAIN)
		why = say("%u of %u requests succeed", done, AGAIN);
	if (!why)
		why = successes_then_flushes(&end->recv, recvs, AGAIN / 3, AGAIN / 3, &done);
	if (!why && done != AGAIN / 3)
		why = say("%u of %u receives succeed", done, AGAIN / 3);
	return why;
}

static const char *all_there(struct end *end, const struct end *peer)
{
	if (end_expects(end, peer) != PACKETS)
		return say("%u PSNs, not %u", end_expects(end, peer), PACKETS);
	if (memcmp(end->port->mem + IN, peer->port->mem + OUT, AGAIN * BYTES))
		return "data of the life after RESET are wrong";
	return NULL;
}

static const char *next_life(struct pair *pair)
{
	uint16_t a[AGAIN], b[AGAIN];
	const char *why;
	size_t i;

	for (i = 0; i < AGAIN * BYTES; i++) {
		pair->a.port->mem[OUT + i] = i * 7 + i / 251;
		pair->b.port->mem[OUT + i] = i * 5 + i / 241;
	}
	memset(pair->a.port->mem + IN, 0, AGAIN * BYTES);
	memset(pair->b.port->mem + IN, 0, AGAIN * BYTES);
	post_mixed(&pair->a, &pair->b, AGAIN, BYTES, OUT, IN, BYTES, a);
	post_mixed(&pair->b, &pair->a, AGAIN, BYTES, OUT, IN, BYTES, b);
	end_ring(&pair->a);
	end_ring(&pair->b);
	why = all_complete(&pair->a, a);
	if (!why)
		why = all_complete(&pair->b, b);
	if (!why)
		why = all_there(&pair->a, &pair->b);
	return why ?: all_there(&pair->b, &pair->a);
}

/* What was written of the life before, and nothing more. */
static const char *drained(struct end *end, unsigned int *done)
{
	struct cqe cqe;

	while (cq_take(&end->recv, &cqe))
		;
	for (*done = 0; cq_take(&end->send, &cqe); )
		*done += !cqe.syndrome;
	settle();
	return cq_ready(&end->send) || cq_ready(&end->recv) ? "completions after RESET" : NULL;
}

/* Both ends are at work; one goes on with another peer, whose PSNs, and its own, are others. */
static const char *again_once(struct pair *pair, uint32_t size, bool *cut, bool errored)
{
	const struct setup setup = {};
	uint16_t index[STREAM];
	struct end gone;
	unsigned int done;
	const char *why;

	post_mixed(&pair->b, &pair->a, STREAM, size, 0, IN, 0, index);
	post_mixed(&pair->a, &pair->b, STREAM, size, 0, IN, 0, index);
	end_ring(&pair->b);
	end_ring(&pair->a);
	if (!wait_ready(&pair->a.send, 2))
		return "no completions";
	if (errored)
		end_state(&pair->a, IBV_QPS_ERR);
	end_state(&pair->a, IBV_QPS_RESET);
	end_state(&pair->b, IBV_QPS_ERR);
	settle();
	why = drained(&pair->a, &done);
	if (why)
		return why;
	*cut = done < STREAM;
	gone = pair->b;
	end_make(&pair->b, gone.port, &setup);
	end_end(&gone);
	pair->a.first_psn = (pair->a.first_psn + 0x654321) & PSN_MASK;
	pair_connect(pair, &setup);
	return next_life(pair);
}

static const char *again_after_reset(struct pair *pair, uint32_t size, bool *cut)
{
	return again_once(pair, size, cut, false);
}

static const char *again_after_err(struct pair *pair, uint32_t size, bool *cut)
{
	return again_once(pair, size, cut, true);
}

const char *assume_again(void)
{
	const char *why = caught(again_after_reset);

	return why ?: caught(again_after_err);
}
