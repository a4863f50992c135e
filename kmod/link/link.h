/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Links carry the messages of pure/msg.h between two kernels.  A link is a local device and GID and
 * a remote GID, and has one RDMA CM connection at a time.  The directory of peers says which remote
 * GIDs belong to one node, and which of its NICs backs up which.
 */
#ifndef SHIFT_LINK_LINK_H
#define SHIFT_LINK_LINK_H

#include <linux/netlink.h>
#include <rdma/ib_verbs.h>
#include <uapi/linux/shift.h>
#include "pure/msg.h"

struct shift_dev;
struct shift_link;
struct shift_link_user;

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
	u64 dscps;		/* bits of classes with heartbeats of their own, that are up */
	bool proven;		/* the peer has proved that it knows a key */
	struct shift_msg_form form;	/* of its messages; version 0: not connected */
};

unsigned int shift_auth_keys(void);	/* process context; 0: nodes need not prove anything */

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
bool shift_peer_knows(const union ib_gid *gid);	/* of a default NIC or a backup */
bool shift_peer_is_same(const union ib_gid *gid, const union ib_gid *other);	/* one node's? */
int shift_peer_node(const union ib_gid *gid, char *node);	/* SHIFT_NODE_MAX; -ENOENT */
/* calls @fn for each peer, under a mutex; stops at non-zero */
int shift_peer_walk(int (*fn)(const char *node, const struct shift_peer_nic *nics,
			      u32 n, void *arg), void *arg);

/**
 * struct shift_link_ops - what links call, beside kicking the QPs that use them
 * @received: a message has come in; only its form was checked.
 * @changed: the link has come up, or gone down.
 *
 * Neither may wait, or take a QP's mutex: all other messages of the link would wait, too.
 *
 * Context: process context of the link's work item, no lock of links held.
 */
struct shift_link_ops {
	void (*received)(struct shift_link *link, const struct shift_msg *m);
	void (*changed)(struct shift_link *link);
};

/*
 * Find or make the link and take a reference.  It is connected in the background: the side with the
 * lower GID connects, and tries again while references are held; the other side listens.  Process
 * context.
 */
struct shift_link *shift_link_get(struct ib_device *dev, const union ib_gid *local,
				  const union ib_gid *remote);
void shift_link_put(struct shift_link *link);	/* process context */
/* to be called after shift_peer_set() and shift_peer_del() */
void shift_link_peer_set(const char *node);
void shift_link_peer_del(const char *node);
/* a link's heartbeats in a class; for shift_link_put() */
struct shift_link *shift_link_lane(struct shift_link *base, u8 tclass, bool connect);
void shift_link_use(struct shift_link *link, struct shift_link_user *user, struct shift_link *lane);
struct shift_link *shift_link_unuse(struct shift_link *link, struct shift_link_user *user);
/* one protected QP more, or less */
void shift_link_guard(struct shift_link *link, const struct shift_link_user *user, bool on);
/* RDMA CM posts a request to disconnect; any context */
void shift_dreq_note(const struct ib_device *dev, const union ib_gid *remote, const void *mad);

/**
 * struct shift_cm_said - what a message of RDMA CM says of a connection
 * @local_id: number of RDMA CM of who sends it.
 * @remote_id: the same of the other one.
 * @qpn: the sender's QP.
 * @rep: it is a REP.
 */
struct shift_cm_said {
	u32 local_id, remote_id, qpn;
	bool rep;
};

/* connection.c */
void shift_connection_note(const struct ib_device *dev, struct xarray *tracked,
			   const union ib_gid *remote, const struct shift_cm_said *said);
void shift_connection_made(const struct ib_device *dev, const struct shift_cm_said *said);
void shift_connection_said(const struct ib_device *dev, const struct shift_cm_said *said);
void shift_connection_ends(const struct ib_device *dev, u32 qpn, u32 remote_qpn, bool mute);
u32 shift_link_id(const struct shift_link *link);
const union ib_gid *shift_link_local(const struct shift_link *link);
const union ib_gid *shift_link_remote(const struct shift_link *link);
/* is @gid one of the node at the link's other end? */
bool shift_link_leads_to(const struct shift_link *link, const union ib_gid *gid);
enum shift_link_state shift_link_state(const struct shift_link *link);
/* the MAC that packets to the peer go to; zeroes before the first connection; any context */
void shift_link_dmac(struct shift_link *link, u8 *dmac);
/*
 * Queue one message; process context, does not wait for the network.
 * 0, -ENOTCONN, -EAGAIN (send queue full: try again later), -EINVAL.
 */
int shift_link_send(struct shift_link *link, const struct shift_msg *m);
/* the same over @link or, if that cannot, any other link to the same peer */
int shift_session_send(struct shift_link *link, const struct shift_msg *m);
/* the peer has sent a message for which a QP's work item has to run: may it? */
bool shift_session_hears(struct shift_link *link);
void shift_session_brings(struct shift_link *link);	/* a QP has begun to use it: it may more */
int shift_link_walk(int (*fn)(const struct shift_link_info *info, void *arg), void *arg);
int shift_link_probe(u32 id);	/* 0, -ENOENT, -ENOTCONN */
void shift_link_fill_info(const struct shift_link *link, struct shift_link_info *info);
/* the device is being removed: its links go down for good; references to them stay valid */
void shift_link_device_gone(struct ib_device *dev, bool answers);
/* a port of the device came back: try to connect now, do not wait */
void shift_link_device_up(struct ib_device *dev);
void shift_link_device_renamed(struct ib_device *dev);
int shift_link_init(const struct shift_link_ops *ops);	/* listener, workqueue */
void shift_link_uninit(void);

/* route.c */
void shift_dev_links_up(struct shift_dev *sdev);	/* a port of it is active again */
void shift_dev_choose_cm(struct shift_dev *sdev);
void shift_dev_drop_cm(struct shift_dev *sdev);
struct shift_link *shift_dev_link(struct shift_dev *sdev, const union ib_gid *local,
				  const union ib_gid *remote);

#endif /* SHIFT_LINK_LINK_H */
