// SPDX-License-Identifier: GPL-2.0-only
/* All that is said to the service manager. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <systemd/sd-daemon.h>

#include "shiftd/log.h"
#include "shiftd/notify.h"

void shift_notify_ready(sd_event *event)
{
	/* Pings from the loop itself: a loop that hangs is one that is dead. */
	if (sd_event_set_watchdog(event, 1) > 0)
		log_debug("watchdog armed");
	sd_notify(0, "READY=1");
}

void shift_notify_status(const char *fmt, ...)
{
	static char last[256];
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (!strcmp(text, last))
		return;
	strcpy(last, text);
	sd_notifyf(0, "STATUS=%s", text);
}

void shift_notify_reloading(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
		   now.tv_sec * 1000000ULL + now.tv_nsec / 1000);
}

void shift_notify_reloaded(void)
{
	sd_notify(0, "READY=1");
}

void shift_notify_stopping(void)
{
	sd_notify(0, "STOPPING=1");
}
