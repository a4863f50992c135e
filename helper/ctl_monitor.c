// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftctl monitor: one line per event, as it comes.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl.h"

struct monitor {
	struct ctl *ctl;
	bool time;
};

static void print_time(uint64_t ns)
{
	time_t sec = ns / 1000000000;
	char text[32];
	struct tm tm;

	if (!localtime_r(&sec, &tm) ||
	    !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		return;
	printf("[%s.%06u] ", text, (unsigned int)(ns % 1000000000 / 1000));
}

static const char *object_of(int cmd)
{
	switch (cmd) {
	case SHIFT_CMD_PAIR_NTF:
		return "pair";
	case SHIFT_CMD_LINK_NTF:
		return "link";
	case SHIFT_CMD_QP_NTF:
		return "qp";
	}
	return NULL;
}

static void on_event(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		     void *arg)
{
	struct monitor *m = arg;
	struct json_object *row, *line;
	const char *object = object_of(cmd);
	struct timespec now;
	uint64_t ns;

	/* A newer kernel's event that this program cannot name. */
	if (!object)
		return;
	if (tb[SHIFT_A_TIME_NS]) {
		ns = nla_get_u64(tb[SHIFT_A_TIME_NS]);
	} else {
		clock_gettime(CLOCK_REALTIME, &now);
		ns = now.tv_sec * 1000000000ULL + now.tv_nsec;
	}
	row = ctl_attrs(nlh, tb);
	line = json_object_new_object();
	json_object_object_add(line, "time_ns", json_object_new_uint64(ns));
	ctl_put(line, "object", object);
	if (cmd == SHIFT_CMD_PAIR_NTF) {
		ctl_put(line, "event", tb[SHIFT_A_ADDED] ? "added" : "removed");
		json_object_object_del(row, "added");
	} else if (cmd == SHIFT_CMD_LINK_NTF) {
		ctl_put(line, "event", "state");
	} else if (tb[SHIFT_A_QP_EVENT]) {
		ctl_put(line, "event", ctl_str(row, "event", ""));
	}
	json_object_object_foreach(row, key, value)
		json_object_object_add(line, key, json_object_get(value));
	if (m->ctl->json) {
		ctl_print_json(m->ctl, line);
	} else {
		if (m->time)
			print_time(ns);
		ctl_print_fields(line);
		putchar('\n');
	}
	fflush(stdout);
	json_object_put(line);
	json_object_put(row);
}

static int monitor(struct ctl *ctl, int argc, char **argv)
{
	struct monitor m = { .ctl = ctl };
	struct pollfd pfd[2];
	int ret;

	if (argc && (!strcmp(argv[0], "-t") || !strcmp(argv[0], "--time")))
		m.time = true;
	else if (argc)
		return ctl_usage("monitor: unknown argument '%s'", argv[0]);
	ret = ctl_connect(ctl);
	if (ret)
		return ret;
	if (shift_nl_subscribe(ctl->nl))
		return ctl_refused(ctl, "monitor");
	pfd[0].fd = shift_nl_fd(ctl->nl);
	pfd[0].events = POLLIN;
	/* A reader that went away is noticed without waiting for an event. */
	pfd[1].fd = fileno(stdout);
	pfd[1].events = 0;
	for (;;) {
		if (poll(pfd, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return ctl_error("poll: %s", strerror(errno));
		}
		if (pfd[1].revents & (POLLERR | POLLHUP))
			return CTL_OK;
		ret = shift_nl_receive(ctl->nl, on_event, &m);
		if (ret == -ENOBUFS)
			ctl_error("events were lost: the kernel sent them faster than they were read");
		else if (ret)
			return ctl_error("reading events: %s", strerror(-ret));
	}
}

static const struct ctl_cmd cmds[] = {
	{ "", monitor, 0, 1, "[-t]" },
	{}
};

const struct ctl_object ctl_monitor = {
	"monitor", cmds, "events as they come; -t puts the local time before each"
};
