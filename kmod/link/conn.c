// SPDX-License-Identifier: GPL-2.0
/*
 * Connections of links: one RC QP each, and its completions.  How one ends: link/teardown.c.
 * Documentation/internals/links.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "core/ib.h"
#include "core/node.h"
#include "core/stat.h"
#include "link/link.h"
#include "link/link_priv.h"
#include "pure/msg.h"

#define SHIFT_CONN_SETUP	3000	/* ms until it must be established */

static void conn_recv_done(struct ib_cq *cq, struct ib_wc *wc);
static void conn_send_done(struct ib_cq *cq, struct ib_wc *wc);
static int conn_flush(struct shift_conn *c);
static void conn_prove(struct work_struct *work);

static void conn_free(struct kref *ref)
{
	struct shift_conn *c = container_of(ref, struct shift_conn, ref);
	struct shift_link *link = c->link;

	shift_buf_free(c);
	kvfree(c);
	shift_link_unref(link);
}

/**
 * shift_conn_put - drop a reference to a connection's memory
 * @c: connection.
 *
 * Context: process.
 */
void shift_conn_put(struct shift_conn *c)
{
	kref_put(&c->ref, conn_free);
}

/**
 * shift_conn_done - a connection has nothing on its device any more: drop it
 * @c: connection, whose cm_id is destroyed, or is the caller's.
 *
 * Context: process, may sleep.
 */
void shift_conn_done(struct shift_conn *c)
{
	struct shift_link *link = c->link;

	kref_get(&link->ref);
	shift_conn_put(c);

	shift_link_let_go(link);
	shift_link_unref(link);
}

/* May a link have one connection more?  It is counted then. */
static bool conn_is_allowed(struct shift_link *link)
{
	bool crowded, allowed;

	spin_lock_irq(&link->lock);
	crowded = link->dev && link->conns >= SHIFT_LINK_CONNS;
	allowed = link->dev && !crowded;
	if (allowed)
		link->conns++;
	spin_unlock_irq(&link->lock);
	if (crowded) {
		shift_stat_inc(SHIFT_STAT_CROWDED);
		pr_warn_ratelimited("link %u: no connection with %pI6c: too many are not gone\n",
				    link->id, link->remote.raw);
	}
	return allowed;
}

/**
 * shift_conn_create - make a connection, without anything on the device yet
 * @link: referenced.
 *
 * There are at most SHIFT_LINK_CONNS of a link: a peer may end connections faster than they can be
 * taken apart here.
 *
 * Context: process, may sleep.
 * Return: the connection; NULL: no memory, too many of them, or the device has gone.
 */
struct shift_conn *shift_conn_create(struct shift_link *link)
{
	struct shift_conn *c;

	/* before memory is taken for it: a peer may ask for more again and again */
	if (!conn_is_allowed(link))
		return NULL;
	c = kvzalloc(sizeof(*c), GFP_KERNEL);
	if (!c || shift_buf_alloc(c, conn_recv_done, conn_send_done)) {
		if (c)
			shift_buf_free(c);
		kvfree(c);
		shift_link_let_go(link);
		return NULL;
	}
	kref_get(&link->ref);
	c->link = link;
	kref_init(&c->ref);
	INIT_LIST_HEAD(&c->early);
	init_completion(&c->left);
	INIT_DELAYED_WORK(&c->destroy, shift_conn_destroy);
	INIT_WORK(&c->auth.work, conn_prove);
	c->auth.wanted = shift_auth_keys();
	if (c->auth.wanted)
		get_random_bytes(c->auth.nonce, sizeof(c->auth.nonce));
	c->up.type = SHIFT_LINK_ITEM_UP;
	c->up.conn = c;
	c->down.type = SHIFT_LINK_ITEM_DOWN;
	c->down.conn = c;
	return c;
}

/**
 * shift_conn_retire - a connection is not used any more: have it taken apart
 * @c: its link is locked.  May have been retired before.
 * @why: for operators; not freed.
 * @status: number that goes with it.
 *
 * Context: any.
 */
void shift_conn_retire(struct shift_conn *c, const char *why, int status)
{
	struct shift_link *link = c->link;

	lockdep_assert_held(&link->lock);

	if (c->closing)
		return;
	c->closing = true;
	c->why = why;
	c->status = status;
	if (!c->installed)
		return;
	if (!c->established)
		pr_debug("link %u: not connected: %s (%d)\n", link->id, why, status);
	if (link->pending == c)
		link->pending = NULL;
	if (link->conn == c) {
		link->conn = NULL;
		if (link->up)
			WRITE_ONCE(link->silent, c->silent);
		link->up = false;
	}
	if (c->established)
		shift_link_queue(link, &c->down);
	queue_delayed_work(shift_link_cm_wq, &c->destroy, 0);
	shift_link_retry(link);
}

/**
 * shift_conn_fail - as shift_conn_retire(), but takes the link's lock
 * @c: connection.
 * @why: for operators; not freed.
 * @status: number that goes with it.
 *
 * Context: any.
 */
void shift_conn_fail(struct shift_conn *c, const char *why, int status)
{
	unsigned long flags;

	spin_lock_irqsave(&c->link->lock, flags);
	shift_conn_retire(c, why, status);
	spin_unlock_irqrestore(&c->link->lock, flags);
}

/**
 * shift_conn_install - make a connection the one that its link waits for (link->pending)
 * @c: connection with its cm_id.
 * @replace: do so also if the link has another connection; an older pending one is retired.
 *
 * Context: process.
 * Return: true: it is ended with shift_conn_retire(), which ends its cm_id, too; false: the caller
 * has to take it apart.
 */
bool shift_conn_install(struct shift_conn *c, bool replace)
{
	struct shift_link *link = c->link;
	bool ok;

	spin_lock_irq(&link->lock);
	ok = !c->closing && link->dev && (replace || (!link->pending && !link->conn));
	if (ok) {
		struct shift_conn *old = link->pending;

		c->installed = true;
		link->pending = c;
		if (old)
			shift_conn_retire(old, "replaced", 0);
		link->deadline = jiffies + shift_scaled_jiffies(SHIFT_CONN_SETUP);
		shift_link_arm(link, &link->timer, shift_scaled_jiffies(SHIFT_CONN_SETUP));
	}
	spin_unlock_irq(&link->lock);
	return ok;
}

/**
 * shift_conn_establish - the connection is established and the HELLO was accepted
 * @c: its link is locked.  May have been established or retired before.  If its ends still have to
 *	prove that they know the key, this is called once more when they have.
 *
 * Context: any.
 */
void shift_conn_establish(struct shift_conn *c)
{
	struct shift_link *link = c->link;
	struct shift_conn *old = link->conn;
	struct shift_link_buf *buf, *next;

	lockdep_assert_held(&link->lock);

	if (c->closing || c->established || link->pending != c)
		return;
	if (c->auth.wanted && !c->auth.proven) {
		queue_work(shift_link_cm_wq, &c->auth.work);
		return;
	}
	/* the node may have been removed since the connection was asked for */
	if (shift_peer_node(&link->remote, c->node)) {
		shift_conn_retire(c, "its node is not in the directory", 0);
		return;
	}
	link->pending = NULL;
	link->conn = c;
	link->up = false;
	if (old)
		shift_conn_retire(old, "replaced", 0);
	c->established = true;
	shift_link_queue(link, &c->up);
	list_for_each_entry_safe(buf, next, &c->early, item.entry) {
		list_del(&buf->item.entry);
		shift_link_queue(link, &buf->item);
	}
}

/* Completions, in softirq */

static void conn_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_link_buf *buf = container_of(wc->wr_cqe, struct shift_link_buf, cqe);
	struct shift_conn *c = buf->item.conn;
	unsigned long flags;

	if (wc->status != IB_WC_SUCCESS) {
		shift_conn_fail(c, ib_wc_status_msg(wc->status), wc->status);
		return;
	}
	ib_dma_sync_single_for_cpu(c->dev, buf->dma, SHIFT_LINK_BUF_SIZE, DMA_FROM_DEVICE);
	buf->len = wc->byte_len;

	spin_lock_irqsave(&c->link->lock, flags);
	if (!c->closing) {
		/* the peer sent this after its RTU, which may be late or lost */
		if (c->hello)
			shift_conn_establish(c);
		if (c->established)
			shift_link_queue(c->link, &buf->item);
		else
			list_add_tail(&buf->item.entry, &c->early);
	}
	spin_unlock_irqrestore(&c->link->lock, flags);
}

static void conn_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_link_buf *buf = container_of(wc->wr_cqe, struct shift_link_buf, cqe);
	struct shift_conn *c = buf->item.conn;
	unsigned long flags;

	spin_lock_irqsave(&c->link->lock, flags);
	if (wc->status != IB_WC_SUCCESS) {
		c->silent |= wc->status == IB_WC_RETRY_EXC_ERR && !c->closing;
		shift_conn_retire(c, ib_wc_status_msg(wc->status), wc->status);
	} else {
		c->link->acked++;
	}
	list_add_tail(&buf->item.entry, &c->free);
	c->sending--;
	c->since = jiffies;
	if (c->open && !c->closing)
		conn_flush(c);
	spin_unlock_irqrestore(&c->link->lock, flags);
}

static void conn_qp_event(struct ib_event *event, void *context)
{
	struct shift_conn *c = context;

	if (event->event == IB_EVENT_COMM_EST)
		rdma_notify(c->cm_id, event->event);
	else if (event->event == IB_EVENT_QP_FATAL || event->event == IB_EVENT_QP_REQ_ERR ||
		 event->event == IB_EVENT_QP_ACCESS_ERR)
		shift_conn_fail(c, ib_event_msg(event->event), 0);
}

/* Posting */

/* Post the buffer in which messages were gathered; the link is locked. */
static int conn_flush(struct shift_conn *c)
{
	struct shift_link_buf *buf = c->open;
	int err;

	lockdep_assert_held(&c->link->lock);
	c->open = NULL;
	err = shift_buf_post_send(c, buf);
	if (err) {
		list_add(&buf->item.entry, &c->free);
		shift_conn_retire(c, "post send", err);
		return -ENOTCONN;
	}
	if (!c->sending++)
		c->since = jiffies;
	return 0;
}

/* Proofs: what is sent and received before the connection is established */

static int conn_send_frame(struct shift_conn *c, const struct shift_auth_frame *frame)
{
	struct shift_link_buf *buf;
	int err = -ENOTCONN;

	spin_lock_irq(&c->link->lock);
	buf = list_first_entry_or_null(&c->free, struct shift_link_buf, item.entry);
	if (!c->closing && !buf) {
		err = -EAGAIN;
	} else if (!c->closing) {
		list_del(&buf->item.entry);
		ib_dma_sync_single_for_cpu(c->dev, buf->dma, SHIFT_LINK_BUF_SIZE, DMA_TO_DEVICE);
		memcpy(buf->data, frame, sizeof(*frame));
		buf->len = sizeof(*frame);
		c->open = buf;
		err = conn_flush(c);
	}
	spin_unlock_irq(&c->link->lock);
	return err;
}

/* The next buffer that waits, if the peer has not proved itself yet. */
static struct shift_link_buf *conn_next_frame(struct shift_conn *c)
{
	struct shift_link_buf *buf = NULL;

	spin_lock_irq(&c->link->lock);
	if (!c->closing && !c->auth.proven)
		buf = list_first_entry_or_null(&c->early, struct shift_link_buf, item.entry);
	if (buf)
		list_del(&buf->item.entry);
	spin_unlock_irq(&c->link->lock);
	return buf;
}

/* Give a buffer back; when the peer has proved itself the connection is established. */
static int conn_frame_done(struct shift_conn *c, struct shift_link_buf *buf, bool proven)
{
	int err = 0;

	spin_lock_irq(&c->link->lock);
	c->auth.proven |= proven;
	if (!c->closing) {
		err = shift_buf_post_recv(c, buf);
		if (!err && c->auth.proven)
			shift_conn_establish(c);
	}
	spin_unlock_irq(&c->link->lock);
	return err;
}

static int conn_take_frame(struct shift_conn *c, struct shift_link_buf *buf)
{
	struct shift_auth_frame answer;
	int ret, err = 0;

	ret = shift_auth_take(c, buf->data, buf->len, &answer);
	if (ret < 0)
		return ret;
	if (ret == SHIFT_AUTH_ANSWER)
		err = conn_send_frame(c, &answer);
	return err ?: conn_frame_done(c, buf, ret == SHIFT_AUTH_PROVEN);
}

static void conn_prove(struct work_struct *work)
{
	struct shift_conn *c = container_of(work, struct shift_conn, auth.work);
	unsigned int noio = memalloc_noio_save();
	struct shift_auth_frame ask;
	struct shift_link_buf *buf;
	int err = 0;

	if (!c->auth.asked) {
		c->auth.asked = true;
		shift_auth_ask(c, &ask);
		err = conn_send_frame(c, &ask);
	}
	while (!err && (buf = conn_next_frame(c)))
		err = conn_take_frame(c, buf);
	if (err && err != -ENOTCONN)
		shift_conn_fail(c, "proof", err);
	memalloc_noio_restore(noio);
}

/**
 * shift_conn_post_send - send one message
 * @c: established; its link is locked.
 * @m: message.
 *
 * It is sent at once, unless SHIFT_LINK_EAGER sends are under way: then messages are gathered until
 * one of these completes or a buffer is full.
 *
 * Context: any.
 * Return: as shift_link_send().
 */
int shift_conn_post_send(struct shift_conn *c, const struct shift_msg *m)
{
	struct shift_link_buf *buf = c->open;
	int len;

	lockdep_assert_held(&c->link->lock);

	if (!buf) {
		buf = list_first_entry_or_null(&c->free, struct shift_link_buf, item.entry);
		if (!buf)
			return -EAGAIN;
		list_del(&buf->item.entry);
		buf->len = 0;
		c->open = buf;
		ib_dma_sync_single_for_cpu(c->dev, buf->dma, SHIFT_LINK_BUF_SIZE,
					   DMA_TO_DEVICE);
	}
	len = shift_msg_encode(m, &c->form, buf->data + buf->len, SHIFT_LINK_BUF_SIZE - buf->len);
	if (len > 0) {
		buf->len += len;
		c->link->tx++;
	} else if (!buf->len) {
		c->open = NULL;
		list_add(&buf->item.entry, &c->free);
		return -EINVAL;
	}
	if (c->sending < SHIFT_LINK_EAGER ||
	    SHIFT_LINK_BUF_SIZE - buf->len < SHIFT_MSG_MAX)
		return conn_flush(c) ?: min(len, 0);
	return min(len, 0);
}

/* On the device */

/**
 * shift_conn_build - make all that a connection needs on its device
 * @c: with a cm_id that is bound to a device.
 *
 * Context: handler of the cm_id.
 * Return: 0 or -errno; then, too, shift_conn_release() has to be called, here
 * or by the destroy work.
 */
int shift_conn_build(struct shift_conn *c)
{
	struct ib_qp_init_attr attr = {
		.event_handler = conn_qp_event,
		.qp_context = c,
		.cap = {
			.max_send_wr = SHIFT_LINK_BUFS,
			.max_recv_wr = SHIFT_LINK_BUFS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};
	unsigned int i;
	int err;

	c->dev = c->cm_id->device;
	c->pd = ib_alloc_pd(c->dev, 0);
	if (IS_ERR(c->pd)) {
		err = PTR_ERR(c->pd);
		c->pd = NULL;
		return err;
	}
	err = shift_buf_map(c);
	if (err)
		return err;
	c->cq = ib_alloc_cq_any(c->dev, c, 2 * SHIFT_LINK_BUFS, IB_POLL_SOFTIRQ);
	if (IS_ERR(c->cq)) {
		err = PTR_ERR(c->cq);
		c->cq = NULL;
		return err;
	}
	attr.send_cq = c->cq;
	attr.recv_cq = c->cq;
	err = rdma_create_qp(c->cm_id, c->pd, &attr);
	if (err)
		return err;
	c->qp = c->cm_id->qp;
	for (i = 0; i < SHIFT_LINK_BUFS; i++) {
		err = shift_buf_post_recv(c, &c->rx[i]);
		if (err)
			return err;
	}
	return 0;
}
