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

#include "gid.h"

static const uint8_t mapped_prefix[12] = {
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff
};

/* The size of any GID table we have met is far below this. */
#define GID_TABLE_MAX	1024

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

/**
 * shift_gid_of_device() - the GID by which peers know a device
 * @sysfs: where sysfs is mounted
 * @dev: RDMA device name
 * @gid: result
 *
 * The kernel uses the same rule: on port 1 the first RoCE v2 entry that is an
 * IPv4-mapped GID, else the first RoCE v2 entry with a global IPv6 address.
 *
 * Return: 0, -ENODEV if there is no such device, -EADDRNOTAVAIL if none of
 * its GIDs will do.
 */
int shift_gid_of_device(const char *sysfs, const char *dev,
			struct shift_gid *gid)
{
	char path[512], line[128];
	struct shift_gid entry, global;
	bool have_global = false;
	int i, len, ret;

	if (!shift_name_ok(dev, SHIFT_DEV_MAX))
		return -ENODEV;
	for (i = 0; i < GID_TABLE_MAX; i++) {
		len = snprintf(path, sizeof(path),
			       "%s/class/infiniband/%s/ports/1/gids/%d",
			       sysfs, dev, i);
		if (len < 0 || (size_t)len >= sizeof(path))
			return -ENAMETOOLONG;
		ret = read_line(path, line, sizeof(line));
		if (ret == -ENOENT)
			break;
		if (ret || shift_gid_parse(line, &entry) ||
		    shift_gid_refuse(&entry))
			continue;
		snprintf(path, sizeof(path),
			 "%s/class/infiniband/%s/ports/1/gid_attrs/types/%d",
			 sysfs, dev, i);
		if (read_line(path, line, sizeof(line)) ||
		    strcmp(line, "RoCE v2"))
			continue;
		if (shift_gid_is_mapped(&entry)) {
			*gid = entry;
			return 0;
		}
		if (!have_global) {
			global = entry;
			have_global = true;
		}
	}
	if (!i)
		return -ENODEV;
	if (!have_global)
		return -EADDRNOTAVAIL;
	*gid = global;
	return 0;
}
