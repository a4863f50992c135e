// SPDX-License-Identifier: GPL-2.0-only
/*
 * A RoCE GID is an address of a network interface: when those change, GIDs
 * may have.  What changed is not looked at, the GIDs themselves are.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "shiftd/rtnl.h"

struct rtnl {
	void (*changed)(void *arg);
	void *arg;
};

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct rtnl *rtnl = arg;
	char buf[8192];

	(void)source;
	(void)revents;
	while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) >= 0 ||
	       errno == ENOBUFS || errno == EINTR)
		;
	rtnl->changed(rtnl->arg);
	return 0;
}

static void destroy(void *arg)
{
	free(arg);
}

/**
 * shift_rtnl_watch() - call back when addresses or interfaces change
 * @event: the loop; it owns the watch from now on
 * @changed: called then, often more than once
 * @arg: passed to @changed
 *
 * Return: 0 or -errno.
 */
int shift_rtnl_watch(sd_event *event, void (*changed)(void *arg), void *arg)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
			     RTMGRP_IPV6_IFADDR,
	};
	struct rtnl *rtnl = malloc(sizeof(*rtnl));
	sd_event_source *source;
	int fd, ret;

	if (!rtnl)
		return -ENOMEM;
	rtnl->changed = changed;
	rtnl->arg = arg;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    NETLINK_ROUTE);
	if (fd < 0) {
		ret = -errno;
		goto err_free;
	}
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		ret = -errno;
		goto err_close;
	}
	ret = sd_event_add_io(event, &source, fd, EPOLLIN, on_io, rtnl);
	if (ret < 0)
		goto err_close;
	sd_event_source_set_io_fd_own(source, 1);
	sd_event_source_set_destroy_callback(source, destroy);
	sd_event_source_set_floating(source, 1);
	sd_event_source_unref(source);
	return 0;

err_close:
	close(fd);
err_free:
	free(rtnl);
	return ret;
}
