// SPDX-License-Identifier: GPL-2.0
/*
 * A device proves what is assumed of it: Documentation/internals/mlx5.md, "A NIC proves itself".
 * Numbers of claims are those of that page's list.
 */
#include "provider/mlx5/mlx5.h"
#include "provider/mlx5/order.h"
#include "provider/mlx5/trial.h"

/* What a part with traffic in both directions has shown. */
struct traffic {
	bool completed, there, counted;
};

/* The receives of an end are those of all that the other one has sent. */
static bool received_all(const struct shift_rig_end *end, const struct shift_rig_end *peer)
{
	u32 i;

	if (end->recvs.n != peer->nsend)
		return false;
	for (i = 0; i < peer->nsend; i++)
		if (end->recvs.seen[i].status != SHIFT_TRIAL_OK || end->recvs.seen[i].id != i ||
		    end->recvs.seen[i].len != peer->len[i])
			return false;
	return true;
}

static bool sent_all(const struct shift_rig_end *end)
{
	struct shift_trial_end seen;

	return shift_trial_judge(&end->sends, end->nsend, end->silent, &seen) &&
	       seen.ok == end->nsend;
}

/*
 * Both ends send and receive.  Sends are of one block and of two, so that the driver, which looks
 * up a wr_id by wqe_counter, shows what that counts.
 */
static int traffic(struct trial *t, struct traffic *seen)
{
	static const struct { u32 len, sges; bool signaled; } sends[] = {
		{ 1, 1, true }, { 256, 4, false }, { 257, 1, true },
		{ 2048, 3, true }, { 100, 4, false }, { 700, 2, true },
	};
	struct shift_rig_end *a = &t->rig->end[0], *b = &t->rig->end[1];
	u32 i, packets[2];
	int err;

	err = shift_rig_connect(t->rig);
	if (!err)
		err = shift_rig_recv(t->rig, 0, 1, false);
	if (!err)
		err = shift_rig_recv(t->rig, 1, ARRAY_SIZE(sends), false);
	for (i = 0; !err && i < ARRAY_SIZE(sends); i++)
		err = shift_rig_send(t->rig, 0, sends[i].len, sends[i].sges, sends[i].signaled);
	if (!err)
		err = shift_rig_send(t->rig, 1, 513, 3, true);
	if (err)
		return err;
	if (!shift_rig_wait(t->rig, 1, 1, ARRAY_SIZE(sends), SOON_MS) ||
	    !shift_rig_wait(t->rig, 0, 4, 1, SOON_MS))
		return -ETIMEDOUT;
	err = shift_rig_executed(t->rig, 0, &packets[0]) ?:
	      shift_rig_executed(t->rig, 1, &packets[1]);
	if (err)
		return err;
	seen->completed = sent_all(a) && sent_all(b) && received_all(a, b) && received_all(b, a);
	seen->there = shift_rig_text_is_there(t->rig, 1, a->nsend) &&
		      shift_rig_text_is_there(t->rig, 0, b->nsend);
	seen->counted = packets[1] == shift_trial_packets(a->len, a->nsend, SHIFT_RIG_MTU) &&
			packets[0] == shift_trial_packets(b->len, b->nsend, SHIFT_RIG_MTU);
	return 0;
}

/* 7, 10 and 11 */
static int trial_traffic(struct trial *t)
{
	struct traffic seen;
	int err = traffic(t, &seen);

	if (err)
		return err;
	claim(t, 7, seen.counted);
	claim(t, 10, seen.there);
	claim(t, 11, seen.completed);
	return 0;
}

/*
 * A QP is stopped whose peer has no receives any more, so that it is known which of its sends were
 * not executed: 1 and 2.
 */
static int trial_sender(struct trial *t)
{
	struct shift_rig_end *a = &t->rig->end[0], *b = &t->rig->end[1];
	struct shift_trial_end sends, recvs;
	u32 i, before, after;
	bool flushed;
	int err;

	err = shift_rig_connect(t->rig);
	if (!err)
		err = shift_rig_recv(t->rig, 0, 3, false);
	if (!err)
		err = shift_rig_recv(t->rig, 1, 2, false);
	for (i = 0; !err && i < 6; i++)
		err = shift_rig_send(t->rig, 0, 300 + i, 1 + i % 4, i != 3);
	if (err)
		return err;
	if (!shift_rig_wait(t->rig, 1, 0, 2, SOON_MS) || !shift_rig_wait(t->rig, 0, 2, 0, SOON_MS))
		return -ETIMEDOUT;
	err = shift_rig_stop(t->rig, 0) ?: shift_rig_executed(t->rig, 1, &before);
	if (!err)
		err = shift_rig_recv(t->rig, 1, 4, false);
	if (err)
		return err;
	flushed = shift_rig_wait(t->rig, 0, 6, 3, SOON_MS);
	/* more than was due may come: that is what the wait is for */
	shift_rig_wait(t->rig, 1, 0, 3, STILL_MS);
	shift_rig_wait(t->rig, 0, 7, 3, STILL_MS);
	err = shift_rig_executed(t->rig, 1, &after);
	if (err)
		return err;
	claim(t, 1, after == before && b->recvs.n == 2);
	if (!shift_trial_judge(&a->sends, a->nsend, a->silent, &sends) ||
	    !shift_trial_judge(&a->recvs, a->nrecv, 0, &recvs))
		flushed = false;
	claim(t, 2, flushed && sends.ok == 2 && !sends.broke && !recvs.ok && !recvs.broke);
	return 0;
}

/*
 * A QP is stopped while it receives: what it was executing is over with that, and completions and
 * PSN say how far it got (2, 3).  Its peer breaks (4): it has sent more than there are receives.
 */
static int trial_receiver(struct trial *t)
{
	struct shift_rig_end *a = &t->rig->end[0], *b = &t->rig->end[1];
	struct shift_trial_end sends, recvs;
	u32 i, packets, later, memory;
	bool flushed, fits, broke;
	int err;

	err = shift_rig_connect(t->rig);
	if (!err)
		err = shift_rig_recv(t->rig, 1, SHIFT_RIG_DEPTH - 2, true);
	for (i = 0; !err && i < SHIFT_RIG_DEPTH; i++)
		err = shift_rig_send(t->rig, 0, SHIFT_RIG_DATA - i, 1, true);
	if (!err)
		err = shift_rig_stop(t->rig, 1);
	if (!err)
		err = shift_rig_executed(t->rig, 1, &packets);
	if (err)
		return err;
	memory = shift_rig_memory(t->rig, 1);
	flushed = shift_rig_wait(t->rig, 1, 0, b->nrecv, SOON_MS);
	shift_rig_wait(t->rig, 1, 0, b->nrecv + 1, STILL_MS);
	err = shift_rig_executed(t->rig, 1, &later);
	if (err)
		return err;
	flushed = shift_trial_judge(&b->recvs, b->nrecv, 0, &recvs) && flushed && !recvs.broke;
	claim(t, 2, flushed);
	fits = !flushed || shift_trial_psn_fits(a->len, b->nrecv, recvs.ok, SHIFT_RIG_MTU, packets);
	claim(t, 3, fits && later == packets && shift_rig_memory(t->rig, 1) == memory);
	if (!flushed)
		return 0;	/* it may be at work still */
	broke = shift_rig_wait(t->rig, 0, SHIFT_RIG_DEPTH, 0, RETRIES_MS);
	broke = shift_trial_judge(&a->sends, a->nsend, a->silent, &sends) && broke;
	claim(t, 4, broke && sends.broke && sends.ok <= recvs.ok && shift_rig_is_broken(t->rig, 0));
	return 0;
}

/* The same, and then both QPs are reset and work again: 5 and 16. */
static int trial_again(struct trial *t)
{
	struct traffic seen;
	int err;

	err = trial_receiver(t);
	if (err)
		return err;
	claim(t, 5, !shift_rig_reset(t->rig));
	err = traffic(t, &seen);
	claim(t, 16, !err && seen.completed && seen.there && seen.counted);
	return 0;
}

/* Each part has QPs of its own, so that it tells of itself only. */
static int part(struct trial *t, struct shift_rig *rig, int (*fn)(struct trial *t))
{
	int err;

	t->rig = rig;
	if (IS_ERR(t->rig))
		return PTR_ERR(t->rig);
	err = fn(t);
	shift_rig_free(t->rig);
	return err;
}

/* 17, 18 and 21.  What cannot be tried has failed: others than QPs on SRQs do not need it. */
static void trial_srq(struct trial *t, struct ib_device *ibdev)
{
	if (part(t, shift_rig_new_srq(ibdev), shift_trial_srq_stop))
		claim(t, 17, false);
	if (!part(t, shift_rig_new_srq(ibdev), shift_trial_srq_empty))
		return;
	claim(t, 18, false);
	claim(t, 21, false);
}

static bool port_is_up(struct ib_device *ibdev)
{
	struct ib_port_attr port;

	return !ib_query_port(ibdev, 1, &port) && port.state == IB_PORT_ACTIVE;
}

/**
 * shift_mlx5_prove - try what is assumed of a device
 * @ibdev: the device; it stays meanwhile.
 * @held: filled: SHIFT_CLAIM() of those that were tried and held.
 * @failed: filled: of those that did not.
 *
 * Context: process context; sleeps, for some seconds at most (scaled).
 * Return: 0, or a negative errno: it cannot be tried now.
 */
int shift_mlx5_prove(struct ib_device *ibdev, u32 *held, u32 *failed)
{
	struct trial t = {};
	int err;

	err = port_is_up(ibdev) ? 0 : -ENETDOWN;
	if (!err)
		err = part(&t, shift_rig_new(ibdev), trial_traffic);
	if (!err)
		err = part(&t, shift_rig_new(ibdev), trial_sender);
	if (!err)
		err = part(&t, shift_rig_new(ibdev), trial_again);
	if (!err)
		trial_srq(&t, ibdev);
	if (!err)
		claim(&t, 20, shift_mlx5_in_order(ibdev));
	/* what has failed may have failed by that */
	if (!err && !port_is_up(ibdev))
		err = -ENETDOWN;
	*held = t.tried & ~t.failed;
	*failed = t.failed;
	return err;
}
