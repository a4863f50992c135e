/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One entry of the directory: a default NIC of some node and what stands in
 * for it.  Its key is PREFIX/nics/NODE/GID, its value JSON.
 */
#ifndef SHIFT_ENTRY_H
#define SHIFT_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include "lib/peer.h"

#define SHIFT_ENTRY_VERSION	1
#define SHIFT_BOOT_ID_TEXT	37
#define SHIFT_KEY_TEXT		(SHIFT_NODE_MAX + SHIFT_GID_TEXT)

struct shift_entry_backup {
	char dev[SHIFT_DEV_MAX];
	struct shift_gid gid;
};

struct shift_entry {
	struct shift_gid gid;
	char node[SHIFT_NODE_MAX];
	char boot_id[SHIFT_BOOT_ID_TEXT];
	char dev[SHIFT_DEV_MAX];
	unsigned int n_backups;
	struct shift_entry_backup backups[SHIFT_BACKUPS_MAX];
};

char *shift_entry_key(const struct shift_entry *entry, char text[SHIFT_KEY_TEXT]);
char *shift_entry_encode(const struct shift_entry *entry);
int shift_entry_decode(const char *text, size_t len, struct shift_entry *entry,
		       char *why, size_t whylen);

#endif /* SHIFT_ENTRY_H */
