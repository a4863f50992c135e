/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_SHIFTD_REPORT_H
#define SHIFT_SHIFTD_REPORT_H

#include "shiftd/config.h"
#include "shiftd/etcd/etcd.h"

struct shift_report;

struct shift_report *shift_report_new(const char *folder);
void shift_report_free(struct shift_report *report);
void shift_report_write(struct shift_report *report, const struct shift_config *config,
			const struct shift_etcd *etcd);

#endif /* SHIFT_SHIFTD_REPORT_H */
