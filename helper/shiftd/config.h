/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_CONFIG_H
#define SHIFT_CONFIG_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/peer.h"

#define SHIFT_PAIRS_MAX		SHIFT_PEER_NICS_MAX
#define SHIFT_ENDPOINTS_MAX	16
#define SHIFT_STATIC_PEERS_MAX	1024
#define SHIFT_EXPELLED_MAX	64

struct shift_config_pair {
	int line;
	char dev[SHIFT_DEV_MAX];
	unsigned int n_backups;
	char backups[SHIFT_PAIR_BACKUPS_MAX][SHIFT_DEV_MAX];
	int policy;			/* enum shift_policy */
};

struct shift_config {
	char node[SHIFT_NODE_MAX];
	char *auth_file;		/* keys of the cluster; NULL: none */
	/* nodes that are no peers, whatever the directory says */
	unsigned int n_expelled;
	char expelled[SHIFT_EXPELLED_MAX][SHIFT_NODE_MAX];

	unsigned int n_pairs;
	struct shift_config_pair pairs[SHIFT_PAIRS_MAX];

	/* No endpoint: no directory, static peers only. */
	unsigned int n_endpoints;
	char *endpoints[SHIFT_ENDPOINTS_MAX];
	char *prefix;
	unsigned int lease_ttl;		/* seconds */
	unsigned int hold;		/* seconds */
	bool withdraw;
	char *ca_file, *cert_file, *key_file;
	char *user, *password, *password_file;

	/* Going back to the default NIC. */
	bool failback;
	unsigned int failback_hold;	/* seconds */
	unsigned int failback_max_hold;	/* seconds */
	unsigned int failback_probe;	/* seconds, 0: none */

	unsigned int n_peers;
	struct shift_peer **peers;
};

struct shift_config *shift_config_parse(FILE *f, const char *name, char *err,
					size_t errlen);
struct shift_config *shift_config_load(const char *path, char *err,
				       size_t errlen);
void shift_config_free(struct shift_config *config);
const char *shift_config_clear_endpoint(const struct shift_config *config);
bool shift_config_expels(const struct shift_config *config, const char *node);
bool shift_config_same_etcd(const struct shift_config *a,
			    const struct shift_config *b);

#endif /* SHIFT_CONFIG_H */
