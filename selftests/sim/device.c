// SPDX-License-Identifier: GPL-2.0
/* Devices that are removed and come back, and pairs that are deleted and made anew. */
#include "cm_id.h"
#include <uapi/linux/shift.h>

static void device_set(int end, int net, bool there)
{
	sim_become(end);
	kernel[end]->device(net, there);
	sim_become(-1);
}

static int pair_set(int end, bool there)
{
	int err;

	sim_become(end);
	err = kernel[end]->pair(there, plan.policy[end]);
	sim_become(-1);
	return err;
}

static bool has_qps(int end)
{
	struct side *s;

	for_each_side(s)
		if (s->alive && s->end == end)
			return true;
	return false;
}

/* An operator wants a pair deleted that applications use: it is refused, and nothing changes. */
void pair_is_kept(int end)
{
	bool used = has_qps(end) && !device_is_gone(end, 0) && !device_is_gone(end, 1);
	int err;

	if (!used)
		return;
	err = pair_set(end, false);
	if (err != -EBUSY)
		sim_fail("a pair that is in use is deleted (%d)", err);
}

/* No application uses the pair of an end. */
void pair_anew(int end)
{
	u32 verbs = sim_verb_odds, memory = sim_memory_upsets(0);
	int err;

	sim_verb_odds = 0;
	err = pair_set(end, false);
	if (err)
		sim_fail("a pair that nobody uses is not deleted (%d)", err);
	err = pair_set(end, true);
	if (err)
		sim_fail("a pair cannot be made anew (%d)", err);
	sim_verb_odds = verbs;
	sim_memory_upsets(memory);
}

bool device_is_gone(int end, int net)
{
	return dev[end][net].gone;
}

/*
 * The module lets go of the device first, as its client is the last one that was registered.
 * RDMA CM accepts requests until it is told, too.  Then what applications have on the device is
 * destroyed.
 */
void device_goes(int end, int net)
{
	struct side *s;

	if (dev[end][net].gone)
		return;
	may_fail = true;
	unpaired = true;
	shared[end].gone = true;
	device_set(end, net, false);
	if (sim_draw(2))
		sim_sleep(sim_draw_between(US(10), MS(2)));
	dev[end][net].dead = true;
	dev[end][net].gone = true;
	cm_device_gone(end, net);
	if (!net) {
		for_each_side(s) {
			if (s->end != end || !s->alive)
				continue;
			s->crashed = true;
			while (!s->over)
				sim_sleep(MS(1));
		}
		while (helpers)
			sim_sleep(MS(1));
		sides_destroy(end);
	}
	sim_log("%c device %d is gone", 'a' + end, net);
	if (sim_qps_left(end, net))
		sim_fail("a QP is left on a device that is removed");
}

/* All devices are there again, and each end has its pair. */
void devices_return(void)
{
	u32 memory = sim_memory_upsets(0);
	int end, net, err;

	for (end = 0; end < SIM_ENDS; end++) {
		bool back = false;

		for (net = 0; net < SIM_NETS; net++) {
			if (!dev[end][net].gone)
				continue;
			dev[end][net].gone = false;
			dev[end][net].dead = false;
			sim_log("%c device %d is back", 'a' + end, net);
			device_set(end, net, true);
			back = true;
		}
		err = back ? pair_set(end, true) : 0;
		if (err)
			sim_fail("a device that is back cannot be paired (%d)", err);
	}
	sim_memory_upsets(memory);
}

static bool is_quiet(void)
{
	bool rest, failed;
	struct side *s;
	u8 path;

	for_each_side(s) {
		if (!s->alive || s->posted > s->completed ||
		    s->posted < s->ops * (phase + 1) / (plan.faults + 1))
			return false;
		if (strcmp(kernel[s->end]->shows(&s->app, &rest, &failed, &path), "RUN"))
			return false;
	}
	return true;
}

/*
 * An application registers its memory anew when nobody uses it.  Its peers post for it again as soon
 * as that is over; if links break, only when they are up.
 */
void memory_anew(int end, bool breaks)
{
	u32 tries;

	for (tries = 0; !is_quiet(); tries++) {
		if (tries == 500)
			return;
		sim_sleep(MS(1));
	}
	if (breaks) {
		/* QPs leave a path that is silent */
		harmed = true;
		sim_conns_break(0, end);
		sim_conns_break(1, end);
	}
	sim_become(end);
	kernel[end]->memory();
	sim_become(-1);
	if (breaks)
		sim_sleep(MS(2000));
	net_mended();
}

/* A mirror had this key before. */
void sim_refused(int end, u32 rkey)
{
	if (rkey != dev[end][1].mr.rkey && (rkey & 0xffff) == (dev[end][1].mr.rkey & 0xffff) &&
	    !may_fail)
		sim_fail("end %d is written to with the key of memory that was deregistered", end);
}
