// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftctl shows and sets what the kernel module does.  It talks to the kernel
 * only: all of it works without shiftd and without a directory.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

#ifndef SHIFT_VERSION
#define SHIFT_VERSION "unknown"
#endif

static const struct ctl_object * const objects[] = {
	&ctl_node, &ctl_pair, &ctl_peer, &ctl_link, &ctl_qp, &ctl_stat,
	&ctl_key, &ctl_monitor, &ctl_check, NULL
};

/* In one piece: others may write to the same place. */
static void __attribute__((format(printf, 1, 0)))
verror(const char *fmt, va_list args)
{
	char line[1024];

	vsnprintf(line, sizeof(line), fmt, args);
	fprintf(stderr, "shiftctl: %s\n", line);
}

int ctl_usage(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	verror(fmt, args);
	va_end(args);
	return CTL_USAGE;
}

int ctl_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	verror(fmt, args);
	va_end(args);
	return CTL_FAIL;
}

/* A number on the command line. */
int ctl_number(const char *text, uint32_t *value)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (n > UINT_MAX || errno || *end || *text < '0' || *text > '9')
		return ctl_usage("'%s' is not a number", text);
	*value = n;
	return CTL_OK;
}

/* The kernel said no to @what: its own words come first. */
int ctl_refused(struct ctl *ctl, const char *what)
{
	return ctl_error("%s: %s", what, shift_nl_error(ctl->nl));
}

int ctl_connect(struct ctl *ctl)
{
	int ret;

	if (ctl->nl)
		return CTL_OK;
	ret = shift_nl_open(&ctl->nl);
	if (ret == -ENOENT)
		return ctl_error("kernel module rdma_shift is not loaded (modprobe rdma_shift)");
	if (ret)
		return ctl_error("cannot open generic netlink: %s",
				 strerror(-ret));
	return CTL_OK;
}

static void help(FILE *f)
{
	int i;

	fputs("Usage: shiftctl [-j] [-p] OBJECT { COMMAND | help }\n"
	      "       shiftctl { -V | -h }\n\n"
	      "  -j, --json     print JSON\n"
	      "  -p, --pretty   indent the JSON\n"
	      "  -V, --version  print the version\n"
	      "  -h, --help     print this help\n\n"
	      "Objects and commands may be abbreviated. The objects are:\n", f);
	for (i = 0; objects[i]; i++)
		fprintf(f, "  %-9s%s\n", objects[i]->name, objects[i]->what);
	fputs("\n'shiftctl OBJECT help' lists the commands of an object.\n"
	      "Exit status: 0 done, 1 refused or failed, 2 wrong usage.\n", f);
}

static void object_help(const struct ctl_object *object, FILE *f)
{
	const struct ctl_cmd *cmd;

	for (cmd = object->cmds; cmd->name; cmd++) {
		/* A nameless command is reached by the object's name alone. */
		fprintf(f, "%s shiftctl %s%s%s%s%s\n",
			cmd == object->cmds ? "Usage:" : "      ",
			object->name, *cmd->name ? " " : "", cmd->name,
			*cmd->usage ? " " : "", cmd->usage);
	}
}

static int run_object(struct ctl *ctl, const struct ctl_object *object,
		      int argc, char **argv)
{
	const struct ctl_cmd *cmd = object->cmds;

	if (argc && (!strcmp(argv[0], "help") || !strcmp(argv[0], "-h") ||
		     !strcmp(argv[0], "--help"))) {
		object_help(object, stdout);
		return CTL_OK;
	}
	if (*cmd->name && argc) {
		for (; cmd->name; cmd++)
			if (!strncmp(cmd->name, argv[0], strlen(argv[0])))
				break;
		if (!cmd->name || !*argv[0]) {
			ctl_usage("unknown command '%s %s'", object->name,
				  argv[0]);
			object_help(object, stderr);
			return CTL_USAGE;
		}
		argc--;
		argv++;
		if (argc == 1 && !strcmp(argv[0], "help")) {
			object_help(object, stdout);
			return CTL_OK;
		}
	}
	if (argc < cmd->min_args ||
	    (cmd->max_args >= 0 && argc > cmd->max_args)) {
		ctl_usage("%s%s%s: too %s arguments", object->name,
			  *cmd->name ? " " : "", cmd->name,
			  argc < cmd->min_args ? "few" : "many");
		object_help(object, stderr);
		return CTL_USAGE;
	}
	return cmd->run(ctl, argc, argv);
}

int main(int argc, char **argv)
{
	struct ctl ctl = {};
	int i, ret;

	for (argc--, argv++; argc && argv[0][0] == '-'; argc--, argv++) {
		const char *opt = argv[0];

		if (!strcmp(opt, "-j") || !strcmp(opt, "--json")) {
			ctl.json = true;
		} else if (!strcmp(opt, "-p") || !strcmp(opt, "--pretty")) {
			ctl.pretty = true;
		} else if (!strcmp(opt, "-jp") || !strcmp(opt, "-pj")) {
			ctl.json = true;
			ctl.pretty = true;
		} else if (!strcmp(opt, "-V") || !strcmp(opt, "--version")) {
			puts("shiftctl " SHIFT_VERSION);
			return CTL_OK;
		} else if (!strcmp(opt, "-h") || !strcmp(opt, "--help")) {
			help(stdout);
			return CTL_OK;
		} else {
			ctl_usage("unknown option '%s'", opt);
			help(stderr);
			return CTL_USAGE;
		}
	}
	if (!argc) {
		help(stderr);
		return CTL_USAGE;
	}
	if (!strcmp(argv[0], "help")) {
		help(stdout);
		return CTL_OK;
	}
	for (i = 0; objects[i]; i++)
		if (*argv[0] &&
		    !strncmp(objects[i]->name, argv[0], strlen(argv[0])))
			break;
	if (!objects[i]) {
		ctl_usage("unknown object '%s'", argv[0]);
		help(stderr);
		return CTL_USAGE;
	}
	ret = run_object(&ctl, objects[i], argc - 1, argv + 1);
	shift_nl_close(ctl.nl);
	/* Output that went nowhere is a failure a script must see. */
	if (fflush(stdout) || ferror(stdout)) {
		if (ret == CTL_OK)
			ret = ctl_error("cannot write the output: %s",
					strerror(errno));
	}
	return ret;
}
