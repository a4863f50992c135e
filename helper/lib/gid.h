/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * GIDs: text form, what may be believed of one, and which one a device uses.
 */
#ifndef SHIFT_GID_H
#define SHIFT_GID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHIFT_GID_LEN	16
#define SHIFT_GID_TEXT	46	/* INET6_ADDRSTRLEN */
#define SHIFT_DEV_MAX	64	/* IB_DEVICE_NAME_MAX */
#define SHIFT_DEV_GIDS	2	/* IPv4 and IPv6 */

struct shift_gid {
	uint8_t raw[SHIFT_GID_LEN];
};

int shift_gid_parse(const char *text, struct shift_gid *gid);
const char *shift_gid_format(const struct shift_gid *gid,
			     char text[SHIFT_GID_TEXT]);
const char *shift_gid_addr(const struct shift_gid *gid,
			   char text[SHIFT_GID_TEXT]);
const char *shift_gid_refuse(const struct shift_gid *gid);
int shift_gid_cmp(const struct shift_gid *a, const struct shift_gid *b);
bool shift_gid_is_mapped(const struct shift_gid *gid);
bool shift_name_ok(const char *name, size_t max);
int shift_gids_of_device(const char *sysfs, const char *dev,
			 struct shift_gid gids[SHIFT_DEV_GIDS]);
int shift_gid_of_device(const char *sysfs, const char *dev,
			struct shift_gid *gid);

#endif /* SHIFT_GID_H */
