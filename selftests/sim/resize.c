// SPDX-License-Identifier: GPL-2.0
/* An application resizes its shared receive queue, at any time or at one that matters. */
#include "world.h"

/* Is a QP of an end just being fenced? */
static bool any_stops(int end)
{
	bool rest, failed;
	struct side *s;
	u8 path;

	for_each_side(s)
		if (s->end == end && s->alive &&
		    !strcmp(kernel[end]->shows(&s->app, &rest, &failed, &path), "FENCE"))
			return true;
	return false;
}

/* Have all QPs of an end that have left their default path ended? */
static bool away_ended(int end)
{
	bool rest, failed;
	const char *state;
	struct side *s;
	u8 path;

	for_each_side(s) {
		if (s->end != end || !s->alive)
			continue;
		state = kernel[end]->shows(&s->app, &rest, &failed, &path);
		if (!rest || (path && !failed && strcmp(state, "OFF")))
			return false;
	}
	return lib_srq_is_away(end);
}

/*
 * Would a QP that is connected later find no receives?  So it is if others have left the ring, go
 * on elsewhere, and it cannot follow them (Documentation/known-issues.md): QPs cannot where devices
 * are removed.
 */
static bool resize_starves(int end)
{
	return plan.removes && plan.late && lib_srq_is_away(end) && !away_ended(end);
}

/*
 * The moments at which a resize matters: when the receives are about to leave, and when all QPs
 * that were with them have ended.
 */
static bool resize_is_due(int end)
{
	return plan.removes ? away_ended(end) : any_stops(end);
}

static void resize_thread(void *arg)
{
	struct call *call = arg;
	u64 end_ns = sim_now + MS(3000);

	if (plan.joins && (plan.removes || sim_draw(2))) {
		while (!resize_is_due(call->end) && sim_now < end_ns)
			sim_sleep(sim_draw_between(US(10), US(100)));
		sim_sleep(plan.removes ? MS(50) : sim_draw_between(US(1), US(400)));
	}
	if (!resize_starves(call->end))
		lib_srq_resize(call->end);
	kfree(call);
	helpers--;
}

void resize_start(int end)
{
	call_start(end, "application", resize_thread, &(struct call) { .end = end });
}
