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

#include "ctl/ctl.h"

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

static void on_event(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		     void *arg)
{
	struct json_object *line = ctl_event(cmd, nlh, tb), *time_ns;
	struct monitor *m = arg;

	if (m->ctl->json) {
		ctl_print_json(m->ctl, line);
	} else {
		if (m->time &&
		    json_object_object_get_ex(line, "time_ns", &time_ns))
			print_time(json_object_get_uint64(time_ns));
		ctl_print_fields(line);
		putchar('\n');
	}
	fflush(stdout);
	json_object_put(line);
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
			ctl_error("events were lost: the kernel sent them faster than they could be read");
		else if (ret)
			return ctl_error("reading events: %s", strerror(-ret));
	}
}

static const struct ctl_cmd cmds[] = {
	{ "", monitor, 0, 1, "[-t]" },
	{}
};

const struct ctl_object ctl_monitor = {
	"monitor", cmds, "print events as they happen; -t adds the local time"
};
