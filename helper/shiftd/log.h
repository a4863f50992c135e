/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_LOG_H
#define SHIFT_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <syslog.h>

void shift_log_init(bool debug);
void shift_log(int level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * A warning that is not repeated until its text is another one: @told is 0 at
 * first, and set to 0 again when what was complained of is over.
 */
void log_warn_once(uint32_t *told, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define log_err(...)	shift_log(LOG_ERR, __VA_ARGS__)
#define log_warn(...)	shift_log(LOG_WARNING, __VA_ARGS__)
#define log_info(...)	shift_log(LOG_INFO, __VA_ARGS__)
#define log_debug(...)	shift_log(LOG_DEBUG, __VA_ARGS__)

#endif /* SHIFT_LOG_H */
