/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_RTNL_H
#define SHIFT_RTNL_H

#include <systemd/sd-event.h>

int shift_rtnl_watch(sd_event *event, void (*changed)(void *arg), void *arg);

#endif /* SHIFT_RTNL_H */
