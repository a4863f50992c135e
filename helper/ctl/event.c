// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of the kernel as JSON objects, those of newer kernels included.
 */
#include <stdio.h>
#include <time.h>

#include "ctl/ctl.h"

/* The object of a line, and its event if the message itself has none. */
static const char *object_of(int cmd, struct nlattr **tb, const char **event,
			     char buf[32])
{
	*event = NULL;
	switch (cmd) {
	case SHIFT_CMD_PAIR_NTF:
		/* an older kernel does not tell a pair that was changed from a new one */
		*event = tb[SHIFT_A_CHANGED] ? "changed" : tb[SHIFT_A_ADDED] ? "added" : "removed";
		return "pair";
	case SHIFT_CMD_LINK_NTF:
		*event = "state";
		return "link";
	case SHIFT_CMD_QP_NTF:
		return "qp";
	}
	/* A newer kernel's, which this program cannot name. */
	snprintf(buf, 32, "event-%d", cmd);
	*event = buf;
	return "unknown";
}

/* A kernel that knows no event of its own for it calls a move a fault. */
static bool is_move(struct nlattr **tb)
{
	return tb[SHIFT_A_QP_EVENT] && tb[SHIFT_A_CAUSE] &&
	       nla_get_u32(tb[SHIFT_A_QP_EVENT]) == SHIFT_QP_EV_FAULT &&
	       nla_get_u32(tb[SHIFT_A_CAUSE]) == SHIFT_CAUSE_OPERATOR;
}

/**
 * ctl_event() - an event as a JSON object
 * @cmd: of the message
 * @nlh: the message
 * @tb: its attributes
 *
 * Return: time_ns, object and event, then what the message has besides.
 */
struct json_object *ctl_event(int cmd, struct nlmsghdr *nlh, struct nlattr **tb)
{
	struct json_object *row = ctl_attrs(nlh, tb), *line;
	const char *object, *event;
	struct timespec now;
	char buf[32];
	uint64_t ns;

	if (tb[SHIFT_A_TIME_NS]) {
		ns = nla_get_u64(tb[SHIFT_A_TIME_NS]);
	} else {
		clock_gettime(CLOCK_REALTIME, &now);
		ns = now.tv_sec * 1000000000ULL + now.tv_nsec;
	}
	object = object_of(cmd, tb, &event, buf);
	if (is_move(tb))
		event = "move";
	if (!event)
		event = ctl_str(row, "event", "unknown");
	line = json_object_new_object();
	json_object_object_add(line, "time_ns", json_object_new_uint64(ns));
	ctl_put(line, "object", object);
	ctl_put(line, "event", event);
	json_object_object_del(row, "added");
	json_object_object_del(row, "event");
	json_object_object_foreach(row, key, value)
		json_object_object_add(line, key, json_object_get(value));
	json_object_put(row);
	return line;
}
