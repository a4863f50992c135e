// SPDX-License-Identifier: GPL-2.0-only
/*
 * Three rules keep a bad day of the directory away from traffic: what cannot
 * be believed is left out, alone; what has vanished is held for a while, since
 * a lease that ran out says that a daemon is away, not that a NIC is; and
 * what is held is gone at once when its node comes back with another boot id.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shiftd/directory.h"
#include "shiftd/log.h"

#define COMPLAINTS_MAX 256

struct slot {
	struct shift_entry entry;
	int64_t create_rev, mod_rev;
	uint64_t gone_ms;	/* 0: it is there */
	bool listed;		/* seen by the listing under way */
	bool dropped;		/* in drop_conflicts() */
};

struct shift_dir {
	struct slot **slots;	/* by GID, then by node */
	size_t n;
	char node[SHIFT_NODE_MAX];
	char boot_id[SHIFT_BOOT_ID_TEXT];
	struct shift_gid *own;
	size_t n_own;
	uint64_t complaints[COMPLAINTS_MAX];
	size_t n_complaints;
};

struct shift_dir *shift_dir_new(void)
{
	return calloc(1, sizeof(struct shift_dir));
}

void shift_dir_free(struct shift_dir *dir)
{
	size_t i;

	if (!dir)
		return;
	for (i = 0; i < dir->n; i++)
		free(dir->slots[i]);
	free(dir->slots);
	free(dir->own);
	free(dir);
}

/**
 * shift_dir_self() - say who this node is
 * @dir: the directory
 * @node: own name; entries of it are no peers
 * @boot_id: own boot id
 * @gids: GIDs of this node; nobody else may have them
 * @n_gids: how many
 *
 * Return: 0 or -ENOMEM.
 */
int shift_dir_self(struct shift_dir *dir, const char *node, const char *boot_id,
		   const struct shift_gid *gids, size_t n_gids)
{
	struct shift_gid *own = calloc(n_gids + 1, sizeof(*own));

	if (!own)
		return -ENOMEM;
	if (n_gids)
		memcpy(own, gids, n_gids * sizeof(*own));
	free(dir->own);
	dir->own = own;
	dir->n_own = n_gids;
	snprintf(dir->node, sizeof(dir->node), "%s", node);
	snprintf(dir->boot_id, sizeof(dir->boot_id), "%s", boot_id);
	return 0;
}

static uint64_t hash(uint64_t h, const char *s, size_t len)
{
	for (; len; len--, s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
	return h;
}

/* One line per key and reason, and an end to it. */
static void complain(struct shift_dir *dir, const char *key, size_t key_len,
		     const char *why)
{
	uint64_t h;
	size_t i;

	if (dir->n_complaints == COMPLAINTS_MAX)
		return;
	h = hash(0xcbf29ce484222325ULL, key, key_len);
	h = hash(h, why, strlen(why));
	for (i = 0; i < dir->n_complaints; i++)
		if (dir->complaints[i] == h)
			return;
	dir->complaints[dir->n_complaints++] = h;
	log_warn("directory: entry '%.*s' ignored: %s",
		 (int)(key_len > 80 ? 80 : key_len), key, why);
	if (dir->n_complaints == COMPLAINTS_MAX)
		log_warn("directory: further bad entries are not reported");
}

static void complain_slot(struct shift_dir *dir, const struct slot *slot,
			  const char *why)
{
	char key[SHIFT_KEY_TEXT];

	shift_entry_key(&slot->entry, key);
	complain(dir, key, strlen(key), why);
}

static size_t find_index(const struct shift_dir *dir,
			 const struct shift_gid *gid, const char *node, bool *found)
{
	size_t low = 0, high = dir->n, mid;
	int cmp;

	*found = false;
	while (low < high) {
		mid = (low + high) / 2;
		cmp = shift_gid_cmp(&dir->slots[mid]->entry.gid, gid) ?:
		      strcmp(dir->slots[mid]->entry.node, node);
		if (!cmp) {
			*found = true;
			return mid;
		}
		if (cmp < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The key after PREFIX/nics/ is NODE/GID, with the GID in its one form. */
static int parse_key(const char *key, size_t len, char node[SHIFT_NODE_MAX],
		     struct shift_gid *gid)
{
	char text[SHIFT_KEY_TEXT], canonical[SHIFT_GID_TEXT], *slash;

	if (len >= sizeof(text) || memchr(key, '\0', len))
		return -EINVAL;
	memcpy(text, key, len);
	text[len] = '\0';
	slash = strchr(text, '/');
	if (!slash)
		return -EINVAL;
	*slash++ = '\0';
	if (!shift_name_ok(text, SHIFT_NODE_MAX) ||
	    strlen(slash) >= sizeof(canonical) || shift_gid_parse(slash, gid) ||
	    strcmp(shift_gid_format(gid, canonical), slash))
		return -EINVAL;
	strcpy(node, text);
	return 0;
}

static void mark_gone(struct slot *slot, uint64_t now_ms)
{
	if (!slot->gone_ms)
		slot->gone_ms = now_ms ? now_ms : 1;
}

static struct slot *insert(struct shift_dir *dir, size_t i)
{
	struct slot **grown, *slot;

	slot = calloc(1, sizeof(*slot));
	if (!slot)
		return NULL;
	grown = reallocarray(dir->slots, dir->n + 1, sizeof(*grown));
	if (!grown) {
		free(slot);
		return NULL;
	}
	dir->slots = grown;
	memmove(grown + i + 1, grown + i, (dir->n - i) * sizeof(*grown));
	grown[i] = slot;
	dir->n++;
	return slot;
}

/**
 * shift_dir_put() - an entry is there or was changed
 * @dir: the directory
 * @key: what follows PREFIX/nics/
 * @key_len: size of it
 * @value: the entry, not trusted
 * @value_len: size of it
 * @create_rev: etcd's revision of its making
 * @mod_rev: etcd's revision of its last change
 * @now_ms: any monotonic clock
 *
 * A value that cannot be believed counts as none: what was known under the
 * key before is held and then forgotten, as if the key had been deleted.
 */
void shift_dir_put(struct shift_dir *dir, const char *key, size_t key_len,
		   const char *value, size_t value_len, int64_t create_rev,
		   int64_t mod_rev, uint64_t now_ms)
{
	char node[SHIFT_NODE_MAX], why[128] = "out of memory";
	struct shift_entry entry;
	struct shift_gid gid;
	struct slot *slot;
	bool found;
	size_t i;

	if (parse_key(key, key_len, node, &gid)) {
		complain(dir, key, key_len, "its key is not NODE/GID");
		return;
	}
	i = find_index(dir, &gid, node, &found);
	if (shift_entry_decode(value, value_len, &entry, why, sizeof(why)))
		goto bad;
	if (shift_gid_cmp(&entry.gid, &gid)) {
		snprintf(why, sizeof(why), "its 'gid' differs from its key");
		goto bad;
	}
	/* etcd decides who may write a key, and so who may speak for a node */
	if (strcmp(entry.node, node)) {
		snprintf(why, sizeof(why), "its 'node' differs from its key");
		goto bad;
	}
	if (!found && dir->n == SHIFT_DIR_ENTRIES_MAX) {
		snprintf(why, sizeof(why), "there are more than %d entries",
			 SHIFT_DIR_ENTRIES_MAX);
		goto bad;
	}
	slot = found ? dir->slots[i] : insert(dir, i);
	if (!slot)
		goto bad;
	slot->entry = entry;
	slot->create_rev = create_rev;
	slot->mod_rev = mod_rev;
	slot->gone_ms = 0;
	slot->listed = true;
	return;

bad:
	complain(dir, key, key_len, why);
	if (found)
		mark_gone(dir->slots[i], now_ms);
}

void shift_dir_delete(struct shift_dir *dir, const char *key, size_t key_len,
		      uint64_t now_ms)
{
	char node[SHIFT_NODE_MAX];
	struct shift_gid gid;
	bool found;
	size_t i;

	if (parse_key(key, key_len, node, &gid))
		return;
	i = find_index(dir, &gid, node, &found);
	if (found)
		mark_gone(dir->slots[i], now_ms);
}

/* Between begin and end all that is there is put; the rest has vanished. */
void shift_dir_list_begin(struct shift_dir *dir)
{
	size_t i;

	for (i = 0; i < dir->n; i++)
		dir->slots[i]->listed = false;
}

void shift_dir_list_end(struct shift_dir *dir, uint64_t now_ms)
{
	size_t i;

	for (i = 0; i < dir->n; i++)
		if (!dir->slots[i]->listed)
			mark_gone(dir->slots[i], now_ms);
}

/**
 * shift_dir_expire() - forget what has been gone for long enough
 * @dir: the directory
 * @now_ms: the same clock as for the others
 * @hold_ms: how long is long enough
 *
 * Return: when to call again, or UINT64_MAX if nothing is being held.
 */
uint64_t shift_dir_expire(struct shift_dir *dir, uint64_t now_ms,
			  uint64_t hold_ms)
{
	uint64_t next = UINT64_MAX;
	size_t i, kept = 0;

	for (i = 0; i < dir->n; i++) {
		struct slot *slot = dir->slots[i];

		if (slot->gone_ms && now_ms >= slot->gone_ms + hold_ms) {
			free(slot);
			continue;
		}
		if (slot->gone_ms && slot->gone_ms + hold_ms < next)
			next = slot->gone_ms + hold_ms;
		dir->slots[kept++] = slot;
	}
	dir->n = kept;
	return next;
}

size_t shift_dir_count(const struct shift_dir *dir)
{
	return dir->n;
}

static bool is_own(const struct shift_dir *dir, const struct shift_gid *gid)
{
	size_t i;

	for (i = 0; i < dir->n_own; i++)
		if (!shift_gid_cmp(&dir->own[i], gid))
			return true;
	return false;
}

/* Can this entry be part of a peer, as far as this node can tell? */
static bool usable(struct shift_dir *dir, const struct slot *slot)
{
	const struct shift_entry *e = &slot->entry;
	bool own = is_own(dir, &e->gid);
	unsigned int i;

	if (!strcmp(e->node, dir->node)) {
		/* A predecessor of this boot, or someone with our name? */
		if (!own && strcmp(e->boot_id, dir->boot_id) && !slot->gone_ms)
			complain_slot(dir, slot, "another host may use this node's name; names must be unique");
		return false;
	}
	for (i = 0; !own && i < e->n_backups; i++)
		own = is_own(dir, &e->backups[i].gid);
	if (own)
		complain_slot(dir, slot, "it has a GID of this node");
	return !own;
}

struct claim {
	const struct shift_gid *gid;
	bool backup;		/* it is not in the entry's key */
	struct slot *slot;
};

static int cmp_claims(const void *x, const void *y)
{
	const struct claim *a = x, *b = y;
	int cmp = shift_gid_cmp(a->gid, b->gid);

	if (cmp)
		return cmp;
	if (a->backup != b->backup)
		return a->backup ? 1 : -1;
	if (a->slot->create_rev != b->slot->create_rev)
		return a->slot->create_rev < b->slot->create_rev ? -1 : 1;
	return shift_gid_cmp(&a->slot->entry.gid, &b->slot->entry.gid) ?:
	       strcmp(a->slot->entry.node, b->slot->entry.node);
}

static int cmp_nodes(const void *x, const void *y)
{
	const struct slot *a = *(struct slot * const *)x;
	const struct slot *b = *(struct slot * const *)y;
	int cmp = strcmp(a->entry.node, b->entry.node);

	return cmp ? cmp : shift_gid_cmp(&a->entry.gid, &b->entry.gid);
}

/*
 * A GID belongs to one node.  Who has it in a key comes before who names it as
 * a backup, since etcd can refuse keys only.  Otherwise the older entry stands:
 * what works is not taken away by what came later.
 */
static int drop_conflicts(struct shift_dir *dir, struct slot **list, size_t *n)
{
	struct claim *claims;
	size_t i, j, n_claims = 0, kept = 0;
	unsigned int b;

	claims = calloc(*n * (1 + SHIFT_BACKUPS_MAX) + 1, sizeof(*claims));
	if (!claims)
		return -ENOMEM;
	for (i = 0; i < *n; i++) {
		struct shift_entry *e = &list[i]->entry;

		claims[n_claims++] = (struct claim){ &e->gid, false, list[i] };
		for (b = 0; b < e->n_backups; b++)
			claims[n_claims++] = (struct claim){
				&e->backups[b].gid, true, list[i] };
		list[i]->dropped = false;
	}
	qsort(claims, n_claims, sizeof(*claims), cmp_claims);
	for (i = 0; i < n_claims; i = j) {
		for (j = i + 1; j < n_claims &&
		     !shift_gid_cmp(claims[i].gid, claims[j].gid); j++) {
			if (!strcmp(claims[i].slot->entry.node,
				    claims[j].slot->entry.node))
				continue;
			complain_slot(dir, claims[j].slot,
				      "another node has one of its GIDs");
			claims[j].slot->dropped = true;
		}
	}
	free(claims);
	for (i = 0; i < *n; i++)
		if (!list[i]->dropped)
			list[kept++] = list[i];
	*n = kept;
	return 0;
}

/* Entries [0, n) of @list are of one node: make a peer of its newest boot. */
static void build_peer(struct shift_dir *dir, struct slot **list, size_t n,
		       struct shift_peer *peer)
{
	const struct slot *newest = list[0];
	unsigned int b;
	size_t i;

	memset(peer, 0, sizeof(*peer));
	strcpy(peer->node, list[0]->entry.node);
	for (i = 1; i < n; i++)
		if (list[i]->mod_rev > newest->mod_rev)
			newest = list[i];
	for (i = 0; i < n; i++) {
		const struct shift_entry *e = &list[i]->entry;
		struct shift_nic *nic;

		if (strcmp(e->boot_id, newest->entry.boot_id)) {
			if (!list[i]->gone_ms)
				complain_slot(dir, list[i], "it is from an earlier boot of its node, or two hosts have the same name");
			continue;
		}
		if (peer->n_nics == SHIFT_PEER_NICS_MAX) {
			complain_slot(dir, list[i], "its node has too many NICs");
			continue;
		}
		nic = &peer->nics[peer->n_nics++];
		nic->gid = e->gid;
		nic->n_backups = e->n_backups;
		for (b = 0; b < e->n_backups; b++)
			nic->backups[b] = e->backups[b].gid;
	}
}

/**
 * shift_dir_peers() - the peers that the entries make
 * @dir: the directory
 * @peers: they are added here
 *
 * Return: 0 or -ENOMEM, with some of them added.
 */
int shift_dir_peers(struct shift_dir *dir, struct shift_peers *peers)
{
	struct shift_peer *peer = malloc(sizeof(*peer));
	struct slot **list = calloc(dir->n + 1, sizeof(*list));
	size_t i, j, n = 0, n_peers = 0;
	int ret = -ENOMEM;

	if (!peer || !list)
		goto out;
	for (i = 0; i < dir->n; i++)
		if (usable(dir, dir->slots[i]))
			list[n++] = dir->slots[i];
	ret = drop_conflicts(dir, list, &n);
	if (n)
		qsort(list, n, sizeof(*list), cmp_nodes);
	for (i = 0; !ret && i < n; i = j) {
		for (j = i + 1; j < n; j++)
			if (strcmp(list[i]->entry.node, list[j]->entry.node))
				break;
		if (n_peers++ == SHIFT_DIR_PEERS_MAX) {
			log_warn("directory: there are more than %d nodes; the rest is ignored",
				 SHIFT_DIR_PEERS_MAX);
			break;
		}
		build_peer(dir, list + i, j - i, peer);
		ret = shift_peers_add(peers, peer);
	}
out:
	free(list);
	free(peer);
	return ret;
}
