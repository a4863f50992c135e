// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA CM's request to disconnect (DREQ) goes over the device on which the connection was made.  If
 * that path is dead it is sent over another path to the same node as well.  If RDMA CM cannot make
 * it, it is made here.
 * Documentation/internals/links.md, "Ends of connections".
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_mad.h>
#include <rdma/ibta_vol1_c12.h>
#include "core/ib.h"
#include "core/node.h"
#include "core/stat.h"
#include "link/link.h"
#include "link/link_priv.h"

#define CM_CLASS_VERSION	2	/* InfiniBand specification, volume 1, 16.7.1 */
#define DREQ_MAX	1024	/* that wait, in all */
/* ms for a link to show that its path is dead: longer than the retries of a conn */
#define DREQ_LOOK	700

/**
 * struct shift_dreq - a copy of a DREQ, or one that RDMA CM could not make
 * @entry: in the list of those that wait.
 * @dev: device that it was posted on; only compared.
 * @remote: GID that it was posted to.
 * @made: it is no copy: nobody else has sent it.
 * @looked: the link was up when it was looked at first.
 * @due: jiffies: when it is looked at again.
 * @mad: the MAD.
 */
struct shift_dreq {
	struct list_head entry;
	const struct ib_device *dev;
	union ib_gid remote;
	bool made, looked;
	unsigned long due;
	u8 mad[IB_MGMT_MAD_SIZE];
};

static void dreq_work(struct work_struct *work);

/* protects all below it */
static DEFINE_SPINLOCK(dreq_lock);
static LIST_HEAD(dreqs);
static unsigned int num_dreqs;
static bool dreqs_closed = true;
/* the thread that sends a copy now, which is not to be copied again */
static struct task_struct *dreq_sender;
static DECLARE_DELAYED_WORK(dreqs_work, dreq_work);

static struct shift_dreq *dreq_new(const struct ib_device *dev, const union ib_gid *remote)
{
	struct shift_dreq *d = kzalloc(sizeof(*d), GFP_ATOMIC);

	if (d) {
		d->dev = dev;
		d->remote = *remote;
	}
	return d;
}

/* The work item looks at it. */
static void dreq_queue(struct shift_dreq *d)
{
	unsigned long flags;

	spin_lock_irqsave(&dreq_lock, flags);
	if (!dreqs_closed && num_dreqs < DREQ_MAX) {
		num_dreqs++;
		list_add_tail(&d->entry, &dreqs);
		mod_delayed_work(shift_link_cm_wq, &dreqs_work, 0);
		d = NULL;
	}
	spin_unlock_irqrestore(&dreq_lock, flags);
	kfree(d);
}

/**
 * shift_dreq_make - say the end of a connection that RDMA CM cannot say
 * @dev: device on which the connection was made.
 * @remote: GID of the peer.
 * @local_id: number of it of RDMA CM here.
 * @remote_id: the same of the peer's.
 * @remote_qpn: the peer's QP.
 *
 * Context: any.  Source: InfiniBand specification, volume 1, 12.7.9.
 */
void shift_dreq_make(const struct ib_device *dev, const union ib_gid *remote, u32 local_id,
		     u32 remote_id, u32 remote_qpn)
{
	struct shift_dreq *d = dreq_new(dev, remote);
	struct cm_dreq_msg *msg;

	if (!d)
		return;
	d->made = true;
	msg = (struct cm_dreq_msg *)d->mad;
	msg->hdr.base_version = IB_MGMT_BASE_VERSION;
	msg->hdr.mgmt_class = IB_MGMT_CLASS_CM;
	msg->hdr.class_version = CM_CLASS_VERSION;
	msg->hdr.method = IB_MGMT_METHOD_SEND;
	msg->hdr.attr_id = CM_DREQ_ATTR_ID;
	msg->hdr.tid = cpu_to_be64((u64)remote_id << 32 | local_id);
	IBA_SET(CM_DREQ_LOCAL_COMM_ID, msg, local_id);
	IBA_SET(CM_DREQ_REMOTE_COMM_ID, msg, remote_id);
	IBA_SET(CM_DREQ_REMOTE_QPN_EECN, msg, remote_qpn);
	dreq_queue(d);
}

/**
 * shift_dreq_note - RDMA CM posts a DREQ
 * @dev: device that it is posted on.
 * @remote: GID that it goes to.
 * @mad: the MAD: IB_MGMT_MAD_SIZE bytes.
 *
 * Context: any.
 */
void shift_dreq_note(const struct ib_device *dev, const union ib_gid *remote, const void *mad)
{
	struct shift_dreq *d;

	if (READ_ONCE(dreq_sender) == current || !shift_peer_knows(remote))
		return;
	d = dreq_new(dev, remote);
	if (!d)
		return;
	memcpy(d->mad, mad, sizeof(d->mad));
	dreq_queue(d);
}

static void dreq_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
}

/* The way to the peer's NIC at the other end of a link, or ERR_PTR. */
static struct ib_ah *dreq_ah(struct shift_link *link, struct ib_device *dev, struct ib_pd *pd)
{
	const struct ib_gid_attr *gid;
	struct rdma_ah_attr attr = {};
	union ib_gid remote = link->remote;
	struct ib_ah *ah;

	gid = shift_gid_find(dev, &link->local, SHIFT_VLAN_ANY);
	if (IS_ERR(gid))
		return ERR_CAST(gid);
	attr.type = rdma_ah_find_type(dev, 1);
	rdma_ah_set_port_num(&attr, 1);
	/* the reference to the GID becomes that of the attributes */
	rdma_move_grh_sgid_attr(&attr, &remote, 0, 64, 0, gid);
	shift_link_dmac(link, attr.roce.dmac);
	ah = rdma_create_ah(pd, &attr, 0);
	rdma_destroy_ah_attr(&attr);
	return ah;
}

static int dreq_post(struct shift_link *link, struct ib_mad_agent *agent, const void *mad)
{
	struct ib_mad_send_buf *buf;
	struct ib_ah *ah;
	int err;

	ah = dreq_ah(link, agent->device, agent->qp->pd);
	if (IS_ERR(ah))
		return PTR_ERR(ah);
	buf = ib_create_send_mad(agent, 1, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA, GFP_KERNEL,
				 IB_MGMT_BASE_VERSION);
	if (IS_ERR(buf)) {
		rdma_destroy_ah(ah, 0);
		return PTR_ERR(buf);
	}
	memcpy(buf->mad, mad, IB_MGMT_MAD_SIZE);
	buf->ah = ah;
	WRITE_ONCE(dreq_sender, current);
	err = ib_post_send_mad(buf, NULL);
	WRITE_ONCE(dreq_sender, NULL);
	if (err) {
		rdma_destroy_ah(ah, 0);
		ib_free_send_mad(buf);
	}
	return err;
}

/* Send it over a link; RDMA CM at the other end takes it from any of its devices. */
static void dreq_send(struct shift_link *link, const void *mad)
{
	struct ib_device *dev = READ_ONCE(link->dev);
	struct ib_mad_agent *agent;

	if (!dev)
		return;
	agent = ib_register_mad_agent(dev, 1, IB_QPT_GSI, NULL, 0, dreq_sent, NULL, NULL, 0);
	if (IS_ERR(agent))
		return;
	if (!dreq_post(link, agent, mad))
		shift_stat_inc(SHIFT_STAT_DISCONNECTS);
	/* waits until it was sent */
	ib_unregister_mad_agent(agent);
}

/* Is it done with?  If not, it is looked at again at d->due. */
static bool dreq_handle(struct shift_dreq *d)
{
	struct shift_link *other;

	if (!d->made && shift_link_try(d->dev, &d->remote)) {
		/* a second look, when a dead path would have been found out */
		if (d->looked)
			return true;
		d->looked = true;
		d->due = jiffies + shift_scaled_jiffies(DREQ_LOOK);
		return false;
	}
	other = shift_link_beside(&d->remote);
	if (other) {
		dreq_send(other, d->mad);
		shift_link_let_go(other);
		shift_link_unref(other);
	}
	return true;
}

static void dreq_work(struct work_struct *work)
{
	unsigned int noio = memalloc_noio_save();
	struct shift_dreq *d, *next;
	unsigned long wait = 0;
	LIST_HEAD(look);

	spin_lock_irq(&dreq_lock);
	list_splice_init(&dreqs, &look);
	spin_unlock_irq(&dreq_lock);
	list_for_each_entry_safe(d, next, &look, entry) {
		if ((d->looked && time_before(jiffies, d->due)) || !dreq_handle(d))
			continue;
		list_del(&d->entry);
		kfree(d);
		spin_lock_irq(&dreq_lock);
		num_dreqs--;
		spin_unlock_irq(&dreq_lock);
	}
	/* the first one that is due: all wait equally long */
	d = list_first_entry_or_null(&look, struct shift_dreq, entry);
	if (d)
		wait = max_t(long, d->due - jiffies, 1);

	spin_lock_irq(&dreq_lock);
	list_splice(&look, &dreqs);
	if (wait && !dreqs_closed)
		queue_delayed_work(shift_link_cm_wq, &dreqs_work, wait);
	spin_unlock_irq(&dreq_lock);
	memalloc_noio_restore(noio);
}

void shift_dreq_init(void)
{
	spin_lock_irq(&dreq_lock);
	dreqs_closed = false;
	spin_unlock_irq(&dreq_lock);
}

/* No wrapper notes any more, or what it notes is dropped.  Context: process, sleeps. */
void shift_dreq_uninit(void)
{
	struct shift_dreq *d, *next;

	spin_lock_irq(&dreq_lock);
	dreqs_closed = true;
	spin_unlock_irq(&dreq_lock);
	cancel_delayed_work_sync(&dreqs_work);
	list_for_each_entry_safe(d, next, &dreqs, entry)
		kfree(d);
	INIT_LIST_HEAD(&dreqs);
	num_dreqs = 0;
}
