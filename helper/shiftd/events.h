/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_EVENTS_H
#define SHIFT_EVENTS_H

#include <systemd/sd-event.h>

struct shift_events;

int shift_events_open(sd_event *event, void (*kick)(void *arg), void *arg,
		      struct shift_events **eventsp);
void shift_events_close(struct shift_events *events);

#endif /* SHIFT_EVENTS_H */
