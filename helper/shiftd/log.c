// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lines on stderr; under systemd with the "<N>" prefix that gives each its
 * level in the journal.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shiftd/log.h"

static bool to_journal;
static int max_level = LOG_INFO;

void shift_log_init(bool debug)
{
	to_journal = getenv("JOURNAL_STREAM") != NULL;
	max_level = debug ? LOG_DEBUG : LOG_INFO;
}

void shift_log(int level, const char *fmt, ...)
{
	char line[1024];
	va_list args;
	char *c;

	if (level > max_level)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	/* Parts may come from the directory: no one may forge a line. */
	for (c = line; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	if (to_journal)
		fprintf(stderr, "<%d>%s\n", level, line);
	else
		fprintf(stderr, "shiftd: %s%s\n",
			level <= LOG_ERR ? "error: " :
			level == LOG_WARNING ? "warning: " : "", line);
}

static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h ? h : 1;
}

void log_warn_once(uint32_t *told, const char *fmt, ...)
{
	char line[1024];
	va_list args;
	uint32_t h;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	h = hash(line);
	if (*told == h)
		return;
	*told = h;
	log_warn("%s", line);
}
