// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cluster's keys, before links are made: a link that was made without a key
 * stays unproven until it is connected again.
 *
 * The kernel's keyring is root's.  A daemon that is not root has them loaded by its
 * service: "shiftd --load-keys".
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/key.h"
#include "shiftd/log.h"
#include "shiftd/sync_keys.h"

static bool is_loaded(const struct shift_sync_keys *s, const struct shift_kernel *k,
		      const struct stat *st)
{
	return s->n && s->n == k->keys && s->changed.tv_sec == st->st_mtim.tv_sec &&
	       s->changed.tv_nsec == st->st_mtim.tv_nsec;
}

/**
 * shift_sync_keys() - give the kernel the keys of the configured file
 * @s: zeroed before the first call
 * @k: as just read
 * @config: the configuration
 *
 * Return: false if the kernel has none, although it should: no pair and no peer must be set.
 */
bool shift_sync_keys(struct shift_sync_keys *s, struct shift_kernel *k,
		     const struct shift_config *config)
{
	struct stat st = {};
	char err[512];
	int n;

	if (!config->auth_file)
		return true;
	if (k->dry_run) {
		if (!s->n)
			printf("key load %s\n", config->auth_file);
		s->n = 1;
		return true;
	}
	if (geteuid()) {
		if (k->keys)
			s->told = 0;
		else
			log_warn_once(&s->told, "the kernel has no key of %s; no pair and no peer is set without it; load it with: systemctl reload shiftd",
				      config->auth_file);
		return k->keys;
	}
	if (!stat(config->auth_file, &st) && is_loaded(s, k, &st))
		return true;
	n = shift_keys_load(config->auth_file, err, sizeof(err));
	if (n < 0) {
		log_warn_once(&s->told, "%s; %s", err, k->keys ?
			      "the keys of before are kept" : "no pair and no peer is set without it");
		return k->keys;
	}
	log_info("keys: %d of %s", n, config->auth_file);
	s->changed = st.st_mtim;
	s->n = (unsigned int)n;
	s->told = 0;
	k->keys = s->n;
	return true;
}
