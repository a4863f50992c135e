/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inside of links: what link.c, link_work.c, carrier.c and link_cm.c share.
 * Documentation/links.md has states, locks and owners.
 */
#ifndef SHIFT_LINK_PRIV_H
#define SHIFT_LINK_PRIV_H

#include <linux/if_ether.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>
#include "link.h"

#define SHIFT_LINK_BUFS		32	/* receives, and sends, of a carrier */
#define SHIFT_LINK_BUF_SIZE	1024	/* messages in one send */
#define SHIFT_LINK_EAGER	4	/* sends under way from which on messages are gathered */

enum shift_link_item_type {
	SHIFT_LINK_ITEM_UP,
	SHIFT_LINK_ITEM_DOWN,
	SHIFT_LINK_ITEM_MSG,
};

/* something to tell the link's users, in its inbox; holds its carrier */
struct shift_link_item {
	struct list_head entry;
	enum shift_link_item_type type;
	struct shift_carrier *carrier;
};

struct shift_link_buf {
	struct ib_cqe cqe;
	struct shift_link_item item;	/* its entry: free list of sends, too */
	void *data;
	u64 dma;
	u32 len;
};

/**
 * struct shift_carrier - one connection
 * @ref: the destroy work and each item in the inbox.
 * @link: never NULL; the carrier holds a reference.
 * @cm_id: ours alone once the carrier is on the link.
 * @dev: of @pd, @cq and the mappings.
 * @qp: as in @cm_id, for posting.
 * @boot_id: from the HELLO.
 * @hello: the peer's HELLO was accepted.
 * @established: UP was queued.
 * @told: UP was delivered.  Only the delivery work uses it.
 * @installed: was put on the link; the destroy work takes it apart.
 * @closing: retired; nothing is posted any more.
 * @why: it was retired, with @status; set once.
 * @status: see @why.
 * @open: send buffer in which messages are gathered, not posted yet.
 * @sending: sends under way.
 * @since: jiffies; since then the oldest of them waits for its acknowledgment.
 * @silent: retired as nothing was acknowledged for too long.
 * @early: received before the HELLO was seen, without references.
 */
struct shift_carrier {
	struct kref ref;
	struct shift_link *link;
	struct rdma_cm_id *cm_id;
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u8 boot_id[16];
	bool hello;
	bool established;
	bool told;
	bool installed;
	bool closing;
	const char *why;
	int status;
	struct list_head early;
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
 * struct shift_link - one path to a peer
 * @ref: table, carriers, queued @work, armed @timer.
 * @hash, @list, @listed: the table, under shift_links_lock.
 * @active: we connect, the peer listens.
 * @lock: all that follows.
 * @dev: NULL once the device has gone: no timer, no new carrier.
 * @users: references of shift_link_get(); the link stays in the table.
 * @guarded: protected QPs that may use it, whose heartbeats it sends.
 * @carriers: carriers that may still have something on the device, and attempts
 *	to make one; the link stays in the table.
 * @idle: woken when @carriers becomes 0.
 * @deadline: jiffies; of @pending.
 * @session: that the link is in, with @session_entry; shift_sessions_lock.
 * @dmac: where packets to @remote go, as RDMA CM has found it for the newest carrier.
 * @batch: what was received, while it is delivered.
 * @backoff: ms until the next attempt.
 * @acked: sends that the peer's NIC acknowledged.
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

	spinlock_t lock;
	struct ib_device *dev;
	unsigned int users;
	unsigned int guarded;
	unsigned int carriers;
	wait_queue_head_t idle;
	struct shift_carrier *pending;
	struct shift_carrier *carrier;
	bool up;
	struct list_head inbox;
	u8 peer_boot_id[16];
	u8 dmac[ETH_ALEN];
	u64 connects, tx, rx, acked;
	unsigned long deadline;
	unsigned int backoff;
	u32 heartbeat;
	struct shift_session *session;
	struct list_head session_entry;
	struct work_struct work;
	struct delayed_work timer;
	u8 batch[SHIFT_LINK_BUF_SIZE];
};

/* link.c */
extern struct workqueue_struct *shift_link_cm_wq, *shift_link_wq;
extern unsigned short shift_link_port;
struct shift_link *shift_link_find(struct ib_device *dev, const union ib_gid *local,
				   const union ib_gid *remote);
void shift_link_free(struct kref *ref);
void shift_link_let_go(struct shift_link *link);

/* link_work.c */
unsigned long shift_link_jiffies(unsigned int ms);
void shift_link_init_work(struct shift_link *link);
int shift_link_beat(struct shift_link *link);
void shift_link_arm(struct shift_link *link, unsigned long delay);
void shift_link_cut_off(struct shift_link *link);
void shift_link_retry(struct shift_link *link);
void shift_link_retry_now(struct shift_link *link);
void shift_link_queue(struct shift_link *link, struct shift_link_item *item);

/* carrier.c */
struct shift_carrier *shift_carrier_create(struct shift_link *link);
void shift_carrier_put(struct shift_carrier *c);
void shift_carrier_done(struct shift_carrier *c);
int shift_carrier_build(struct shift_carrier *c);
void shift_carrier_release(struct shift_carrier *c);
bool shift_carrier_install(struct shift_carrier *c, bool replace);
void shift_carrier_establish(struct shift_carrier *c);
void shift_carrier_retire(struct shift_carrier *c, const char *why, int status);
void shift_carrier_fail(struct shift_carrier *c, const char *why, int status);
int shift_carrier_post_recv(struct shift_carrier *c, struct shift_link_buf *buf);
int shift_carrier_post_send(struct shift_carrier *c, const struct shift_msg *m);

/* link_cm.c */
int shift_carrier_connect(struct shift_link *link);
int shift_listener_start(void);
void shift_listener_stop(void);

/* session.c */
void shift_session_join(struct shift_link *link);
void shift_session_leave(struct shift_link *link);

/* peer.c */
void shift_peer_clear(void);

#endif /* SHIFT_LINK_PRIV_H */
