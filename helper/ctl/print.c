// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows of JSON objects, printed as JSON or as a table.
 */
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"

#define COLUMNS_MAX 16

static void collect(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		    void *arg)
{
	(void)cmd;
	json_object_array_add(arg, ctl_attrs(nlh, tb));
}

/* Runs a dump command; on success *@rows is an array to be put. */
int ctl_dump(struct ctl *ctl, int cmd, struct json_object **rows)
{
	int ret = ctl_connect(ctl);

	if (ret)
		return ret;
	*rows = json_object_new_array();
	if (shift_nl_get(ctl->nl, cmd, 1, collect, *rows)) {
		json_object_put(*rows);
		return ctl_refused(ctl, "reading from the kernel");
	}
	return CTL_OK;
}

int ctl_print_json(struct ctl *ctl, struct json_object *any)
{
	puts(json_object_to_json_string_ext(any, ctl->pretty ?
			JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
			JSON_C_TO_STRING_NOSLASHESCAPE :
			JSON_C_TO_STRING_PLAIN |
			JSON_C_TO_STRING_NOSLASHESCAPE));
	return CTL_OK;
}

/*
 * Names of processes come from whoever started them: nothing that a terminal
 * would act on may get through.
 */
static void print_clean(const char *text, int width)
{
	int n = 0;

	for (; *text; text++, n++)
		putchar((unsigned char)*text < 0x20 || *text == 0x7f ?
			'?' : *text);
	for (; n < width; n++)
		putchar(' ');
}

static const char *cell(struct json_object *row, const struct ctl_column *col)
{
	const char *text = ctl_str(row, col->key, "-");

	return *text ? text : "-";
}

int ctl_print_table(struct ctl *ctl, struct json_object *rows,
		    const struct ctl_column *columns)
{
	size_t n = json_object_array_length(rows), i;
	int width[COLUMNS_MAX] = {};
	const char *text;
	int c, w;

	if (ctl->json)
		return ctl_print_json(ctl, rows);
	if (!n)
		return CTL_OK;
	for (c = 0; columns[c].key; c++) {
		width[c] = strlen(columns[c].title);
		for (i = 0; i < n; i++) {
			w = strlen(cell(json_object_array_get_idx(rows, i),
					&columns[c]));
			if (w > width[c])
				width[c] = w;
		}
	}
	for (c = 0; columns[c].key; c++)
		printf("%s%-*s", c ? "  " : "",
		       columns[c + 1].key ? width[c] : 0, columns[c].title);
	putchar('\n');
	for (i = 0; i < n; i++) {
		for (c = 0; columns[c].key; c++) {
			text = cell(json_object_array_get_idx(rows, i),
				    &columns[c]);
			if (c)
				fputs("  ", stdout);
			print_clean(text, columns[c + 1].key ? width[c] : 0);
		}
		putchar('\n');
	}
	return CTL_OK;
}

/* A value as one word: what is listed is separated by commas. */
static void print_value(struct json_object *value)
{
	const char *text;
	size_t i;

	if (json_object_is_type(value, json_type_array)) {
		for (i = 0; i < json_object_array_length(value); i++) {
			if (i)
				putchar(',');
			print_value(json_object_array_get_idx(value, i));
		}
		return;
	}
	text = json_object_get_string(value);
	if (*text && !strpbrk(text, " \t\"")) {
		print_clean(text, 0);
		return;
	}
	putchar('"');
	print_clean(text, 0);
	putchar('"');
}

/* key=value key=value, on one line and without its end. */
void ctl_print_fields(struct json_object *row)
{
	const char *sep = "";

	json_object_object_foreach(row, key, value) {
		printf("%s%s=", sep, key);
		print_value(value);
		sep = " ";
	}
}
