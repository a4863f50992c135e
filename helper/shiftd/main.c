// SPDX-License-Identifier: GPL-2.0-only
/* shiftd: options. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "shiftd/daemon.h"
#include "shiftd/log.h"
#include "shiftd/secret.h"

#ifndef SHIFT_VERSION
#define SHIFT_VERSION "unknown"
#endif

#define CONFIG_PATH "/etc/shiftd.conf"

static void help(FILE *f)
{
	fputs("Usage: shiftd [OPTION...]\n\n"
	      "  -c, --config FILE   read this configuration (default " CONFIG_PATH ")\n"
	      "      --check         check the configuration and exit\n"
	      "  -f, --foreground    ignored; shiftd always stays in the foreground\n"
	      "  -n, --dry-run       change nothing in the kernel; print what it would be told,\n"
	      "                      as arguments of shiftctl\n"
	      "      --withdraw      when stopped, remove this node from the directory at once\n"
	      "      --sysfs DIR     look for RDMA devices below DIR (default /sys)\n"
	      "  -d, --debug         log more\n"
	      "  -V, --version       print the version\n"
	      "  -h, --help          print this help\n\n"
	      "SIGHUP makes it read the configuration again. SIGTERM stops it; pairs and\n"
	      "peers stay in the kernel.\n", f);
}

int main(int argc, char **argv)
{
	enum { OPT_CHECK = 256, OPT_WITHDRAW, OPT_SYSFS };
	static const struct option long_options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check", no_argument, NULL, OPT_CHECK },
		{ "foreground", no_argument, NULL, 'f' },
		{ "dry-run", no_argument, NULL, 'n' },
		{ "withdraw", no_argument, NULL, OPT_WITHDRAW },
		{ "sysfs", required_argument, NULL, OPT_SYSFS },
		{ "debug", no_argument, NULL, 'd' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct shift_daemon_options options = {
		.config_path = CONFIG_PATH,
		.sysfs = "/sys",
	};
	bool check = false, debug = false;
	struct shift_config *config;
	char err[512];
	int opt;

	while ((opt = getopt_long(argc, argv, "c:fndVh", long_options,
				  NULL)) != -1) {
		switch (opt) {
		case 'c':
			options.config_path = optarg;
			break;
		case OPT_CHECK:
			check = true;
			break;
		case 'f':
			break;
		case 'n':
			options.dry_run = true;
			break;
		case OPT_WITHDRAW:
			options.withdraw = true;
			break;
		case OPT_SYSFS:
			options.sysfs = optarg;
			break;
		case 'd':
			debug = true;
			break;
		case 'V':
			puts("shiftd " SHIFT_VERSION);
			return 0;
		case 'h':
			help(stdout);
			return 0;
		default:
			help(stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "shiftd: unexpected argument '%s'\n",
			argv[optind]);
		help(stderr);
		return 2;
	}
	shift_log_init(debug);
	config = shift_config_load(options.config_path, err, sizeof(err));
	if (!config) {
		log_err("%s", err);
		return 1;
	}
	if (check) {
		shift_secrets_warn(config);
		shift_config_free(config);
		return 0;
	}
	if (shift_secrets_load(config, getenv("CREDENTIALS_DIRECTORY"), err, sizeof(err))) {
		log_err("%s", err);
		shift_config_free(config);
		return 1;
	}
	return shift_daemon_run(&options, config);
}
