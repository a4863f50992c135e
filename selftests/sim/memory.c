// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is read, and counters.  A place keeps the history of what was stored in it, and data
 * on the wire are numbers of stores.  So the oracle knows of each READ how old its data are.
 */
#include "pure/wr.h"
#include "world.h"

#define STORES_MAX	384u
#define NOBODY		(~0u)		/* the application that has the memory */

struct place {
	u32 n;
	struct { u64 at; u32 id; } store[STORES_MAX];
};

static struct place place[SIM_ENDS][CELLS][PACKETS_MAX];
static u64 counter[SIM_ENDS][CELLS];

void memory_start(void)
{
	int end;
	u32 i, k;

	for (end = 0; end < SIM_ENDS; end++)
		for (i = 0; i < CELLS; i++) {
			counter[end][i] = 0;
			for (k = 0; k < PACKETS_MAX; k++) {
				place[end][i][k].n = 1;
				place[end][i][k].store[0].at = 0;
				place[end][i][k].store[0].id = NOBODY;
			}
		}
}

static void store(struct place *p, u32 id)
{
	if (p->n == STORES_MAX)
		sim_fail("too many stores");
	p->store[p->n].at = sim_now;
	p->store[p->n++].id = id;
}

void memory_touch(int end)
{
	struct place *p = &place[end][sim_draw(CELLS)][sim_draw(PACKETS_MAX)];

	/* leave room for the operations */
	if (p->n < STORES_MAX / 3)
		store(p, NOBODY);
}

void memory_write(const struct side *from, const struct op *op, u32 packet)
{
	if (op->cell != NO_CELL)
		store(&place[from->peer->end][op->cell][packet], id_of(from, op - from->op));
}

u64 memory_counter(int end, u32 cell)
{
	return counter[end][cell];
}

bool op_is_atomic(const struct op *op)
{
	return op->opcode == SHIFT_WR_ATOMIC_CMP_AND_SWP ||
	       op->opcode == SHIFT_WR_ATOMIC_FETCH_AND_ADD;
}

bool op_has_answer(const struct op *op)
{
	return op->opcode == SHIFT_WR_RDMA_READ || op_is_atomic(op);
}

bool op_is_answered(const struct op *op)
{
	u32 k;

	for (k = 0; k < op->packets; k++)
		if (!op->got_at[k])
			return false;
	return true;
}

u64 sim_read(int end, const struct sim_wr *wr, u32 packet, bool again)
{
	struct side *from;
	struct op *op;

	if (sim_hostile)
		return 0;
	op = op_of(wr, packet, &from);
	is_executed_at(end, from);
	/* it may be asked again, perhaps of another QP's request, but the first time is in order */
	if (!op->executed && !again)
		op_is_due(from, op - from->op);
	if (op - from->op == from->executed && !again) {
		from->executed++;
		op->executed = 1;
	}
	return place[end][op->cell][packet].n - 1;
}

u64 sim_atomic(int end, int net, const struct sim_wr *wr)
{
	struct side *from;
	struct op *op;
	u64 *c;
	u32 n;

	if (sim_hostile)
		return 0;
	op = op_of(wr, 0, &from);
	n = op - from->op;
	c = &counter[end][op->cell];
	is_executed_at(end, from);
	if (net && !plan.global)
		sim_fail("atomic %u of qp %u is executed by a NIC that is not atomic to the other",
			 n, from->qpn);
	if (op->executed)
		sim_fail("atomic %u of qp %u is executed twice", n, from->qpn);
	op_is_due(from, n);
	from->executed++;
	op->executed++;
	op->result = *c;
	if (op->opcode == SHIFT_WR_ATOMIC_FETCH_AND_ADD)
		*c += wr->compare_add;
	else if (*c == wr->compare_add)
		*c = wr->swap;
	return op->result;
}

void sim_landed(int end, const struct sim_wr *wr, u32 packet, u64 data)
{
	struct side *from;
	struct op *op;
	u32 n;

	if (sim_hostile)
		return;
	op = op_of(wr, packet, &from);
	n = op - from->op;
	if (from->end != end)
		sim_fail("the answer to operation %u of qp %u goes to the other end", n, from->qpn);
	if (from->error || n < from->completed)
		sim_fail("the answer to operation %u of qp %u arrives behind its completion", n,
			 from->qpn);
	op->got[packet] = data;
	op->got_at[packet] = sim_now;
}

/* The number of the first operation behind @n that waits for its answer. */
static u32 next_fence(const struct side *s, u32 n)
{
	while (++n < s->posted && !(s->op[n].flags & SHIFT_WR_FENCE))
		;
	return n;
}

/*
 * Data that stood there while the READ was under way.  What operations before it have written is
 * there; what is written behind a fence is not.
 */
static void check_place(const struct side *s, u32 n, u32 k)
{
	const struct op *op = &s->op[n];
	const struct place *p = &place[s->peer->end][op->cell][k];
	u32 i, fence = next_fence(s, n);
	u64 got = op->got[k];

	if (got >= p->n)
		sim_fail("READ %u of qp %u has brought data that never stood there", n, s->qpn);
	if (p->store[got].at > op->got_at[k] ||
	    (got + 1 < p->n && p->store[got + 1].at < op->posted_at))
		sim_fail("READ %u of qp %u has brought data of another time", n, s->qpn);
	for (i = 0; i < p->n; i++) {
		u32 by = p->store[i].id - id_of(s, 0);

		if (by >= OPS_MAX)
			continue;
		if (by < n && i > got && !may_be_twice(s))
			sim_fail("READ %u of qp %u has not brought what %u has written", n, s->qpn,
				 by);
		if (by >= fence && i <= got)
			sim_fail("READ %u of qp %u has brought what %u has written behind a fence",
				 n, s->qpn, by);
	}
}

void memory_check(const struct side *s, u32 n)
{
	const struct op *op = &s->op[n];
	u32 k;

	if (!op_has_answer(op))
		return;
	if (!op_is_answered(op))
		sim_fail("operation %u of qp %u completes without its answer", n, s->qpn);
	if (op_is_atomic(op) && op->got[0] != op->result)
		sim_fail("atomic %u of qp %u has brought a wrong result", n, s->qpn);
	for (k = 0; k < op->packets && !op_is_atomic(op); k++)
		check_place(s, n, k);
}
