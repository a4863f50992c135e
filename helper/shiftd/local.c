// SPDX-License-Identifier: GPL-2.0-only
/*
 * A GID once read is kept until the device shows another in its place: that a
 * NIC lost its address, or is gone, is the very moment in which peers must
 * still know what stands in for it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shiftd/local.h"
#include "shiftd/log.h"

struct device {
	char dev[SHIFT_DEV_MAX];
	int n_gids;
	int told;		/* errno of the last complaint */
	struct shift_gid gids[SHIFT_DEV_GIDS];
};

/* The backups of a pair of the configuration as the kernel has them, in its order. */
struct in_use {
	char dev[SHIFT_DEV_MAX];
	unsigned int n_backups;
	char backups[SHIFT_BACKUPS_MAX][SHIFT_DEV_MAX];
};

struct shift_local {
	char sysfs[256];
	char boot_id[SHIFT_BOOT_ID_TEXT];
	struct device *devices;
	size_t n_devices;
	struct in_use pairs[SHIFT_PAIRS_MAX];
	unsigned int n_pairs;
};

static void read_boot_id(char boot_id[SHIFT_BOOT_ID_TEXT])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || !fgets(boot_id, SHIFT_BOOT_ID_TEXT, f)) {
		log_warn("cannot read the boot id");
		strcpy(boot_id, "00000000-0000-0000-0000-000000000000");
	}
	if (f)
		fclose(f);
}

struct shift_local *shift_local_new(const char *sysfs)
{
	struct shift_local *local = calloc(1, sizeof(*local));

	if (!local)
		return NULL;
	snprintf(local->sysfs, sizeof(local->sysfs), "%s", sysfs);
	read_boot_id(local->boot_id);
	return local;
}

void shift_local_free(struct shift_local *local)
{
	if (!local)
		return;
	free(local->devices);
	free(local);
}

const char *shift_local_boot_id(const struct shift_local *local)
{
	return local->boot_id;
}

static struct device *find(const struct shift_local *local, const char *dev)
{
	size_t i;

	for (i = 0; i < local->n_devices; i++)
		if (!strcmp(local->devices[i].dev, dev))
			return &local->devices[i];
	return NULL;
}

static bool refresh_device(struct shift_local *local, const char *dev)
{
	struct device *d = find(local, dev), *grown;
	struct shift_gid gids[SHIFT_DEV_GIDS];
	char text[SHIFT_GID_TEXT];
	bool changed = false;
	int i, n;

	if (!d) {
		grown = reallocarray(local->devices, local->n_devices + 1,
				     sizeof(*grown));
		if (!grown)
			return false;
		local->devices = grown;
		d = &grown[local->n_devices++];
		memset(d, 0, sizeof(*d));
		snprintf(d->dev, sizeof(d->dev), "%s", dev);
	}
	n = shift_gids_of_device(local->sysfs, dev, gids);
	if (n < 0) {
		if (n != d->told)
			log_warn("%s: %s%s", dev, n == -EADDRNOTAVAIL ?
				 "it has no RoCE v2 GID that other nodes could use; give its network interface an IP address" :
				 "there is no such RDMA device yet", d->n_gids ?
				 "; its last GID stays published" : "");
		d->told = n;
		return false;
	}
	d->told = 0;
	for (i = 0; i < n; i++) {
		if (i < d->n_gids && !shift_gid_cmp(&d->gids[i], &gids[i]))
			continue;
		log_info("%s: GID %s%s", dev, shift_gid_format(&gids[i], text),
			 i < d->n_gids ? " (changed)" : "");
		d->gids[i] = gids[i];
		changed = true;
	}
	if (n > d->n_gids)
		d->n_gids = n;
	return changed;
}

/**
 * shift_local_in_use() - note in which order the kernel has the backups
 * @local: from shift_local_new()
 * @config: the pairs
 * @k: just read
 *
 * The kernel's order is not always that of the configuration: when the backup in
 * use is removed the next one stands in, and one that comes back is the last.
 * Peers connect to the first backup that they are told of, so this node has to
 * name the one that its kernel uses first.
 *
 * Return: whether the order changed; GIDs are to be read and published then.
 */
bool shift_local_in_use(struct shift_local *local,
			const struct shift_config *config,
			const struct shift_kernel *k)
{
	struct in_use pairs[SHIFT_PAIRS_MAX] = {};
	unsigned int i, n = 0;

	for (i = 0; i < config->n_pairs; i++) {
		const struct shift_kernel_pair *have =
			shift_kernel_pair(k, config->pairs[i].dev);

		if (!have)
			continue;
		strcpy(pairs[n].dev, have->dev);
		pairs[n].n_backups = have->n_backups;
		memcpy(pairs[n++].backups, have->backups, sizeof(have->backups));
	}
	if (n == local->n_pairs && !memcmp(pairs, local->pairs, sizeof(pairs)))
		return false;
	memcpy(local->pairs, pairs, sizeof(pairs));
	local->n_pairs = n;
	return true;
}

static const struct in_use *find_in_use(const struct shift_local *local,
					const char *dev)
{
	unsigned int i;

	for (i = 0; i < local->n_pairs; i++)
		if (!strcmp(local->pairs[i].dev, dev))
			return &local->pairs[i];
	return NULL;
}

/* Reads the GIDs anew.  Return: whether any changed. */
bool shift_local_refresh(struct shift_local *local,
			 const struct shift_config *config)
{
	bool changed = false;
	unsigned int i, j;

	for (i = 0; i < config->n_pairs; i++) {
		const struct shift_config_pair *pair = &config->pairs[i];

		changed |= refresh_device(local, pair->dev);
		for (j = 0; j < pair->n_backups; j++)
			changed |= refresh_device(local, pair->backups[j]);
	}
	/* One that the configuration does not name any more may still be in use. */
	for (i = 0; i < local->n_pairs; i++)
		for (j = 0; j < local->pairs[i].n_backups; j++)
			changed |= refresh_device(local,
						  local->pairs[i].backups[j]);
	return changed;
}

static bool listed(const struct shift_entry *entries, size_t n,
		   const struct shift_gid *gid)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!shift_gid_cmp(&entries[i].gid, gid))
			return true;
	return false;
}

static bool named(const struct shift_entry *e, const struct shift_gid *gid)
{
	unsigned int i;

	for (i = 0; i < e->n_backups; i++)
		if (!shift_gid_cmp(&e->backups[i].gid, gid))
			return true;
	return false;
}

/*
 * Names a backup, unless it has no GID, or that of @e, or one that is named
 * already: by itself, or as it was renamed, which the configuration does not follow.
 */
static void add_backup(const struct shift_local *local, const char *dev,
		       struct shift_entry *e)
{
	const struct device *b = find(local, dev);

	if (!b || !b->n_gids || !shift_gid_cmp(&b->gids[0], &e->gid) ||
	    e->n_backups == SHIFT_BACKUPS_MAX || named(e, &b->gids[0]))
		return;
	strcpy(e->backups[e->n_backups].dev, b->dev);
	e->backups[e->n_backups++].gid = b->gids[0];
}

/*
 * Those that the kernel has, in its order.  Behind them, or alone if it has none,
 * those of the configuration: that a NIC is gone does not make its GID another's.
 */
static void add_backups(const struct shift_local *local,
			const struct shift_config_pair *pair,
			struct shift_entry *e)
{
	const struct in_use *have = find_in_use(local, pair->dev);
	unsigned int i;

	for (i = 0; have && i < have->n_backups; i++)
		add_backup(local, have->backups[i], e);
	for (i = 0; i < pair->n_backups; i++)
		add_backup(local, pair->backups[i], e);
}

/**
 * shift_local_entries() - what this node has to tell the others
 * @local: from shift_local_new()
 * @config: the pairs
 * @entries: result: one for each GID of a default NIC
 *
 * Backups stand in the kernel's order, see shift_local_in_use(); where it has no
 * pair, or was not read yet, in that of the configuration.
 *
 * A default NIC whose GIDs are not known, or that of none of its backups, is
 * left out: a peer could do nothing with it.
 *
 * Return: number of entries.
 */
size_t shift_local_entries(const struct shift_local *local,
			   const struct shift_config *config,
			   struct shift_entry entries[SHIFT_ENTRIES_MAX])
{
	unsigned int i;
	size_t n = 0;
	int j;

	for (i = 0; i < config->n_pairs; i++) {
		const struct shift_config_pair *pair = &config->pairs[i];
		const struct device *d = find(local, pair->dev);

		for (j = 0; d && j < d->n_gids && n < SHIFT_ENTRIES_MAX; j++) {
			struct shift_entry *e = &entries[n];

			if (listed(entries, n, &d->gids[j]))
				continue;
			memset(e, 0, sizeof(*e));
			e->gid = d->gids[j];
			strcpy(e->node, config->node);
			strcpy(e->boot_id, local->boot_id);
			strcpy(e->dev, pair->dev);
			add_backups(local, pair, e);
			if (e->n_backups)
				n++;
		}
	}
	return n;
}

/* Return: number of GIDs of this node; *@gids is to be freed. */
size_t shift_local_gids(const struct shift_local *local,
			struct shift_gid **gids)
{
	size_t i, n = 0;
	int j;

	*gids = calloc(local->n_devices * SHIFT_DEV_GIDS + 1, sizeof(**gids));
	if (!*gids)
		return 0;
	for (i = 0; i < local->n_devices; i++)
		for (j = 0; j < local->devices[i].n_gids; j++)
			(*gids)[n++] = local->devices[i].gids[j];
	return n;
}
