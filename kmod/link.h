/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Links: one RDMA CM connection (an RC QP of our own) per (local device and
 * GID, remote GID), carrying the messages of msg.h; and the directory of peers
 * that says which remote GIDs belong to one node and who stands in for whom.
 */
#ifndef SHIFT_LINK_H
#define SHIFT_LINK_H

#include <linux/netlink.h>
#include <rdma/ib_verbs.h>
#include <uapi/linux/shift.h>
#include "msg.h"

struct shift_link;	/* opaque; kref'd */

/* What operators see of a link. */
struct shift_link_info {
	u32 id;
	char dev[IB_DEVICE_NAME_MAX];
	char node[SHIFT_NODE_MAX];
	union ib_gid local, remote;
	enum shift_link_state state;
	u8 peer_boot_id[16];	/* zero while unknown */
	u64 tx, rx, connects;	/* messages, connections made */
	u64 acked;		/* sends that the peer's NIC acknowledged */
};

struct shift_peer_nic {
	union ib_gid gid;
	u32 num_backups;
	union ib_gid backup[SHIFT_BACKUPS_MAX];
};

/* directory; process context, may sleep */
int shift_peer_set(const char *node, const struct shift_peer_nic *nics, u32 n,
		   struct netlink_ext_ack *extack);
int shift_peer_del(const char *node, struct netlink_ext_ack *extack);
/* first backup of @gid; 0, or -ENOENT (unknown GID), -ENODATA (no backup) */
int shift_peer_backup(const union ib_gid *gid, union ib_gid *backup);
bool shift_peer_knows(const union ib_gid *gid);	/* as default or as backup */
int shift_peer_node(const union ib_gid *gid, char *node);	/* SHIFT_NODE_MAX; -ENOENT */
/* calls @fn for each under a lock that allows sleeping; stops at non-zero */
int shift_peer_walk(int (*fn)(const char *node, const struct shift_peer_nic *nics,
			      u32 n, void *arg), void *arg);

/*
 * Find or make the link and take a reference; starts connecting in the
 * background (the side with the lower GID connects, the other listens; retried
 * with back-off while references are held).  Process context.
 */
struct shift_link *shift_link_get(struct ib_device *dev, const union ib_gid *local,
				  const union ib_gid *remote);
void shift_link_put(struct shift_link *link);	/* process context */
void shift_link_guard(struct shift_link *link, bool on);	/* one protected QP more, or less */
u32 shift_link_id(const struct shift_link *link);
enum shift_link_state shift_link_state(const struct shift_link *link);
/* the MAC that packets to the peer go to; zeroes before the first connection; any context */
void shift_link_dmac(struct shift_link *link, u8 *dmac);
u64 shift_link_generation(const struct shift_link *link); /* connections so far */
/*
 * Queue one message; process context, does not wait for the network.
 * 0, -ENOTCONN, -EAGAIN (send queue full: try again later), -EINVAL.
 */
int shift_link_send(struct shift_link *link, const struct shift_msg *m);
/* the same over @link or, if that cannot, any other link to the same peer */
int shift_session_send(struct shift_link *link, const struct shift_msg *m);
int shift_link_walk(int (*fn)(const struct shift_link_info *info, void *arg), void *arg);
int shift_link_probe(u32 id);	/* 0, -ENOENT, -ENOTCONN */
void shift_link_fill_info(const struct shift_link *link, struct shift_link_info *info);

/* the device is going: drop its links (existing references stay valid, DOWN) */
void shift_link_device_gone(struct ib_device *dev);
/* a port of the device came back: try to connect now, do not wait */
void shift_link_device_up(struct ib_device *dev);
int shift_link_init(void);	/* listener, workqueue */
void shift_link_uninit(void);

/* Implemented by the switch (qp_msg.c); process context, no lock of links held. */
void shift_link_received(struct shift_link *link, const struct shift_msg *m);
void shift_link_changed(struct shift_link *link, enum shift_link_state state);
/* it went down as the path loses everything */
void shift_link_silent(struct shift_link *link);
/* the peer came back with another boot id or module incarnation */
void shift_link_peer_restarted(struct shift_link *link);

extern u8 shift_boot_id[16];	/* random per module load */

#endif /* SHIFT_LINK_H */
