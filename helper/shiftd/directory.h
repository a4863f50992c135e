/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the directory says, as far as it can be believed: entries by GID, and
 * the peers made of them.  Pure: no I/O but log lines, time is passed in.
 */
#ifndef SHIFT_DIRECTORY_H
#define SHIFT_DIRECTORY_H

#include <stdint.h>

#include "shiftd/entry.h"

#define SHIFT_DIR_ENTRIES_MAX	16384
#define SHIFT_DIR_PEERS_MAX	4096

struct shift_dir;

struct shift_peers {
	size_t n;
	struct shift_peer **peer;	/* by name */
};

struct shift_dir *shift_dir_new(void);
void shift_dir_free(struct shift_dir *dir);
int shift_dir_self(struct shift_dir *dir, const char *node, const char *boot_id,
		   const struct shift_gid *gids, size_t n_gids);

void shift_dir_put(struct shift_dir *dir, const char *key, size_t key_len,
		   const char *value, size_t value_len, int64_t create_rev,
		   int64_t mod_rev, uint64_t now_ms);
void shift_dir_delete(struct shift_dir *dir, const char *key, size_t key_len,
		      uint64_t now_ms);
void shift_dir_list_begin(struct shift_dir *dir);
void shift_dir_list_end(struct shift_dir *dir, uint64_t now_ms);
uint64_t shift_dir_expire(struct shift_dir *dir, uint64_t now_ms,
			  uint64_t hold_ms);
size_t shift_dir_count(const struct shift_dir *dir);

int shift_dir_peers(struct shift_dir *dir, struct shift_peers *peers);

int shift_peers_add(struct shift_peers *peers, const struct shift_peer *peer);
struct shift_peer *shift_peers_find(const struct shift_peers *peers,
				    const char *node);
void shift_peers_remove(struct shift_peers *peers, const char *node);
void shift_peers_clear(struct shift_peers *peers);

#endif /* SHIFT_DIRECTORY_H */
