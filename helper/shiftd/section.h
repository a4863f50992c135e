/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sections of shiftd.conf and their keys, for config.c alone.
 */
#ifndef SHIFT_SECTION_H
#define SHIFT_SECTION_H

#include "shiftd/config.h"

enum section { NONE, NODE, PAIR, ETCD, FAILBACK, PEER };

struct conf_parser {
	struct shift_config *config;
	const char *name;
	int line;
	enum section section;
	bool seen[PEER];	/* sections that may come once */
	char *err;
	size_t errlen;
};

int conf_fail(struct conf_parser *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
char *conf_trim(char *text);
int conf_section(struct conf_parser *p, char *text);
int conf_key(struct conf_parser *p, const char *key, char *value);

#endif /* SHIFT_SECTION_H */
