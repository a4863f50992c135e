// SPDX-License-Identifier: GPL-2.0-only
/* shiftd: options. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/key.h"
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
	      "      --load-keys     give the kernel the keys of auth_file and exit; as root\n"
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

/*
 * The keyring is root's, and the daemon need not be root: this is a run of its own,
 * before the daemon starts, when the module is loaded, and with each reload.
 */
static int load_keys(const struct shift_config *config)
{
	char err[512];
	int n;

	if (!config->auth_file)
		return 0;
	if (access("/sys/module/rdma_shift", F_OK)) {
		log_info("kernel module rdma_shift is not loaded; it gets its keys when it is");
		return 0;
	}
	n = shift_keys_load(config->auth_file, err, sizeof(err));
	if (n < 0) {
		log_err("%s; the kernel keeps the keys that it has", err);
		return 1;
	}
	log_info("keys: %d of %s", n, config->auth_file);
	return 0;
}

int main(int argc, char **argv)
{
	enum { OPT_CHECK = 256, OPT_LOAD_KEYS, OPT_WITHDRAW, OPT_SYSFS };
	static const struct option long_options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check", no_argument, NULL, OPT_CHECK },
		{ "load-keys", no_argument, NULL, OPT_LOAD_KEYS },
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
	bool check = false, keys = false, debug = false;
	struct shift_config *config;
	char err[512];
	int opt, ret;

	while ((opt = getopt_long(argc, argv, "c:fndVh", long_options,
				  NULL)) != -1) {
		switch (opt) {
		case 'c':
			options.config_path = optarg;
			break;
		case OPT_CHECK:
			check = true;
			break;
		case OPT_LOAD_KEYS:
			keys = true;
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
	if (keys) {
		ret = load_keys(config);
		shift_config_free(config);
		return ret;
	}
	if (shift_secrets_load(config, getenv("CREDENTIALS_DIRECTORY"), err, sizeof(err))) {
		log_err("%s", err);
		shift_config_free(config);
		return 1;
	}
	return shift_daemon_run(&options, config);
}
