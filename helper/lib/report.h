/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What shiftd, as a service, has found out and "shiftctl check" shows: lines of "ok" or
 * "warn", a blank and a sentence.
 */
#ifndef SHIFT_REPORT_H
#define SHIFT_REPORT_H

#include <stdio.h>

#define SHIFT_REPORT_NAME	"report"
#define SHIFT_REPORT_PATH	"/run/shiftd/" SHIFT_REPORT_NAME

FILE *shift_report_open(const char *path);

#endif /* SHIFT_REPORT_H */
