/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inside of links: what the files of this folder share.  No other folder includes it.
 * Documentation/internals/links.md has states, locks and owners.
 */
#ifndef SHIFT_LINK_LINK_PRIV_H
#define SHIFT_LINK_LINK_PRIV_H

#include <linux/if_ether.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>
#include "core/qp.h"
#include "link/auth.h"
#include "link/link.h"
#include "pure/bucket.h"
#include "pure/msg.h"

#define SHIFT_LINK_BUFS		32	/* receives, and sends, of a connection */
#define SHIFT_LINK_BUF_SIZE	1024	/* messages in one send */
#define SHIFT_LINK_CONNS	16	/* connections, with those that are being taken apart */
#define SHIFT_LINK_EAGER	4	/* sends under way from which on messages are gathered */
#define SHIFT_LINK_TURN		64	/* items of the inbox, handled between two pauses */
#define SHIFT_LINK_LANES	4	/* traffic classes that have heartbeats of their own */
#define SHIFT_LINK_CLASS	0xfc	/* what of a traffic class names it: the rest is ECN's */

/*
 * The messages that a peer may send for work items of QPs: HEARD_MOST at a time and one more each
 * HEARD_NS, for each use that a QP makes of its links, and for HEARD_BASE uses more.
 * Documentation/internals/links.md, "Rates".
 */
#define SHIFT_LINK_HEARD_NS	(125 * NSEC_PER_MSEC)
#define SHIFT_LINK_HEARD_MOST	256
#define SHIFT_LINK_HEARD_BASE	16

typedef void shift_wc_fn(struct ib_cq *cq, struct ib_wc *wc);

enum shift_link_item_type {
	SHIFT_LINK_ITEM_UP,
	SHIFT_LINK_ITEM_DOWN,
	SHIFT_LINK_ITEM_MSG,
};

/* what the delivery work is to do, in the link's inbox; it has a reference to the connection */
struct shift_link_item {
	struct list_head entry;
	enum shift_link_item_type type;
	struct shift_conn *conn;
};

struct shift_link_buf {
	struct ib_cqe cqe;
	struct shift_link_item item;	/* its entry: free list of sends, too */
	void *data;
	u64 dma;
	u32 len;
};

/**
 * struct shift_conn - one connection
 * @ref: held by the destroy work and by each item in the inbox.
 * @link: never NULL; the connection has a reference.
 * @cm_id: destroyed by the destroy work, once the connection is on the link.
 * @dev: of @pd, @cq and the mappings.
 * @qp: as in @cm_id, for posting.
 * @boot_id: from the HELLO.
 * @node: of the directory, to which it was established.
 * @form: of the messages, as both HELLOs allow it.
 * @tclass: traffic class in which it goes; once @hello is set.
 * @hello: the peer's HELLO was accepted.
 * @connected: RDMA CM has connected it; only its handler and the destroy work use it.
 * @established: UP was queued.
 * @told: UP was delivered.  Only the delivery work uses it.
 * @installed: the connection was put on the link; the destroy work takes it apart.
 * @closing: the connection is retired: nothing is posted any more.
 * @why: reason for which it was retired, for operators; set once.
 * @status: number that goes with @why.
 * @open: send buffer in which messages are gathered, not posted yet.
 * @sending: sends under way.
 * @since: jiffies; so long the oldest of these sends has been waiting for its acknowledgment.
 * @silent: it was retired because nothing was acknowledged for too long.
 * @auth: what its ends have to prove before it is established.
 * @early: buffers received before the HELLO was seen; they have no references.
 * @left: the peer has ended the connection, or has answered that this end did.
 */
struct shift_conn {
	struct kref ref;
	struct shift_link *link;
	struct rdma_cm_id *cm_id;
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u8 boot_id[16];
	char node[SHIFT_NODE_MAX];
	struct shift_msg_form form;
	u8 tclass;
	bool hello;
	bool connected;
	bool established;
	bool told;
	bool installed;
	bool closing;
	const char *why;
	int status;
	struct shift_auth auth;
	struct list_head early;
	struct completion left;
	struct list_head free;		/* send buffers */
	struct shift_link_buf *open;
	unsigned int sending;
	unsigned long since;
	bool silent;
	void *rx_data, *tx_data;
	u64 rx_dma, tx_dma;
	bool rx_mapped, tx_mapped;
	struct shift_link_item up, down;
	struct delayed_work destroy;
	struct shift_link_buf rx[SHIFT_LINK_BUFS];
	struct shift_link_buf tx[SHIFT_LINK_BUFS];
};

/**
 * struct shift_neigh - the interface by which a link reaches its peer
 * @hash: in the table of link/neigh.c since the link's first connection.
 * @net: cookie of the interface's network namespace.
 * @ifindex: the interface.
 */
struct shift_neigh {
	struct hlist_node hash;
	u64 net;
	int ifindex;
};

/**
 * struct shift_link - one path to a peer
 * @ref: table, connections, queued @deliver, armed @timer and @beat.
 * @hash, @list, @listed: the table, under shift_links_lock.
 * @active: this side connects, the peer listens.
 * @base: this is a lane of that link, in class @tclass, with a reference; NULL: it is no lane.
 * @lanes: the lanes of this link, by @sibling; shift_links_lock.
 * @name: present name of @dev, or the last one; written under shift_links_lock and @lock.  Messages
 *	of the kernel's log read it without, and may show a mixture.
 * @neigh: under a lock of link/neigh.c.
 * @users_lock: @user_list.  Held for list operations, and while the QPs on it are kicked.
 * @user_list: QPs that use the link and get its news, by shift_link_user.entry; of a lane by
 *	lane_entry.
 * @lock: all that follows.
 * @dev: NULL once the device has gone: no timers, no new connection.
 * @users: references of shift_link_get(); the link stays in the table.
 * @guarded: number of protected QPs that may use the link: then it sends heartbeats.
 * @conns: connections that may still have something on the device, and attempts to make one;
 *	the link stays in the table.
 * @silent: it went down as nothing was acknowledged, and has not come up since.
 * @idle: woken when @conns becomes 0.
 * @deadline: jiffies; of @pending.
 * @leave: jiffies; so long connections that end wait for the peer's answer, once the device goes.
 * @leaving: who waits until it has let go of its device; also shift_links_lock.
 * @beat_at: jiffies; the next heartbeat is due.
 * @peer_node: node of the directory that it was connected to; shift_sessions_lock.
 * @session: that the link is in, with @session_entry; shift_sessions_lock.
 * @heard: what its peer may send while it is in no session; shift_sessions_lock.
 * @dmac: where packets to @remote go, as RDMA CM has found it for the newest connection.
 * @timer: connects it.
 * @beat: sends heartbeats while the link is up, and sees whether they are acknowledged.
 * @deliver: takes the inbox in.
 * @batch: what was received, while it is delivered.
 * @failures: failed attempts to connect it, in a row.
 * @acked: sends that the peer's NIC acknowledged.
 * @dscps: bits of the lanes that are up.
 */
struct shift_link {
	struct kref ref;
	struct hlist_node hash;
	struct list_head list;
	bool listed;
	u32 id;
	char name[IB_DEVICE_NAME_MAX];
	union ib_gid local, remote;
	bool active;
	struct shift_link *base;
	struct list_head lanes, sibling;
	u8 tclass;
	struct shift_neigh neigh;

	struct mutex users_lock;
	struct list_head user_list;

	spinlock_t lock;
	struct ib_device *dev;
	unsigned int users;
	unsigned int guarded;
	unsigned int conns;
	wait_queue_head_t idle;
	struct shift_conn *pending;
	struct shift_conn *conn;
	bool up;
	bool silent;
	struct list_head inbox;
	u8 peer_boot_id[16];
	u8 dmac[ETH_ALEN];
	u64 connects, tx, rx, acked, dscps;
	unsigned long deadline, leave, beat_at;
	const void *leaving;
	unsigned int failures;
	u32 heartbeat;
	char peer_node[SHIFT_NODE_MAX];
	struct shift_session *session;
	struct list_head session_entry;
	struct shift_bucket heard;
	struct delayed_work deliver;
	struct delayed_work timer;
	struct delayed_work beat;
	u8 batch[SHIFT_LINK_BUF_SIZE];
};

extern struct workqueue_struct *shift_link_cm_wq, *shift_link_beat_wq, *shift_link_wq;
extern struct mutex shift_links_lock;
extern struct list_head shift_links;
extern unsigned short shift_link_port;
extern const struct shift_link_ops *shift_link_ops;
struct shift_link *shift_link_find(struct ib_device *dev, const union ib_gid *local,
				   const union ib_gid *remote);
void shift_links_allow(bool allowed);
void shift_link_unref(struct shift_link *link);
void shift_link_reap(struct shift_link *link);
void shift_link_let_go(struct shift_link *link);
void shift_link_init_work(struct shift_link *link);
int shift_link_beat(struct shift_link *link);
void shift_link_arm(struct shift_link *link, struct delayed_work *work, unsigned long delay);
void shift_link_cut_off(struct shift_link *link);
void shift_link_retry(struct shift_link *link);
void shift_link_retry_now(struct shift_link *link);
void shift_link_queue(struct shift_link *link, struct shift_link_item *item);
void shift_link_tell(struct shift_link *link, enum shift_link_news news);
int shift_buf_alloc(struct shift_conn *c, shift_wc_fn *recv_done, shift_wc_fn *send_done);
void shift_buf_free(struct shift_conn *c);
int shift_buf_map(struct shift_conn *c);
void shift_buf_unmap(struct shift_conn *c);
int shift_buf_post_recv(struct shift_conn *c, struct shift_link_buf *buf);
int shift_buf_post_send(struct shift_conn *c, struct shift_link_buf *buf);
struct shift_conn *shift_conn_create(struct shift_link *link);
void shift_conn_put(struct shift_conn *c);
void shift_conn_done(struct shift_conn *c);
int shift_conn_build(struct shift_conn *c);
void shift_conn_release(struct shift_conn *c);
void shift_conn_destroy(struct work_struct *work);
bool shift_conn_install(struct shift_conn *c, bool replace);
void shift_conn_establish(struct shift_conn *c);
void shift_conn_retire(struct shift_conn *c, const char *why, int status);
void shift_conn_fail(struct shift_conn *c, const char *why, int status);
int shift_conn_post_send(struct shift_conn *c, const struct shift_msg *m);
int shift_conn_connect(struct shift_link *link);
bool shift_link_try(const struct ib_device *dev, const union ib_gid *remote);
struct shift_link *shift_link_beside(const union ib_gid *remote);
bool shift_lane_ready(struct shift_link *lane);
bool shift_lane_welcome(struct shift_link *link, const u8 *boot_id);
void shift_lane_up(struct shift_link *lane);
void shift_lane_down(struct shift_link *lane, bool silent);
void shift_lane_absolve(struct shift_link *lane);
void shift_dreq_make(const struct ib_device *dev, const union ib_gid *remote, u32 local_id,
		     u32 remote_id, u32 remote_qpn);
void shift_dreq_init(void);
void shift_dreq_uninit(void);
void shift_neigh_note(struct shift_link *link, const struct rdma_dev_addr *addr);
void shift_neigh_forget(struct shift_link *link);
void shift_neigh_init(void);
void shift_neigh_uninit(void);
bool shift_port_is_privileged(u16 port);
int shift_listener_start(void);
void shift_listener_stop(void);
void shift_session_join(struct shift_link *link, const char *node);
void shift_session_leave(struct shift_link *link);
void shift_peer_clear(void);

#endif /* SHIFT_LINK_LINK_PRIV_H */
