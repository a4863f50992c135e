// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peers: built from text, compared, and written as `shiftctl peer set` reads
 * them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/peer.h"

static int parse_gid(const char *text, struct shift_gid *gid,
		     char *err, size_t errlen)
{
	const char *why;

	if (shift_gid_parse(text, gid)) {
		snprintf(err, errlen, "'%s' is neither a GID nor an IP address",
			 text);
		return -EINVAL;
	}
	why = shift_gid_refuse(gid);
	if (why) {
		snprintf(err, errlen, "GID %s is %s", text, why);
		return -EINVAL;
	}
	return 0;
}

/**
 * shift_peer_add_nic() - add a default NIC and its backups
 * @peer: gets it; its nodes and other NICs stay
 * @gid: text of the default NIC's GID
 * @backups: texts of its backups' GIDs, comma separated, in order
 * @err: gets why not, for a human
 * @errlen: size of @err
 *
 * Return: 0, -EINVAL or -E2BIG.
 */
int shift_peer_add_nic(struct shift_peer *peer, const char *gid,
		       const char *backups, char *err, size_t errlen)
{
	struct shift_nic nic = {};
	const char *end;
	unsigned int i;
	char one[64];
	size_t len;
	int ret;

	if (peer->n_nics >= SHIFT_PEER_NICS_MAX) {
		snprintf(err, errlen, "a peer has at most %d NICs", SHIFT_PEER_NICS_MAX);
		return -E2BIG;
	}
	ret = parse_gid(gid, &nic.gid, err, errlen);
	if (ret)
		return ret;
	for (i = 0; i < peer->n_nics; i++) {
		if (!shift_gid_cmp(&peer->nics[i].gid, &nic.gid)) {
			snprintf(err, errlen, "NIC %s is given twice", gid);
			return -EINVAL;
		}
	}
	for (;; backups = end + 1) {
		backups += strspn(backups, " \t");
		end = strchrnul(backups, ',');
		len = end - backups;
		while (len && (backups[len - 1] == ' ' ||
			       backups[len - 1] == '\t'))
			len--;
		if (nic.n_backups >= SHIFT_BACKUPS_MAX) {
			snprintf(err, errlen, "NIC %s has more than %d backups",
				 gid, SHIFT_BACKUPS_MAX);
			return -E2BIG;
		}
		if (!len || len >= sizeof(one)) {
			snprintf(err, errlen, "a backup of NIC %s is %s", gid,
				 len ? "too long" : "empty");
			return -EINVAL;
		}
		memcpy(one, backups, len);
		one[len] = '\0';
		ret = parse_gid(one, &nic.backups[nic.n_backups], err, errlen);
		if (ret)
			return ret;
		if (!shift_gid_cmp(&nic.backups[nic.n_backups], &nic.gid)) {
			snprintf(err, errlen, "NIC %s cannot be its own backup", gid);
			return -EINVAL;
		}
		for (i = 0; i < nic.n_backups; i++) {
			if (!shift_gid_cmp(&nic.backups[i],
					   &nic.backups[nic.n_backups])) {
				snprintf(err, errlen,
					 "backup %s is given twice", one);
				return -EINVAL;
			}
		}
		nic.n_backups++;
		if (!*end)
			break;
	}
	peer->nics[peer->n_nics++] = nic;
	return 0;
}

bool shift_peer_equal(const struct shift_peer *a, const struct shift_peer *b)
{
	unsigned int i, j;

	if (strcmp(a->node, b->node) || a->n_nics != b->n_nics)
		return false;
	for (i = 0; i < a->n_nics; i++) {
		const struct shift_nic *x = &a->nics[i], *y = &b->nics[i];

		if (shift_gid_cmp(&x->gid, &y->gid) ||
		    x->n_backups != y->n_backups)
			return false;
		for (j = 0; j < x->n_backups; j++)
			if (shift_gid_cmp(&x->backups[j], &y->backups[j]))
				return false;
	}
	return true;
}

bool shift_peer_has_gid(const struct shift_peer *peer,
			const struct shift_gid *gid)
{
	unsigned int i, j;

	for (i = 0; i < peer->n_nics; i++) {
		if (!shift_gid_cmp(&peer->nics[i].gid, gid))
			return true;
		for (j = 0; j < peer->nics[i].n_backups; j++)
			if (!shift_gid_cmp(&peer->nics[i].backups[j], gid))
				return true;
	}
	return false;
}

/**
 * shift_peer_format() - the NICs of a peer as `shiftctl peer set` takes them
 * @peer: the peer
 *
 * Return: "nic GID backup GID,GID nic ...", to be freed, or NULL.
 */
char *shift_peer_format(const struct shift_peer *peer)
{
	char text[SHIFT_GID_TEXT];
	unsigned int i, j;
	char *buf = NULL;
	size_t size;
	FILE *f;

	f = open_memstream(&buf, &size);
	if (!f)
		return NULL;
	for (i = 0; i < peer->n_nics; i++) {
		const struct shift_nic *nic = &peer->nics[i];

		fprintf(f, "%snic %s", i ? " " : "",
			shift_gid_format(&nic->gid, text));
		for (j = 0; j < nic->n_backups; j++)
			fprintf(f, "%s%s", j ? "," : " backup ",
				shift_gid_format(&nic->backups[j], text));
	}
	if (fclose(f)) {
		free(buf);
		return NULL;
	}
	return buf;
}
