/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_NOTIFY_H
#define SHIFT_NOTIFY_H

#include <systemd/sd-event.h>

void shift_notify_ready(sd_event *event);
void shift_notify_status(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
void shift_notify_reloading(void);
void shift_notify_reloaded(void);
void shift_notify_stopping(void);

#endif /* SHIFT_NOTIFY_H */
