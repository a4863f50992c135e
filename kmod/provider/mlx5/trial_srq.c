// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues of a device under trial.  Both QPs are on one, and a send that finds no
 * receive ends in an error at once.  The driver finds out by wqe_counter which receive a completion
 * is of, so that wrong counters and a wrong order show as wrong numbers.
 */
#include "provider/mlx5/trial.h"

#define SMALL	6		/* receives with a place of their own */
#define USED	4		/* of those: before the first stop */

/* Send messages of no bytes until one finds no receive: how many have found one? */
static int drain(struct trial *t, u32 *found, bool *told)
{
	struct shift_rig_end *from = &t->rig->end[0];
	struct shift_trial_end sends;
	u32 i;
	int err = 0;

	for (i = 0; i < SHIFT_RIG_DEPTH && !err; i++)
		err = shift_rig_send(t->rig, 0, 0, 0, true);
	if (err)
		return err;
	*told = shift_rig_wait(t->rig, 0, SHIFT_RIG_DEPTH, 0, SOON_MS);
	*told = shift_trial_judge(&from->sends, from->nsend, 0, &sends) && *told && from->rnr;
	*found = sends.ok;
	shift_rig_wait(t->rig, 1, 0, sends.ok, SOON_MS);
	return 0;
}

/* The second end has received this many messages of no bytes, from receive number @first on. */
static bool received(const struct trial *t, u32 first, u32 num)
{
	const struct shift_trial_log *log = &t->rig->end[1].recvs;
	bool flushed;
	u32 i, ok;

	if (!shift_trial_judge_srq(log, first, &ok, &flushed) || ok != num || flushed)
		return false;
	for (i = 0; i < num; i++)
		if (log->seen[i].len)
			return false;
	return true;
}

static int connect_again(struct trial *t)
{
	shift_rig_reset(t->rig);
	return shift_rig_connect(t->rig);
}

/* A QP is stopped that has received some messages, and nothing is under way. */
static int stop_idle(struct trial *t, bool *holds)
{
	struct shift_rig_end *b = &t->rig->end[1];
	bool flushed;
	u32 i, ok;
	int err;

	err = shift_rig_connect(t->rig);
	if (!err)
		err = shift_rig_recv(t->rig, 1, SMALL, false);
	for (i = 0; i < USED && !err; i++)
		err = shift_rig_send(t->rig, 0, 300 + i, 1, true);
	if (err)
		return err;
	shift_rig_wait(t->rig, 0, USED, 0, SOON_MS);
	shift_rig_wait(t->rig, 1, 0, USED, SOON_MS);
	err = shift_rig_stop(t->rig, 1);
	if (err)
		return err;
	/* nothing more is complete */
	shift_rig_wait(t->rig, 1, 0, USED + 1, STILL_MS);
	*holds = shift_trial_judge_srq(&b->recvs, 0, &ok, &flushed) && ok == USED && !flushed &&
		 shift_rig_text_is_there(t->rig, 1, USED) &&
		 !memchr_inv(b->data + USED * SHIFT_RIG_PLACE, 0,
			     SHIFT_RIG_DATA - USED * SHIFT_RIG_PLACE);
	return 0;
}

/*
 * A QP is stopped while it receives.  What it has executed is complete then, one more receive at
 * most is flushed, and the PSN says the same.  @least, @most: receives that are left.
 */
static int stop_busy(struct trial *t, bool *holds, u32 *least, u32 *most)
{
	struct shift_rig_end *a = &t->rig->end[0], *b = &t->rig->end[1];
	u32 i, has, ok, late, packets, after, memory;
	bool flushed;
	int err;

	err = connect_again(t);
	if (!err)
		err = shift_rig_recv(t->rig, 1, SHIFT_RIG_SRQ - SMALL, true);
	has = t->rig->nsrq - USED;
	for (i = 0; i < SHIFT_RIG_DEPTH && !err; i++)
		err = shift_rig_send(t->rig, 0, i < SMALL - USED ? SHIFT_RIG_PLACE :
				     SHIFT_RIG_DATA - i, 1, true);
	if (!err)
		err = shift_rig_stop(t->rig, 1);
	if (!err)
		err = shift_rig_executed(t->rig, 1, &packets);
	if (err)
		return err;
	/* those that are there now */
	shift_rig_wait(t->rig, 1, 0, has + 1, 0);
	*holds = shift_trial_judge_srq(&b->recvs, USED, &ok, &flushed);
	memory = shift_rig_memory(t->rig, 1);
	shift_rig_wait(t->rig, 1, 0, has + 1, STILL_MS);
	*holds = shift_trial_judge_srq(&b->recvs, USED, &late, &flushed) && *holds &&
		 late == ok && ok + flushed <= has;
	err = shift_rig_executed(t->rig, 1, &after);
	if (err)
		return err;
	*holds = *holds && after == packets && memory == shift_rig_memory(t->rig, 1) &&
		 shift_trial_psn_fits(a->len, has, ok, SHIFT_RIG_MTU, packets);
	*most = *holds ? has - ok - flushed : 0;
	/* the device may have taken one that has no completion */
	*least = *most && !flushed ? *most - 1 : *most;
	return 0;
}

/**
 * shift_trial_srq_stop - QPs on an SRQ are stopped and reset, and leave the rest there: 17
 * @t: the trial.
 *
 * Context: process context.
 * Return: 0, or a negative errno: that cannot be tried.
 */
int shift_trial_srq_stop(struct trial *t)
{
	u32 least, most, found;
	bool idle, busy, told;
	int err;

	err = stop_idle(t, &idle);
	if (!err)
		err = stop_busy(t, &busy, &least, &most);
	if (!err)
		err = connect_again(t);
	if (!err)
		err = drain(t, &found, &told);
	if (err)
		return err;
	claim(t, 17, idle && busy && found >= least && found <= most &&
	      received(t, t->rig->nsrq - found, found));
	return 0;
}

/*
 * Each end receives a message, and its driver gets the second one back first: from then on the
 * device has to go by what each request names as its next one.
 */
static int swap_two(struct trial *t, bool *holds)
{
	struct shift_rig_end *a = &t->rig->end[0], *b = &t->rig->end[1];
	bool came;
	int err;

	err = shift_rig_connect(t->rig);
	if (!err)
		err = shift_rig_recv(t->rig, 1, 2, false);
	if (!err)
		err = shift_rig_send(t->rig, 0, 0, 0, true);
	if (err)
		return err;
	came = shift_rig_wait(t->rig, 0, 1, 0, SOON_MS);
	err = shift_rig_send(t->rig, 1, 0, 0, true);
	if (err)
		return err;
	came = shift_rig_wait(t->rig, 0, 1, 1, SOON_MS) && came;
	came = shift_rig_wait(t->rig, 1, 1, 1, SOON_MS) && came;
	*holds = came && received(t, 0, 1) && a->sends.seen[0].status == SHIFT_TRIAL_OK &&
		 b->sends.seen[0].status == SHIFT_TRIAL_OK && a->recvs.n == 1 &&
		 a->recvs.seen[0].status == SHIFT_TRIAL_OK && a->recvs.seen[0].id == 1;
	return 0;
}

/* @num are posted, and messages of no bytes take them out in that order. */
static int take_out(struct trial *t, u32 num, bool *holds)
{
	u32 found, first = t->rig->nsrq;
	bool told;
	int err;

	err = shift_rig_recv(t->rig, 1, num, false) ?: drain(t, &found, &told);
	if (!err)
		*holds = told && found == num && received(t, first, num);
	return err;
}

/**
 * shift_trial_srq_empty - completions name receives, and an SRQ can be emptied: 18 and 21
 * @t: the trial.
 *
 * Once it was empty, what is posted is found again.
 *
 * Context: process context.
 * Return: 0, or a negative errno: that cannot be tried.
 */
int shift_trial_srq_empty(struct trial *t)
{
	bool named, all, again;
	int err;

	err = swap_two(t, &named);
	if (err)
		return err;
	shift_rig_part(t->rig, 0);
	shift_rig_part(t->rig, 1);
	err = take_out(t, SHIFT_RIG_SRQ, &all);
	if (!err)
		err = connect_again(t);
	if (!err)
		err = take_out(t, 3, &again);
	if (err)
		return err;
	claim(t, 18, named);
	claim(t, 21, all && again);
	return 0;
}
