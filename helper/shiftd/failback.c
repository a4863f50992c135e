// SPDX-License-Identifier: GPL-2.0-only
/*
 * A path, from a device to a peer's, that has been good for the hold time gets one
 * queue pair back first, the canary; when that has run there for a while, the rest.
 *
 * Meanwhile the path is probed: the kernel sends something on its link that the
 * peer's NIC has to acknowledge, and takes the link down if it does not.  Heartbeats
 * of the kernel's own are as good.  Nothing goes back while a probe is not answered.
 * How often a link has been connected tells of interruptions between two looks.
 *
 * A path that breaks again soon has to be good for twice as long the next time, and
 * is probed half as often; it takes a good time many times as long, not one success,
 * to have that forgotten.
 */
#include <errno.h>
#include <linux/shift.h>
#include <stdlib.h>
#include <string.h>

#include "shiftd/failback.h"

#define LOOK_MS		1000	/* between looks while there is something to do */
#define PATIENCE	10	/* looks that a canary, or the rest, gets to arrive */
#define FORGET		10	/* hold times without a failure until it is forgotten */

enum phase { WAITING, CANARY, REST };

struct path {
	char dev[SHIFT_DEV_MAX];
	struct shift_gid remote;
	bool loop;		/* to the device's own address: it has no link */
	enum phase phase;
	uint64_t hold_ms;
	uint64_t since;		/* good since then; 0: it is not */
	uint64_t back_at;	/* when queue pairs went back last; 0: never */
	uint64_t asked_at;	/* canary or rest: when that began */
	uint32_t canary;
	uint64_t probe_at;	/* not before then */
	bool unanswered;	/* a probe is under way */

	/* of the look under way */
	bool up, interrupted, heard, seen;
	unsigned int away;
	uint32_t link;
	uint64_t connects, acked;
};

struct queue_pair {
	size_t path;
	uint32_t qpn;
	unsigned int state;
};

struct shift_failback {
	struct path *paths;
	size_t n_paths;
	struct queue_pair *qps;
	size_t n_qps, max_qps;
};

struct shift_failback *shift_failback_new(void)
{
	return calloc(1, sizeof(struct shift_failback));
}

void shift_failback_free(struct shift_failback *fb)
{
	if (!fb)
		return;
	free(fb->paths);
	free(fb->qps);
	free(fb);
}

/* Index of a path, made if it is new; -1 without memory. */
static long find_path(struct shift_failback *fb, const char *dev,
		      const struct shift_gid *remote)
{
	struct path *p;
	size_t i;

	for (i = 0; i < fb->n_paths; i++) {
		p = &fb->paths[i];
		if (!strcmp(p->dev, dev) &&
		    !memcmp(&p->remote, remote, sizeof(*remote)))
			return i;
	}
	p = reallocarray(fb->paths, fb->n_paths + 1, sizeof(*p));
	if (!p)
		return -1;
	fb->paths = p;
	p = &fb->paths[fb->n_paths];
	memset(p, 0, sizeof(*p));
	strncpy(p->dev, dev, sizeof(p->dev) - 1);
	p->remote = *remote;
	return fb->n_paths++;
}

void shift_failback_begin(struct shift_failback *fb)
{
	size_t i;

	fb->n_qps = 0;
	for (i = 0; i < fb->n_paths; i++) {
		fb->paths[i].up = false;
		fb->paths[i].seen = false;
		fb->paths[i].away = 0;
	}
}

/**
 * shift_failback_link() - a link of the kernel's
 * @fb: between begin and end
 * @link: as the kernel has it
 *
 * Return: 0 or -ENOMEM.
 */
int shift_failback_link(struct shift_failback *fb,
			const struct shift_failback_link *link)
{
	long i = find_path(fb, link->dev, &link->remote);
	struct path *p;

	if (i < 0)
		return -ENOMEM;
	p = &fb->paths[i];
	p->seen = true;
	p->up = link->up;
	p->interrupted = p->connects != link->connects;
	p->heard = p->acked != link->acked;
	p->link = link->id;
	p->connects = link->connects;
	p->acked = link->acked;
	return 0;
}

/**
 * shift_failback_qp() - a queue pair of a device that is not drained
 * @fb: between begin and end
 * @dev: its own device
 * @remote: GID of the peer's own device
 * @loop: @remote is its own device's
 * @qpn: number
 * @state: enum shift_qp_state
 *
 * Return: 0 or -ENOMEM.
 */
int shift_failback_qp(struct shift_failback *fb, const char *dev,
		      const struct shift_gid *remote, bool loop, uint32_t qpn,
		      unsigned int state)
{
	struct queue_pair *grown;
	long i;

	if (state == SHIFT_QP_UNPROTECTED || state == SHIFT_QP_DEFAULT ||
	    state == SHIFT_QP_FAILED)
		return 0;
	i = find_path(fb, dev, remote);
	if (i < 0)
		return -ENOMEM;
	if (fb->n_qps == fb->max_qps) {
		grown = reallocarray(fb->qps, 2 * fb->max_qps + 64,
				     sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		fb->qps = grown;
		fb->max_qps = 2 * fb->max_qps + 64;
	}
	fb->qps[fb->n_qps++] = (struct queue_pair){
		.path = i, .qpn = qpn, .state = state,
	};
	fb->paths[i].seen = true;
	fb->paths[i].loop = loop;
	fb->paths[i].away += state == SHIFT_QP_FALLBACK;
	return 0;
}

/* It has to prove itself for longer than the last time. */
static void punish(struct path *p, const struct shift_failback_policy *policy)
{
	p->hold_ms = 2 * p->hold_ms;
	if (p->hold_ms > policy->max_hold_ms)
		p->hold_ms = policy->max_hold_ms;
	p->phase = WAITING;
	p->back_at = 0;
}

static const struct queue_pair *first_away(const struct shift_failback *fb,
					   size_t path)
{
	size_t i;

	for (i = 0; i < fb->n_qps; i++)
		if (fb->qps[i].path == path &&
		    fb->qps[i].state == SHIFT_QP_FALLBACK)
			return &fb->qps[i];
	return NULL;
}

/* enum shift_qp_state, or -1: it has ended */
static int state_of(const struct shift_failback *fb, size_t path, uint32_t qpn)
{
	size_t i;

	for (i = 0; i < fb->n_qps; i++)
		if (fb->qps[i].path == path && fb->qps[i].qpn == qpn)
			return fb->qps[i].state;
	return -1;
}

/* What the canary has come to; one that is on its way has the kernel's deadlines. */
static void watch_canary(struct shift_failback *fb, size_t i, uint64_t now,
			 const struct shift_failback_policy *policy)
{
	struct path *p = &fb->paths[i];

	switch (state_of(fb, i, p->canary)) {
	case SHIFT_QP_RETURNED:
		if (now - p->asked_at >= 2 * LOOK_MS) {
			p->phase = REST;
			p->asked_at = now;
		}
		break;
	case SHIFT_QP_FALLBACK:
		if (now - p->asked_at >= PATIENCE * LOOK_MS) {
			punish(p, policy);
			p->since = now;
		}
		break;
	case -1:
		p->phase = WAITING;	/* its application ended: another one */
	}
}

/*
 * A queue pair that is connected to itself has no link that could tell of its path.  That is good
 * while one of its device's is.
 */
static void look_at_others(struct shift_failback *fb, struct path *loop)
{
	size_t i;

	loop->up = false;
	for (i = 0; i < fb->n_paths; i++)
		if (!fb->paths[i].loop && !strcmp(fb->paths[i].dev, loop->dev))
			loop->up |= fb->paths[i].up;
}

/* A hold time has the same number of probes, however long it has become. */
static void probe(struct path *p, uint64_t now,
		  const struct shift_failback_policy *policy,
		  const struct shift_failback_ops *ops, void *arg)
{
	if (p->loop || !policy->probe_ms || now < p->probe_at)
		return;
	p->probe_at = now + policy->probe_ms * p->hold_ms / policy->hold_ms;
	p->unanswered = ops->probe(p->link, arg);
}

static uint64_t look_at(struct shift_failback *fb, size_t i, uint64_t now,
			const struct shift_failback_policy *policy,
			const struct shift_failback_ops *ops, void *arg)
{
	struct path *p = &fb->paths[i];
	const struct queue_pair *qp;
	size_t j;

	if (p->phase == WAITING && p->away) {
		if (now - p->since < p->hold_ms || p->unanswered) {
			probe(p, now, policy, ops, arg);
			return LOOK_MS;
		}
		qp = first_away(fb, i);
		p->canary = qp->qpn;
		p->asked_at = now;
		p->phase = CANARY;
		ops->move(p->dev, qp->qpn, true, arg);
	} else if (p->phase == CANARY) {
		watch_canary(fb, i, now, policy);
	}
	if (p->phase == REST) {
		for (j = 0; j < fb->n_qps; j++)
			if (fb->qps[j].path == i &&
			    fb->qps[j].state == SHIFT_QP_FALLBACK)
				ops->move(p->dev, fb->qps[j].qpn, false, arg);
		p->back_at = now;
		if (!p->away) {
			p->phase = WAITING;
		} else if (now - p->asked_at >= PATIENCE * LOOK_MS) {
			p->phase = WAITING;
			p->since = now;
		}
	}
	return LOOK_MS;
}

/* Good or not, and since when; what it did to those who trusted it. */
static void judge(struct path *p, uint64_t now,
		  const struct shift_failback_policy *policy)
{
	if (!p->hold_ms || p->hold_ms < policy->hold_ms)
		p->hold_ms = policy->hold_ms;
	if (p->back_at && now - p->back_at > FORGET * p->hold_ms) {
		p->hold_ms = policy->hold_ms;
		p->back_at = 0;
	}
	if (p->heard || !p->up || p->interrupted)
		p->unanswered = false;
	if (p->up && !p->interrupted && p->since)
		return;
	/* it broke, under those that had gone back or were about to */
	if (p->back_at || p->phase != WAITING)
		punish(p, policy);
	p->since = p->up ? now : 0;
	p->probe_at = 0;	/* each hold time begins with a probe */
}

/* Those that neither a link nor a queue pair uses any more. */
static void forget_unseen(struct shift_failback *fb)
{
	size_t i, kept = 0;

	for (i = 0; i < fb->n_paths; i++)
		if (fb->paths[i].seen)
			fb->paths[kept++] = fb->paths[i];
	fb->n_paths = kept;
	fb->n_qps = 0;
}

/**
 * shift_failback_end() - decide
 * @fb: all that the kernel has was told
 * @now: ms of a monotonic clock, not 0
 * @policy: may change from look to look
 * @ops: called for what is to go back, or to be probed
 * @arg: for @ops
 *
 * Return: in how many ms to look again; UINT64_MAX: when something happens.
 */
uint64_t shift_failback_end(struct shift_failback *fb, uint64_t now,
			    const struct shift_failback_policy *policy,
			    const struct shift_failback_ops *ops, void *arg)
{
	uint64_t again = UINT64_MAX, one;
	size_t i;

	for (i = 0; i < fb->n_paths; i++) {
		struct path *p = &fb->paths[i];

		if (p->loop)
			look_at_others(fb, p);
		judge(p, now, policy);
		if (p->since && (p->away || p->phase != WAITING))
			one = look_at(fb, i, now, policy, ops, arg);
		else	/* interruptions are to be seen while they matter */
			one = p->away || p->back_at ? LOOK_MS : UINT64_MAX;
		if (one > LOOK_MS && one != UINT64_MAX)
			one = LOOK_MS;
		if (one < again)
			again = one;
	}
	forget_unseen(fb);
	return again;
}
