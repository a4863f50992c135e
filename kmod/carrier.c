// SPDX-License-Identifier: GPL-2.0
/*
 * Carriers of links: one RC QP each, with its buffers and completions, from
 * being made to being torn down.  Documentation/links.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": link: " fmt

#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "link_priv.h"
#include "shift.h"
#include "switch.h"

#define SHIFT_CARRIER_SETUP	3000	/* ms until it must be established */
#define SHIFT_CARRIER_HUSH	1000	/* ms between looks for a cable, to say good-bye */

static void shift_carrier_destroy(struct work_struct *work);
static void shift_carrier_recv_done(struct ib_cq *cq, struct ib_wc *wc);
static void shift_carrier_send_done(struct ib_cq *cq, struct ib_wc *wc);
static int shift_carrier_flush(struct shift_carrier *c);

static void shift_carrier_free(struct kref *ref)
{
	struct shift_carrier *c = container_of(ref, struct shift_carrier, ref);
	struct shift_link *link = c->link;

	kfree(c->rx_data);
	kfree(c->tx_data);
	kvfree(c);
	kref_put(&link->ref, shift_link_free);
}

/**
 * shift_carrier_put - drop a reference to a carrier's memory
 * @c: carrier.
 *
 * Context: process.
 */
void shift_carrier_put(struct shift_carrier *c)
{
	kref_put(&c->ref, shift_carrier_free);
}

/**
 * shift_carrier_done - end of a carrier that has nothing on its device any more
 * @c: carrier, its cm_id not its own (any more).
 *
 * Context: process, may sleep.
 */
void shift_carrier_done(struct shift_carrier *c)
{
	struct shift_link *link = c->link;

	kref_get(&link->ref);
	shift_carrier_put(c);

	shift_link_let_go(link);
	kref_put(&link->ref, shift_link_free);
}

/**
 * shift_carrier_create - memory for a carrier, without anything of its device
 * @link: referenced.
 *
 * Context: process, may sleep.
 * Return: the carrier; NULL: no memory, or the device has gone.
 */
struct shift_carrier *shift_carrier_create(struct shift_link *link)
{
	struct shift_carrier *c = kvzalloc(sizeof(*c), GFP_KERNEL);
	unsigned int i;

	if (!c)
		return NULL;
	c->rx_data = kcalloc(SHIFT_LINK_BUFS, SHIFT_LINK_BUF_SIZE, GFP_KERNEL);
	c->tx_data = kcalloc(SHIFT_LINK_BUFS, SHIFT_LINK_BUF_SIZE, GFP_KERNEL);
	if (!c->rx_data || !c->tx_data)
		goto err;

	kref_init(&c->ref);
	INIT_LIST_HEAD(&c->early);
	INIT_LIST_HEAD(&c->free);
	INIT_DELAYED_WORK(&c->destroy, shift_carrier_destroy);
	c->up.type = SHIFT_LINK_ITEM_UP;
	c->up.carrier = c;
	c->down.type = SHIFT_LINK_ITEM_DOWN;
	c->down.carrier = c;
	for (i = 0; i < SHIFT_LINK_BUFS; i++) {
		c->rx[i].cqe.done = shift_carrier_recv_done;
		c->rx[i].data = c->rx_data + i * SHIFT_LINK_BUF_SIZE;
		c->rx[i].item.type = SHIFT_LINK_ITEM_MSG;
		c->rx[i].item.carrier = c;
		c->tx[i].cqe.done = shift_carrier_send_done;
		c->tx[i].data = c->tx_data + i * SHIFT_LINK_BUF_SIZE;
		c->tx[i].item.carrier = c;
		list_add_tail(&c->tx[i].item.entry, &c->free);
	}

	spin_lock_irq(&link->lock);
	if (link->dev) {
		link->carriers++;
		kref_get(&link->ref);
		c->link = link;
	}
	spin_unlock_irq(&link->lock);
	if (c->link)
		return c;
err:
	kfree(c->rx_data);
	kfree(c->tx_data);
	kvfree(c);
	return NULL;
}

/**
 * shift_carrier_retire - a carrier is of no use any more
 * @c: its link is locked.  May have been retired before.
 * @why: for operators; not freed.
 * @status: number that goes with it.
 *
 * Context: any.
 */
void shift_carrier_retire(struct shift_carrier *c, const char *why, int status)
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
		pr_debug("%u: not connected: %s (%d)\n", link->id, why, status);
	if (link->pending == c)
		link->pending = NULL;
	if (link->carrier == c) {
		link->carrier = NULL;
		link->up = false;
	}
	if (c->established)
		shift_link_queue(link, &c->down);
	queue_delayed_work(shift_link_cm_wq, &c->destroy, 0);
	shift_link_retry(link);
}

/**
 * shift_carrier_fail - as shift_carrier_retire(), takes the lock itself
 * @c: carrier.
 * @why: for operators; not freed.
 * @status: number that goes with it.
 *
 * Context: any.
 */
void shift_carrier_fail(struct shift_carrier *c, const char *why, int status)
{
	unsigned long flags;

	spin_lock_irqsave(&c->link->lock, flags);
	shift_carrier_retire(c, why, status);
	spin_unlock_irqrestore(&c->link->lock, flags);
}

/**
 * shift_carrier_release - free what shift_carrier_build() has made
 * @c: carrier that is not on the link, or is closing.
 *
 * Context: process, sleeps.
 */
void shift_carrier_release(struct shift_carrier *c)
{
	/* its end is the end of all use of the buffers */
	if (c->qp) {
		shift_qp_quiet(c->qp);
		rdma_destroy_qp(c->cm_id);
	}
	if (c->cq)
		ib_free_cq(c->cq);
	if (c->rx_mapped)
		ib_dma_unmap_single(c->dev, c->rx_dma, SHIFT_LINK_BUFS * SHIFT_LINK_BUF_SIZE,
				    DMA_FROM_DEVICE);
	if (c->tx_mapped)
		ib_dma_unmap_single(c->dev, c->tx_dma, SHIFT_LINK_BUFS * SHIFT_LINK_BUF_SIZE,
				    DMA_TO_DEVICE);
	if (c->pd)
		ib_dealloc_pd(c->pd);
	c->qp = NULL;
	c->cq = NULL;
	c->pd = NULL;
	c->rx_mapped = false;
	c->tx_mapped = false;
}

/*
 * The end of a connection is a message of RDMA CM's.  rxe of 6.12 takes what cannot leave for an
 * error of its CM's QP, which never receives again: nothing is said while the cable is out.
 */
static bool shift_carrier_may_speak(struct shift_carrier *c)
{
	struct shift_link *link = c->link;
	struct ib_device *dev;

	spin_lock_irq(&link->lock);
	dev = link->dev;
	spin_unlock_irq(&link->lock);
	/* a device that goes is not kept waiting */
	return !dev || shift_gid_has_carrier(dev, &link->local);
}

static void shift_carrier_destroy(struct work_struct *work)
{
	struct shift_carrier *c = container_of(to_delayed_work(work), struct shift_carrier,
					       destroy);
	unsigned int noio = memalloc_noio_save();
	bool speak = shift_carrier_may_speak(c);

	/* the last handler that may not have seen c->closing */
	rdma_lock_handler(c->cm_id);
	rdma_unlock_handler(c->cm_id);

	if (c->qp && speak)
		rdma_disconnect(c->cm_id);
	shift_carrier_release(c);
	if (speak) {
		/* this says what was not said yet */
		rdma_destroy_id(c->cm_id);
		shift_carrier_done(c);
	} else {
		queue_delayed_work(shift_link_cm_wq, &c->destroy,
				   msecs_to_jiffies(SHIFT_CARRIER_HUSH));
	}
	memalloc_noio_restore(noio);
}

/**
 * shift_carrier_install - make a carrier the newest on its way
 * @c: carrier with its cm_id.
 * @replace: retire an older one on its way, and let there be an established one.
 *
 * Context: process.
 * Return: true: the carrier ends by being retired, and its cm_id with it; false:
 * it stays the caller's to take apart.
 */
bool shift_carrier_install(struct shift_carrier *c, bool replace)
{
	struct shift_link *link = c->link;
	bool ok;

	spin_lock_irq(&link->lock);
	ok = !c->closing && link->dev && (replace || (!link->pending && !link->carrier));
	if (ok) {
		struct shift_carrier *old = link->pending;

		c->installed = true;
		link->pending = c;
		if (old)
			shift_carrier_retire(old, "replaced", 0);
		link->deadline = jiffies + shift_link_jiffies(SHIFT_CARRIER_SETUP);
		/* if there still is a carrier, the timer is set for its heartbeat */
		if (!link->up)
			shift_link_arm(link, shift_link_jiffies(SHIFT_CARRIER_SETUP));
	}
	spin_unlock_irq(&link->lock);
	return ok;
}

/**
 * shift_carrier_establish - the connection stands and the HELLO was accepted
 * @c: its link is locked.  May have been established or retired before.
 *
 * Context: any.
 */
void shift_carrier_establish(struct shift_carrier *c)
{
	struct shift_link *link = c->link;
	struct shift_carrier *old = link->carrier;
	struct shift_link_buf *buf, *next;

	lockdep_assert_held(&link->lock);

	if (c->closing || c->established || link->pending != c)
		return;
	link->pending = NULL;
	link->carrier = c;
	link->up = false;
	if (old)
		shift_carrier_retire(old, "replaced", 0);
	c->established = true;
	shift_link_queue(link, &c->up);
	list_for_each_entry_safe(buf, next, &c->early, item.entry) {
		list_del(&buf->item.entry);
		shift_link_queue(link, &buf->item);
	}
}

/* Completions, in softirq */

static void shift_carrier_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_link_buf *buf = container_of(wc->wr_cqe, struct shift_link_buf, cqe);
	struct shift_carrier *c = buf->item.carrier;
	unsigned long flags;

	if (wc->status != IB_WC_SUCCESS) {
		shift_carrier_fail(c, ib_wc_status_msg(wc->status), wc->status);
		return;
	}
	ib_dma_sync_single_for_cpu(c->dev, buf->dma, SHIFT_LINK_BUF_SIZE, DMA_FROM_DEVICE);
	buf->len = wc->byte_len;

	spin_lock_irqsave(&c->link->lock, flags);
	if (!c->closing) {
		/* the peer's RTU may be late, or lost, but it sent this after it */
		if (c->hello)
			shift_carrier_establish(c);
		if (c->established)
			shift_link_queue(c->link, &buf->item);
		else
			list_add_tail(&buf->item.entry, &c->early);
	}
	spin_unlock_irqrestore(&c->link->lock, flags);
}

static void shift_carrier_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_link_buf *buf = container_of(wc->wr_cqe, struct shift_link_buf, cqe);
	struct shift_carrier *c = buf->item.carrier;
	unsigned long flags;

	spin_lock_irqsave(&c->link->lock, flags);
	if (wc->status != IB_WC_SUCCESS) {
		c->silent |= wc->status == IB_WC_RETRY_EXC_ERR && !c->closing;
		shift_carrier_retire(c, ib_wc_status_msg(wc->status), wc->status);
	} else {
		c->link->acked++;
	}
	list_add_tail(&buf->item.entry, &c->free);
	c->sending--;
	c->since = jiffies;
	if (c->open && !c->closing)
		shift_carrier_flush(c);
	spin_unlock_irqrestore(&c->link->lock, flags);
}

static void shift_carrier_qp_event(struct ib_event *event, void *context)
{
	struct shift_carrier *c = context;

	if (event->event == IB_EVENT_COMM_EST)
		rdma_notify(c->cm_id, event->event);
	else if (event->event == IB_EVENT_QP_FATAL || event->event == IB_EVENT_QP_REQ_ERR ||
		 event->event == IB_EVENT_QP_ACCESS_ERR)
		shift_carrier_fail(c, ib_event_msg(event->event), 0);
}

/* Posting */

/**
 * shift_carrier_post_recv - give a receive buffer to the device
 * @c: its link is locked, or it is not on the link yet; not closing.
 * @buf: one of @c->rx.
 *
 * Context: any.
 * Return: 0 or what ib_post_recv() says.
 */
int shift_carrier_post_recv(struct shift_carrier *c, struct shift_link_buf *buf)
{
	struct ib_sge sge = {
		.addr = buf->dma,
		.length = SHIFT_LINK_BUF_SIZE,
		.lkey = c->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &buf->cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	ib_dma_sync_single_for_device(c->dev, buf->dma, SHIFT_LINK_BUF_SIZE, DMA_FROM_DEVICE);
	return ib_post_recv(c->qp, &wr, NULL);
}

/* post the buffer that was gathered; the link is locked */
static int shift_carrier_flush(struct shift_carrier *c)
{
	struct shift_link_buf *buf = c->open;
	struct ib_sge sge = {
		.addr = buf->dma,
		.length = buf->len,
		.lkey = c->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &buf->cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int err;

	c->open = NULL;
	ib_dma_sync_single_for_device(c->dev, buf->dma, buf->len, DMA_TO_DEVICE);
	err = ib_post_send(c->qp, &wr, NULL);
	if (err) {
		list_add(&buf->item.entry, &c->free);
		shift_carrier_retire(c, "post", err);
		return -ENOTCONN;
	}
	if (!c->sending++)
		c->since = jiffies;
	return 0;
}

/**
 * shift_carrier_post_send - send one message
 * @c: established; its link is locked.
 * @m: message.
 *
 * At once, unless some sends are under way: then messages are gathered until one
 * of these is through or a buffer is full.
 *
 * Context: any.
 * Return: as shift_link_send().
 */
int shift_carrier_post_send(struct shift_carrier *c, const struct shift_msg *m)
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
	len = shift_msg_encode(m, buf->data + buf->len, SHIFT_LINK_BUF_SIZE - buf->len);
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
		return shift_carrier_flush(c) ?: min(len, 0);
	return min(len, 0);
}

/* Making */

static int shift_carrier_map(struct shift_carrier *c)
{
	size_t size = SHIFT_LINK_BUFS * SHIFT_LINK_BUF_SIZE;
	unsigned int i;

	c->rx_dma = ib_dma_map_single(c->dev, c->rx_data, size, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(c->dev, c->rx_dma))
		return -ENOMEM;
	c->rx_mapped = true;
	c->tx_dma = ib_dma_map_single(c->dev, c->tx_data, size, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(c->dev, c->tx_dma))
		return -ENOMEM;
	c->tx_mapped = true;
	for (i = 0; i < SHIFT_LINK_BUFS; i++) {
		c->rx[i].dma = c->rx_dma + i * SHIFT_LINK_BUF_SIZE;
		c->tx[i].dma = c->tx_dma + i * SHIFT_LINK_BUF_SIZE;
	}
	return 0;
}

/**
 * shift_carrier_build - make all that a carrier needs of its device
 * @c: with a cm_id that is bound to a device.
 *
 * Context: handler of the cm_id.
 * Return: 0 or -errno; then, too, shift_carrier_release() has to be called, here
 * or by the destroy work.
 */
int shift_carrier_build(struct shift_carrier *c)
{
	struct ib_qp_init_attr attr = {
		.event_handler = shift_carrier_qp_event,
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
	err = shift_carrier_map(c);
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
		err = shift_carrier_post_recv(c, &c->rx[i]);
		if (err)
			return err;
	}
	return 0;
}
