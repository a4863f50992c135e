// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of the kernel: what an operator finds in the log, and when the kernel
 * is looked at again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "lib/gid.h"
#include "lib/names.h"
#include "lib/netlink.h"
#include "shiftd/events.h"
#include "shiftd/log.h"

#define SUMMARY_USEC	500000

struct shift_events {
	struct shift_nl *nl;
	sd_event_source *io, *summary_timer;
	void (*kick)(void *arg);
	void *arg;

	/* QP events since the last summary */
	unsigned int replayed, failed;
	char dev[SHIFT_DEV_MAX];
	unsigned int cause, path;
};

static int on_summary(sd_event_source *source, uint64_t usec, void *arg)
{
	struct shift_events *e = arg;
	char buf[SHIFT_NAME_NUMBER];

	(void)source;
	(void)usec;
	if (e->replayed)
		log_info("%s: %u QP(s) of %s run on %s now, cause %s",
			 e->cause == SHIFT_CAUSE_OPERATOR ? "move" : "failover",
			 e->replayed, e->dev,
			 e->path == 1 ? "the backup" : "their own NIC",
			 shift_name_of(&shift_cause_names, e->cause, buf));
	if (e->failed)
		log_warn("failover: %u QP(s) of %s could not be moved; their applications get the error",
			 e->failed, e->dev);
	e->replayed = 0;
	e->failed = 0;
	return 0;
}

static void on_qp_event(struct shift_events *e, struct nlattr **tb)
{
	unsigned int event;

	if (!tb[SHIFT_A_QP_EVENT])
		return;
	event = nla_get_u32(tb[SHIFT_A_QP_EVENT]);
	if (event != SHIFT_QP_EV_REPLAYED && event != SHIFT_QP_EV_FAILED)
		return;
	if (tb[SHIFT_A_DEV])
		nla_strlcpy(e->dev, tb[SHIFT_A_DEV],
			    sizeof(e->dev));
	if (tb[SHIFT_A_CAUSE])
		e->cause = nla_get_u32(tb[SHIFT_A_CAUSE]);
	if (tb[SHIFT_A_PATH])
		e->path = nla_get_u32(tb[SHIFT_A_PATH]);
	/* A thousand QPs move at once: one line for them. */
	if (!e->replayed && !e->failed) {
		sd_event_source_set_time_relative(e->summary_timer,
						  SUMMARY_USEC);
		sd_event_source_set_enabled(e->summary_timer,
					    SD_EVENT_ONESHOT);
	}
	/* They want to go back some day. */
	e->kick(e->arg);
	if (event == SHIFT_QP_EV_REPLAYED)
		e->replayed++;
	else
		e->failed++;
}

static void on_event(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		     void *arg)
{
	struct shift_events *e = arg;
	char buf[SHIFT_NAME_NUMBER], text[SHIFT_GID_TEXT] = "?";
	struct shift_gid gid;

	(void)nlh;
	if (cmd == SHIFT_CMD_PAIR_NTF) {
		e->kick(e->arg);
	} else if (cmd == SHIFT_CMD_QP_NTF) {
		on_qp_event(e, tb);
	} else if (cmd == SHIFT_CMD_LINK_NTF && tb[SHIFT_A_LINK_STATE]) {
		if (tb[SHIFT_A_REMOTE_GID]) {
			memcpy(gid.raw, nla_data(tb[SHIFT_A_REMOTE_GID]),
			       sizeof(gid.raw));
			shift_gid_format(&gid, text);
		}
		log_info("link from %s to %s %s: %s",
			 tb[SHIFT_A_DEV] ? nla_get_string(tb[SHIFT_A_DEV]) :
			 "?", tb[SHIFT_A_NODE] ?
			 nla_get_string(tb[SHIFT_A_NODE]) : "node", text,
			 shift_name_of(&shift_link_state_names,
				       nla_get_u32(tb[SHIFT_A_LINK_STATE]),
				       buf));
	}
}

static int on_events_io(sd_event_source *source, int fd, uint32_t revents,
			void *arg)
{
	struct shift_events *e = arg;
	int ret;

	(void)source;
	(void)fd;
	(void)revents;
	ret = shift_nl_receive(e->nl, on_event, e);
	if (ret)
		log_debug("events: %s", strerror(-ret));
	/* Some were lost: what they told is read instead. */
	if (ret == -ENOBUFS)
		e->kick(e->arg);
	return 0;
}

/**
 * shift_events_open() - listen to the kernel
 * @event: the loop
 * @kick: called when the kernel is to be looked at again
 * @arg: passed to @kick
 * @eventsp: result, to be closed
 *
 * Return: 0 or -errno.
 */
int shift_events_open(sd_event *event, void (*kick)(void *arg), void *arg,
		      struct shift_events **eventsp)
{
	struct shift_events *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return -ENOMEM;
	e->kick = kick;
	e->arg = arg;
	ret = shift_nl_open(&e->nl);
	if (!ret)
		ret = shift_nl_subscribe(e->nl);
	if (!ret)
		ret = sd_event_add_io(event, &e->io, shift_nl_fd(e->nl),
				      EPOLLIN, on_events_io, e);
	if (ret >= 0)
		ret = sd_event_add_time(event, &e->summary_timer,
					CLOCK_MONOTONIC, 0, 10000, on_summary,
					e);
	if (ret < 0) {
		shift_events_close(e);
		return ret;
	}
	sd_event_source_set_enabled(e->summary_timer, SD_EVENT_OFF);
	*eventsp = e;
	return 0;
}

void shift_events_close(struct shift_events *e)
{
	if (!e)
		return;
	sd_event_source_disable_unref(e->io);
	sd_event_source_disable_unref(e->summary_timer);
	shift_nl_close(e->nl);
	free(e);
}
