// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous events of the device, told as they come: a switch raises none of a QP, a CQ or
 * an SRQ.  Those of ports and GIDs are what a pulled cable looks like to everybody.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verify.h"

static pthread_t thread;
static int stop;

static bool is_of_port(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		return true;
	default:
		return false;
	}
}

static void *listen_to(void *arg)
{
	struct ibv_context *context = arg;
	struct pollfd fds[] = {
		{ .fd = context->async_fd, .events = POLLIN },
		{ .fd = stop, .events = POLLIN },
	};
	struct ibv_async_event event;

	while (poll(fds, 2, -1) < 0 || !fds[1].revents) {
		if (!(fds[0].revents & POLLIN) || ibv_get_async_event(context, &event))
			continue;
		if (!is_of_port(event.event_type))
			say("async %s", ibv_event_type_str(event.event_type));
		/* one that is not acknowledged has its object's destroy verb wait */
		ibv_ack_async_event(&event);
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			break;		/* and the descriptor is readable from now on */
	}
	return NULL;
}

void async_start(struct side *side)
{
	stop = eventfd(0, EFD_CLOEXEC);
	if (stop < 0 || pthread_create(&thread, NULL, listen_to, side->context))
		die(EXIT_SETUP, "no thread for events: %s", strerror(errno));
}

/* Before the device is closed. */
void async_stop(void)
{
	if (eventfd_write(stop, 1) || pthread_join(thread, NULL))
		die(EXIT_VIOLATION, "the thread for events does not end");
	close(stop);
}
