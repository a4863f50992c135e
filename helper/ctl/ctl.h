/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_CTL_H
#define SHIFT_CTL_H

#include <stdbool.h>
#include <json-c/json.h>

#include "lib/netlink.h"

enum { CTL_OK, CTL_FAIL, CTL_USAGE };

struct ctl {
	bool json;
	bool pretty;
	struct shift_nl *nl;
};

/* A command of an object; -1 as @max_args: any number. */
struct ctl_cmd {
	const char *name;
	int (*run)(struct ctl *ctl, int argc, char **argv);
	int min_args;
	int max_args;
	const char *usage;
};

struct ctl_object {
	const char *name;
	const struct ctl_cmd *cmds;	/* the first is the one if none given */
	const char *what;
};

/* A column of a text table: the JSON key it shows. */
struct ctl_column {
	const char *key;
	const char *title;
};

extern const struct ctl_object ctl_node, ctl_pair, ctl_peer, ctl_link, ctl_qp,
	ctl_stat, ctl_key, ctl_monitor, ctl_check;

/* main.c */
int ctl_connect(struct ctl *ctl);
int ctl_refused(struct ctl *ctl, const char *what);
int ctl_number(const char *text, uint32_t *value);
int ctl_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int ctl_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* attr.c */
struct json_object *ctl_attrs(struct nlmsghdr *nlh, struct nlattr **tb);
const char *ctl_str(struct json_object *row, const char *key, const char *none);
const char *ctl_backup(struct json_object *pair, size_t i);
void ctl_put(struct json_object *row, const char *key, const char *text);

/* Instead of an address, which only an administrator is shown. */
#define CTL_HIDDEN	"(hidden)"

/* event.c */
struct json_object *ctl_event(int cmd, struct nlmsghdr *nlh, struct nlattr **tb);

/* print.c */
int ctl_dump(struct ctl *ctl, int cmd, struct json_object **rows);
int ctl_print_json(struct ctl *ctl, struct json_object *any);
int ctl_print_table(struct ctl *ctl, struct json_object *rows,
		    const struct ctl_column *columns);
void ctl_print_fields(struct json_object *row);

#endif /* SHIFT_CTL_H */
