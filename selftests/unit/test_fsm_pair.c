// SPDX-License-Identifier: GPL-2.0
/*
 * Two state machines and a bad network: a QP pair through faults, lost, doubled
 * and reordered messages, deadlines at any time, NICs that cannot be asked.
 * What the driver does by an action is done here in its simplest form.
 */
#include "pure/fsm.h"
#include "ktap.h"

#define PATHS	3
#define QUEUE	32

struct note {
	u8 event;	/* enum shift_event as the receiver sees it */
	u8 to;
	u32 epoch;
	bool gone;	/* of a NACK */
	u32 ran;	/* of PROGRESS: executed at its sender, cumulative */
};

static struct node {
	enum shift_state state;
	u32 joined, highest, asked;
	u8 path, to;
	bool errored, fenced, unfenced;
	u32 armed;		/* epoch that the live QP belongs to, 0: none */
	struct note kept[__SHIFT_EV_MAX];
	bool has_kept[__SHIFT_EV_MAX];
	struct note queue[QUEUE];	/* to this node */
	u32 queued;
	/* one direction of traffic, requester here */
	u32 posted, known, reported;
	u32 executed;		/* at this node as the responder */
	bool shown;		/* errors were shown to the application */
} node[2];

static bool up[PATHS];
static struct rnd rnd;
static struct ktap *tt;
static u32 illegal, loss;

static void deliver(int n, struct note *m);

static bool session(void)
{
	return up[0] || up[1] || up[2];
}

static void tell(int n, enum shift_event event, u32 epoch, u8 to, bool gone)
{
	struct node *peer = &node[!n];
	int copies = loss && rnd_one_in(&rnd, loss) ? 0 : 1;

	if (loss && rnd_one_in(&rnd, 10))
		copies++;
	for (; copies && peer->queued < QUEUE; copies--)
		peer->queue[peer->queued++] = (struct note) {
			.event = event, .epoch = epoch, .to = to, .gone = gone,
			.ran = node[n].executed,
		};
}

static bool next_path(int n, u8 *to)
{
	u8 i;

	for (i = 1; i <= PATHS; i++) {
		*to = (u8)((node[n].path + i) % PATHS);
		if (up[*to])
			return true;
	}
	return false;
}

static u32 guards_of(int n, const struct note *m)
{
	struct node *s = &node[n];
	u32 g = 0;
	u8 to;

	if (!s->errored && !s->fenced)
		g |= SHIFT_G_HEALTHY;
	if (next_path(n, &to) && (to != s->path || s->errored || s->fenced))
		g |= SHIFT_G_USABLE;
	if (m) {
		if (m->epoch > s->joined && m->epoch >= s->highest)
			g |= SHIFT_G_JOINS;
		if (m->epoch == s->highest)
			g |= SHIFT_G_CURRENT;
		if (m->gone)
			g |= SHIFT_G_NACK_GONE;
	}
	if (s->posted == s->known)
		g |= SHIFT_G_IDLE;
	if (!s->path && !s->errored && !s->fenced)
		g |= SHIFT_G_OWN;
	return g;
}

static void enter_run(int n)
{
	struct node *s = &node[n];

	s->path = s->to;
	s->errored = false;
	s->fenced = false;
	s->unfenced = false;
	/* exactly once: what is completed now was executed, what is not was not */
	EXPECT(tt, s->known <= node[!n].executed);
	s->reported = s->known;
	/* and both ends of one epoch are on one path */
	if (node[!n].state == SHIFT_ST_RUN && node[!n].joined == s->joined)
		EXPECT_EQ(tt, node[!n].path, s->path);
}

static void act(int n, enum shift_event event, const struct shift_rule *r,
		const struct note *m)
{
	struct node *s = &node[n];

	switch ((enum shift_action)r->action) {
	case SHIFT_ACT_PROTECT:
	case SHIFT_ACT_NONE:
	case SHIFT_ACT_UNGATE:
	case SHIFT_ACT_UNPROTECT:
	case SHIFT_ACT_FORGET:
	case SHIFT_ACT_ALONE:
	case __SHIFT_ACT_MAX:
		break;
	case SHIFT_ACT_ASK:
		next_path(n, &s->to);
		s->highest = shift_epoch_next(s->highest, n);
		tell(n, SHIFT_EV_RX_REQ, s->highest, s->to, false);
		break;
	case SHIFT_ACT_NACK:
		tell(n, SHIFT_EV_RX_NACK, m->epoch, 0, s->state == SHIFT_ST_FAIL ||
		     s->state == SHIFT_ST_APP || s->state == SHIFT_ST_OFF);
		break;
	case SHIFT_ACT_JOIN:
		if (event == SHIFT_EV_RX_REQ)
			tell(n, SHIFT_EV_RX_ACK, m->epoch, m->to, false);
		s->joined = m->epoch;
		s->highest = m->epoch;
		s->to = m->to;
		s->fenced = true;
		s->armed = 0;
		if (event == SHIFT_EV_RX_PROGRESS || event == SHIFT_EV_RX_UNKNOWN) {
			s->kept[event] = *m;
			s->has_kept[event] = true;
		}
		break;
	case SHIFT_ACT_PROGRESS:
	case SHIFT_ACT_REACK:
		if (event == SHIFT_EV_UNFENCED || event == SHIFT_EV_DEADLINE)
			s->unfenced = true;
		if (event == SHIFT_EV_RX_REQ)
			tell(n, SHIFT_EV_RX_ACK, s->joined, s->to, false);
		tell(n, s->unfenced ? SHIFT_EV_RX_UNKNOWN : SHIFT_EV_RX_PROGRESS,
		     s->joined, s->to, false);
		if (s->state == SHIFT_ST_SYNC)
			tell(n, SHIFT_EV_RX_READY, s->joined, s->to, false);
		break;
	case SHIFT_ACT_READY:
		EXPECT_EQ(tt, m->epoch, s->joined);
		if (event == SHIFT_EV_RX_PROGRESS) {
			/* counted after the peer's fence of this very epoch */
			EXPECT_EQ(tt, m->ran, node[!n].executed);
			EXPECT(tt, m->ran <= s->posted);
			if (m->ran > s->known)
				s->known = m->ran;
		}
		s->armed = s->joined;
		tell(n, SHIFT_EV_RX_READY, s->joined, s->to, false);
		break;
	case SHIFT_ACT_KEEP:
		s->kept[event] = *m;
		s->has_kept[event] = true;
		break;
	case SHIFT_ACT_REPLAY:
		enter_run(n);
		break;
	case SHIFT_ACT_FAIL:
	case SHIFT_ACT_APP:
	case SHIFT_ACT_LEAVE:
		s->armed = 0;
		s->shown = true;
		tell(n, SHIFT_EV_RX_GONE, s->highest, 0, false);
		break;
	}
}

static bool holds(void *arg, u32 guard)
{
	return *(const u32 *)arg & guard;
}

static void happen(int n, enum shift_event event, const struct note *m)
{
	u32 guards = guards_of(n, m);
	const struct shift_rule *r;
	struct node *s = &node[n];
	bool moved;
	int i;

	r = shift_fsm_find(s->state, event, holds, &guards);
	if (!r) {
		illegal++;
		return;
	}
	moved = r->next != s->state;
	/* REPLAY looks at the state that it leads to */
	if (r->next == SHIFT_ST_RUN) {
		s->state = SHIFT_ST_RUN;
		if (r->action == SHIFT_ACT_UNGATE)
			s->to = s->path;
	}
	act(n, event, r, m);
	s->state = r->next;

	if (s->state == SHIFT_ST_FENCE && moved)
		happen(n, rnd_one_in(&rnd, 40) ? SHIFT_EV_UNFENCED :
						 SHIFT_EV_FENCED, NULL);
	if (!moved)
		return;
	for (i = 0; i < __SHIFT_EV_MAX; i++) {
		struct note kept = s->kept[i];

		if (!s->has_kept[i])
			continue;
		s->has_kept[i] = false;
		happen(n, i, &kept);
	}
}

static void deliver(int n, struct note *m)
{
	happen(n, m->event, m);
}

/* one packet's way of the traffic from @n, if its QPs belong together */
static void traffic(int n)
{
	struct node *s = &node[n], *p = &node[!n];

	if (s->state == SHIFT_ST_RUN && !s->errored && s->posted < 1000)
		s->posted++;
	if (s->armed && s->armed == p->armed && up[s->path] && !p->shown &&
	    (s->state == SHIFT_ST_RUN || s->state == SHIFT_ST_ASKED) &&
	    p->executed < s->posted) {
		p->executed++;
	}
	/* the acknowledgement may be lost, and comes again with a retry */
	if (s->armed && s->armed == p->armed && up[s->path] && !s->errored &&
	    !rnd_one_in(&rnd, 3))
		s->known = p->executed;
	if (s->armed && (!up[s->path] || s->armed != p->armed) &&
	    s->state != SHIFT_ST_OFF && s->posted > s->known &&
	    rnd_one_in(&rnd, 4)) {
		s->errored = true;
		happen(n, SHIFT_EV_TRIGGER, NULL);
	}
}

static void receive(int n)
{
	struct node *s = &node[n];
	struct note m;
	u32 i;

	if (!session()) {	/* what is under way is lost with the session */
		s->queued = 0;
		return;
	}
	if (!s->queued)
		return;
	i = loss && rnd_one_in(&rnd, 4) ? rnd_below(&rnd, s->queued) : 0;
	m = s->queue[i];
	memmove(&s->queue[i], &s->queue[i + 1],
		(s->queued - i - 1) * sizeof(m));
	s->queued--;
	deliver(n, &m);
}

static void start(void)
{
	int i;

	memset(node, 0, sizeof(node));
	for (i = 0; i < PATHS; i++)
		up[i] = true;
	for (i = 0; i < 2; i++) {
		node[i].armed = 1;
		node[i].joined = node[i].highest = 1;
		happen(i, SHIFT_EV_PAIRED, NULL);
	}
}

static void disturb(void)
{
	int n = (int)rnd_below(&rnd, 2);

	switch (rnd_below(&rnd, 60)) {
	case 0: case 1:
		up[rnd_below(&rnd, PATHS)] ^= true;
		break;
	case 2: case 3: case 4: case 5:
		happen(n, SHIFT_EV_TRIGGER, NULL);	/* a false alarm, or a move is wanted */
		break;
	case 6: case 7:
		happen(n, SHIFT_EV_DEADLINE, NULL);
		break;
	case 8:
		if (rnd_one_in(&rnd, 10))
			happen(n, SHIFT_EV_APP_ERROR, NULL);
		break;
	}
}

static bool settled(int n)
{
	switch (node[n].state) {
	case SHIFT_ST_RUN:
		return !node[n].errored && node[n].posted == node[n].known;
	case SHIFT_ST_OFF:
	case SHIFT_ST_FAIL:
	case SHIFT_ST_APP:
		return true;
	default:
		return false;
	}
}

static u32 ended[__SHIFT_ST_MAX], switches;

static void one_story(struct ktap *t, u32 losses)
{
	int step, n;

	tt = t;
	loss = losses;
	start();
	for (step = 0; step < 300; step++) {
		disturb();
		for (n = 0; n < 2; n++) {
			traffic(n);
			receive(n);
		}
	}

	/* peace: all paths work, nothing is lost, time passes */
	loss = 0;
	for (n = 0; n < PATHS; n++)
		up[n] = true;
	for (step = 0; step < 2000 && !(settled(0) && settled(1) &&
	     !node[0].queued && !node[1].queued); step++) {
		for (n = 0; n < 2; n++) {
			traffic(n);
			receive(n);
			receive(n);
			if (step % 20 == 19)
				happen(n, SHIFT_EV_DEADLINE, NULL);
		}
	}
	if (!settled(0) || !settled(1))
		for (n = 0; n < 2; n++)
			ktap_print("    # %s err %d fenced %d joined %u highest %u path %u to %u armed %u posted %u known %u executed %u queued %u\n",
				   shift_state_name(node[n].state), node[n].errored, node[n].fenced,
				   node[n].joined, node[n].highest, node[n].path, node[n].to, node[n].armed,
				   node[n].posted, node[n].known, node[n].executed, node[n].queued);
	EXPECT(t, settled(0));
	EXPECT(t, settled(1));
	for (n = 0; n < 2; n++) {
		ended[node[n].state]++;
		switches += node[n].joined;
		EXPECT(t, node[n].known <= node[!n].executed);
		EXPECT(t, node[!n].executed <= node[n].posted);
	}
	if (node[0].state == SHIFT_ST_RUN && node[1].state == SHIFT_ST_RUN) {
		EXPECT_EQ(t, node[0].armed, node[1].armed);
		EXPECT_EQ(t, node[0].path, node[1].path);
	}
	EXPECT_EQ(t, illegal, 0);
}

static void stories(struct ktap *t, u64 seed, u32 losses)
{
	int i;

	memset(ended, 0, sizeof(ended));
	illegal = switches = 0;
	rnd.state = seed;
	for (i = 0; i < 1500 && !t->failed; i++) {
		one_story(t, losses);
		ktap_breathe();
	}
	EXPECT(t, ended[SHIFT_ST_RUN] > 100 && ended[SHIFT_ST_FAIL] > 10);
	EXPECT(t, switches > 3000);
	ktap_print("    # ended: RUN %u FAIL %u OFF %u APP %u\n",
		   ended[SHIFT_ST_RUN], ended[SHIFT_ST_FAIL],
		   ended[SHIFT_ST_OFF], ended[SHIFT_ST_APP]);
}

static void a_good_session(struct ktap *t)
{
	stories(t, 20, 0);
}

static void a_bad_session(struct ktap *t)
{
	stories(t, 21, 6);
}

static const struct ktap_case cases[] = {
	KTAP_CASE(a_good_session),
	KTAP_CASE(a_bad_session),
};

KTAP_SUITE(fsm_pair, cases);
