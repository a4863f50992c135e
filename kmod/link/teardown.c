// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a link's connection: of its proofs, its QP, its cm_id.
 * Documentation/internals/links.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/sched/mm.h>
#include "core/ib.h"
#include "core/stat.h"
#include "link/link.h"
#include "link/link_priv.h"

#define SHIFT_CONN_HUSH	1000	/* ms to wait for a cable, before the next try to disconnect */

/* The connection is closing, or was never on its link: no more proofs. */
static void conn_prove_end(struct shift_conn *c)
{
	cancel_work_sync(&c->auth.work);
	if (!c->auth.asked || c->auth.proven)
		return;
	shift_stat_inc(SHIFT_STAT_STRANGERS);
	pr_warn_ratelimited("link %u: %pI6c has not proved that it knows the key\n", c->link->id,
			    c->link->remote.raw);
}

/**
 * shift_conn_release - free what shift_conn_build() has made
 * @c: connection that is not on the link, or is closing.
 *
 * Context: process, sleeps.
 */
void shift_conn_release(struct shift_conn *c)
{
	conn_prove_end(c);
	/* without the QP nothing uses the buffers any more */
	if (c->qp) {
		shift_qp_stop(c->qp);
		shift_qp_quiet(c->qp);
		rdma_destroy_qp(c->cm_id);
	}
	if (c->cq)
		shift_cq_free(c->cq);
	shift_buf_unmap(c);
	if (c->pd)
		ib_dealloc_pd(c->pd);
	c->qp = NULL;
	c->cq = NULL;
	c->pd = NULL;
}

/*
 * RDMA CM sends a message when an established cm_id is destroyed, once.  If rxe of 6.12 cannot send
 * it because the cable is out, the QP of its CM breaks and never receives again.  So the cm_id is
 * kept until the cable is in again.  rdma_disconnect() is not called then: it repeats the message
 * until it is answered, and the cable may go meanwhile.
 *
 * @leave: out: jiffies, so long it may wait for the peer's answer; 0: it does not.
 */
static bool conn_may_disconnect(struct shift_conn *c, unsigned long *leave)
{
	struct shift_link *link = c->link;
	struct ib_device *dev;

	spin_lock_irq(&link->lock);
	dev = link->dev;
	*leave = link->leave;
	spin_unlock_irq(&link->lock);
	/* the removal of a device does not wait for a cable */
	return !dev || shift_gid_has_carrier(dev, &link->local);
}

/*
 * If the device is removed, wait for the peer's answer to the end of the connection.  ib_mad
 * destroys the device's QP 1 soon, and if a message arrives at that moment it uses the QP after it
 * was freed.
 */
static void conn_leave(struct shift_conn *c, unsigned long leave)
{
	long left = leave - jiffies;

	if (leave && left > 0 && c->connected && !rdma_disconnect(c->cm_id))
		wait_for_completion_timeout(&c->left, left);
}

/* Work item of a connection that is closing; sleeps. */
void shift_conn_destroy(struct work_struct *work)
{
	struct shift_conn *c = container_of(to_delayed_work(work), struct shift_conn,
					   destroy);
	unsigned int noio = memalloc_noio_save();
	unsigned long leave;

	/* wait for a handler that has not seen c->closing */
	rdma_lock_handler(c->cm_id);
	rdma_unlock_handler(c->cm_id);

	shift_conn_release(c);
	if (conn_may_disconnect(c, &leave)) {
		conn_leave(c, leave);
		rdma_destroy_id(c->cm_id);
		shift_conn_done(c);
	} else {
		queue_delayed_work(shift_link_cm_wq, &c->destroy,
				   msecs_to_jiffies(SHIFT_CONN_HUSH));
	}
	memalloc_noio_restore(noio);
}
