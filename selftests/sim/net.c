// SPDX-License-Identifier: GPL-2.0
/* Both networks, and what becomes of the connections of links over them. */
#include "world.h"

/* a pause of five seconds, and an attempt of three before and after it; and a verb */
#define LINKS_NS	MS(12000)

bool net_passes(int net, int to)
{
	return !dev[0][net].down && !dev[1][net].down && !dev[0][net].dead && !dev[1][net].dead &&
	       sim_now >= sim_net[net].dark[to];
}

bool net_works(int net)
{
	return net_passes(net, 0) && net_passes(net, 1);
}

/* The connections of links break at one end, or (@silent) lose all from now on. */
void net_break(int net, bool silent)
{
	sim_conns_break(net, silent ? -1 : (int)sim_draw(SIM_ENDS));
}

static bool links_up(void)
{
	struct side *s;

	for_each_side(s)
		if (s->alive && !kernel[s->end]->links_up(&s->app))
			return false;
	return true;
}

/* Does an end send heartbeats over its links?  It does if protected QPs use them. */
static bool is_guarded(int end)
{
	bool rest, failed;
	struct side *s;
	u8 path;

	for_each_side(s) {
		if (!s->alive || s->end != end || s->app.loop)
			continue;
		if (!strcmp(kernel[s->end]->shows(&s->app, &rest, &failed, &path), "RUN"))
			return true;
	}
	return false;
}

/* Is a connection in use that loses all, at an end that looks? */
static bool goes_unnoticed(void)
{
	int end;

	for (end = 0; end < SIM_ENDS; end++)
		if (sim_conns_mute(end) && is_guarded(end))
			return true;
	return false;
}

void net_mended(void)
{
	u64 end_ns = sim_now + LINKS_NS + MS(sim_verb_ms);

	while (!links_up() || goes_unnoticed()) {
		/* who changes HELLOs may be refused each time */
		if (sim_now >= end_ns && sim_hostile)
			return;
		if (sim_now >= end_ns)
			sim_fail("%s long after the last fault", links_up() ?
				 "the end of a link's path is not noticed" : "a link is not up");
		sim_sleep(MS(20));
	}
}
