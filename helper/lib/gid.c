// SPDX-License-Identifier: GPL-2.0-only
/*
 * GIDs are shown and keyed as IPv6 text, the one canonical form inet_ntop()
 * gives ("::ffff:192.0.2.1"), so that the same GID is the same directory key
 * on every node.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/gid.h"

static const uint8_t mapped_prefix[12] = {
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff
};

/* The size of any GID table we have met is far below this. */
#define GID_TABLE_MAX	1024

/*
 * Addresses are put into the first free entries, so that behind so many free
 * ones there is nothing.  To read all entries of a table takes long.
 */
#define GID_TABLE_GAP	8

/**
 * shift_gid_parse() - read a GID from text
 * @text: IPv6 text in any form, or a dotted IPv4 address
 * @gid: where it goes; unchanged on failure
 *
 * An IPv4 address stands for the IPv4-mapped GID, which is what RoCE makes of
 * it and what operators have at hand.
 *
 * Return: 0, or -EINVAL.
 */
int shift_gid_parse(const char *text, struct shift_gid *gid)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET6, text, &v6) == 1) {
		memcpy(gid->raw, &v6, sizeof(gid->raw));
		return 0;
	}
	if (inet_pton(AF_INET, text, &v4) == 1) {
		memcpy(gid->raw, mapped_prefix, sizeof(mapped_prefix));
		memcpy(gid->raw + 12, &v4, 4);
		return 0;
	}
	return -EINVAL;
}

const char *shift_gid_format(const struct shift_gid *gid,
			     char text[SHIFT_GID_TEXT])
{
	/* Cannot fail: the family is known and the buffer large enough. */
	if (!inet_ntop(AF_INET6, gid->raw, text, SHIFT_GID_TEXT))
		text[0] = '\0';
	return text;
}

bool shift_gid_is_mapped(const struct shift_gid *gid)
{
	return !memcmp(gid->raw, mapped_prefix, sizeof(mapped_prefix));
}

/* The IP address a RoCE v2 GID stands for. */
const char *shift_gid_addr(const struct shift_gid *gid,
			   char text[SHIFT_GID_TEXT])
{
	if (!shift_gid_is_mapped(gid))
		return shift_gid_format(gid, text);
	if (!inet_ntop(AF_INET, gid->raw + 12, text, SHIFT_GID_TEXT))
		text[0] = '\0';
	return text;
}

int shift_gid_cmp(const struct shift_gid *a, const struct shift_gid *b)
{
	return memcmp(a->raw, b->raw, sizeof(a->raw));
}

/**
 * shift_gid_refuse() - can this GID name a NIC in a cluster?
 * @gid: from the directory, the command line or sysfs: not trusted
 *
 * Return: NULL if it can, else why not, as text that completes "GID is".
 */
const char *shift_gid_refuse(const struct shift_gid *gid)
{
	static const uint8_t zero[15];
	const uint8_t *r = gid->raw;

	if (shift_gid_is_mapped(gid)) {
		if (r[12] == 0)
			return "of IPv4 network 0";
		if (r[12] == 127)
			return "a loopback address";
		if (r[12] >= 224)
			return "a multicast or reserved IPv4 address";
		return NULL;
	}
	if (!memcmp(r, zero, sizeof(zero)))
		return r[15] == 1 ? "a loopback address" : "empty";
	if (r[0] == 0xff)
		return "a multicast address";
	if (r[0] == 0xfe && (r[1] & 0xc0) == 0x80)
		return "link-local";
	return NULL;
}

/**
 * shift_name_ok() - is this a usable node or device name?
 * @name: NUL-terminated, not trusted
 * @max: size of the field it must fit in, with its NUL
 *
 * Names go into file names, keys, logs and JSON: only characters that mean
 * nothing in any of them are let through.
 */
bool shift_name_ok(const char *name, size_t max)
{
	size_t len = strlen(name);
	size_t i;

	if (!len || len >= max || name[0] == '.' || name[0] == '-')
		return false;
	for (i = 0; i < len; i++) {
		char c = name[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-')
			continue;
		return false;
	}
	return true;
}

static int read_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "re");
	int ret = 0;

	if (!f)
		return -errno;
	/* A GID entry without a netdev reads as an error, not as a text. */
	if (!fgets(line, size, f))
		ret = -ENODATA;
	fclose(f);
	if (!ret)
		line[strcspn(line, "\n")] = '\0';
	return ret;
}

/* One attribute of an entry of the table of GIDs; "" if it cannot be read. */
static int read_attr(const char *sysfs, const char *dev, const char *what, int i,
		     char *line, size_t size)
{
	char path[512];
	int len, ret;

	line[0] = '\0';
	len = snprintf(path, sizeof(path), "%s/class/infiniband/%s/ports/1/%s/%d",
		       sysfs, dev, what, i);
	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	ret = read_line(path, line, size);
	if (ret)
		line[0] = '\0';
	return ret;
}

/**
 * shift_gids_of_device() - the GIDs by which peers know a device
 * @sysfs: where sysfs is mounted
 * @dev: RDMA device name
 * @gids: result; the first is that of its paths as a backup
 *
 * The kernel uses the same rule for the first one: on port 1 the first RoCE v2
 * entry that is an IPv4-mapped GID, else the first RoCE v2 entry with a global
 * IPv6 address.  If that is IPv4, the second one is the first global IPv6
 * address of the same network interface: applications use either.
 *
 * Return: their number, -ENODEV if there is no such device, -EADDRNOTAVAIL if
 * none of its GIDs will do.
 */
int shift_gids_of_device(const char *sysfs, const char *dev,
			 struct shift_gid gids[SHIFT_DEV_GIDS])
{
	static const struct shift_gid empty;
	char line[128], v4_ndev[128], v6_ndev[128];
	struct shift_gid entry, v4, v6;
	bool have_v4 = false, have_v6 = false;
	int i, ret, gap = 0;

	if (!shift_name_ok(dev, SHIFT_DEV_MAX))
		return -ENODEV;
	for (i = 0; i < GID_TABLE_MAX && gap < GID_TABLE_GAP; i++) {
		bool mapped;

		ret = read_attr(sysfs, dev, "gids", i, line, sizeof(line));
		if (ret == -ENOENT)
			break;
		if (ret == -ENAMETOOLONG)
			return ret;
		if (ret || shift_gid_parse(line, &entry))
			continue;
		gap = memcmp(&entry, &empty, sizeof(entry)) ? 0 : gap + 1;
		if (shift_gid_refuse(&entry))
			continue;
		mapped = shift_gid_is_mapped(&entry);
		if (mapped ? have_v4 : have_v6)
			continue;
		read_attr(sysfs, dev, "gid_attrs/types", i, line, sizeof(line));
		if (strcmp(line, "RoCE v2"))
			continue;
		read_attr(sysfs, dev, "gid_attrs/ndevs", i,
			  mapped ? v4_ndev : v6_ndev, sizeof(v4_ndev));
		*(mapped ? &v4 : &v6) = entry;
		*(mapped ? &have_v4 : &have_v6) = true;
	}
	if (!i)
		return -ENODEV;
	if (!have_v4 && !have_v6)
		return -EADDRNOTAVAIL;
	gids[0] = have_v4 ? v4 : v6;
	if (!have_v4 || !have_v6 || strcmp(v4_ndev, v6_ndev))
		return 1;
	gids[1] = v6;
	return 2;
}

/**
 * shift_gid_of_device() - the first of shift_gids_of_device()
 * @sysfs: where sysfs is mounted
 * @dev: RDMA device name
 * @gid: result
 *
 * Return: 0, or as shift_gids_of_device().
 */
int shift_gid_of_device(const char *sysfs, const char *dev,
			struct shift_gid *gid)
{
	struct shift_gid gids[SHIFT_DEV_GIDS];
	int n = shift_gids_of_device(sysfs, dev, gids);

	if (n < 0)
		return n;
	*gid = gids[0];
	return 0;
}
