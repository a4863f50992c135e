// SPDX-License-Identifier: GPL-2.0
/*
 * What objects look like in netlink messages, and dumps of them.
 *
 * A dump takes a snapshot when it starts: all messages, ready to be sent.
 * Reading it takes no lock and cannot miss an object, or show one twice, when
 * others come and go meanwhile.  The snapshot's memory is charged to the process that asked.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "core/object.h"
#include "core/pair.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/stat.h"
#include "ctl/ctl.h"
#include "ctl/netlink.h"
#include "failover/failover.h"
#include "link/link.h"
#include "proxy/proxy.h"
#include "verbs/verbs.h"

/* the largest message is a peer with all its NICs and backups */
#define SHIFT_NL_MSG_MAX \
	(NLMSG_HDRLEN + GENL_HDRLEN + nla_total_size(SHIFT_NODE_MAX) + \
	 SHIFT_PEER_NICS_MAX * \
	 nla_total_size((1 + SHIFT_BACKUPS_MAX) * nla_total_size(sizeof(union ib_gid))))

/**
 * struct shift_nl_snapshot - the messages of one dump
 * @messages: struct shift_nl_message, in order.
 * @scratch: where messages are made.
 * @portid: netlink port of the process that asked.
 * @seq: of the request.
 * @cmd: of the messages.
 * @admin: whoever asks may know of all.
 */
struct shift_nl_snapshot {
	struct list_head messages;
	struct sk_buff *scratch;
	u32 portid;
	u32 seq;
	u8 cmd;
	bool admin;
};

struct shift_nl_message {
	struct list_head list;
	u32 len;
	u8 data[] __aligned(NLMSG_ALIGNTO);
};

/*
 * struct shift_nl_pair - one pair, copied under the lock of the list of devices
 *
 * Ports are asked without that lock: a driver may take locks of its own there,
 * or wait for firmware.
 */
struct shift_nl_pair {
	struct list_head list;
	struct shift_pair *pair;
	struct ib_device *ibdev, *backup_ibdev;		/* NULL: going away */
};

static int nl_put_gid(struct sk_buff *skb, int attr, const union ib_gid *gid)
{
	return nla_put(skb, attr, sizeof(*gid), gid);
}

/**
 * shift_nl_put_pair - attributes that name a pair
 * @skb: message.
 * @pair: the pair.
 *
 * Context: process context, shift_devices_lock.
 * Return: 0 or -EMSGSIZE.
 */
int shift_nl_put_pair(struct sk_buff *skb, const struct shift_pair *pair)
{
	const struct shift_dev *sdev = pair->sdev, *backup = pair->backup;
	char name[IB_DEVICE_NAME_MAX];
	unsigned int i;

	lockdep_assert_held(&shift_devices_lock);
	if (sdev->provider->prove &&
	    (nla_put_u32(skb, SHIFT_A_PROOF_HELD, sdev->proof.held) ||
	     nla_put_u32(skb, SHIFT_A_PROOF_FAILED, sdev->proof.failed) ||
	     nla_put_u32(skb, SHIFT_A_BACKUP_PROOF_HELD, backup->proof.held) ||
	     nla_put_u32(skb, SHIFT_A_BACKUP_PROOF_FAILED, backup->proof.failed)))
		return -EMSGSIZE;
	if (nla_put_string(skb, SHIFT_A_DEV, shift_dev_name(sdev, name)) ||
	    nla_put_string(skb, SHIFT_A_BACKUP_DEV, shift_dev_name(backup, name)) ||
	    nla_put_u64_64bit(skb, SHIFT_A_NODE_GUID, sdev->guid, SHIFT_A_PAD) ||
	    nla_put_u64_64bit(skb, SHIFT_A_BACKUP_GUID, backup->guid, SHIFT_A_PAD) ||
	    nla_put_u32(skb, SHIFT_A_POLICY, READ_ONCE(pair->policy)))
		return -EMSGSIZE;
	for (i = 0; i < pair->num_backups; i++)
		if (nla_put_string(skb, SHIFT_A_PAIR_BACKUP_NAME,
				   shift_dev_name(pair->backups[i], name)))
			return -EMSGSIZE;
	return 0;
}

/**
 * shift_nl_put_link - attributes of a link
 * @skb: message.
 * @info: the link.
 * @admin: with its addresses: who can use a port below 1024 could speak for a node with them.
 *
 * Return: 0 or -EMSGSIZE.
 */
int shift_nl_put_link(struct sk_buff *skb, const struct shift_link_info *info, bool admin)
{
	if (admin && (nl_put_gid(skb, SHIFT_A_LOCAL_GID, &info->local) ||
		      nl_put_gid(skb, SHIFT_A_REMOTE_GID, &info->remote)))
		return -EMSGSIZE;
	if (nla_put_u32(skb, SHIFT_A_LINK_ID, info->id) ||
	    nla_put_string(skb, SHIFT_A_DEV, info->dev) ||
	    nla_put_string(skb, SHIFT_A_NODE, info->node) ||
	    nla_put_u32(skb, SHIFT_A_LINK_STATE, info->state) ||
	    nla_put_u64_64bit(skb, SHIFT_A_CONNECTS, info->connects, SHIFT_A_PAD) ||
	    nla_put_u64_64bit(skb, SHIFT_A_ACKED, info->acked, SHIFT_A_PAD))
		return -EMSGSIZE;
	if (info->form.version &&
	    (nla_put_u32(skb, SHIFT_A_MSG_VERSION, info->form.version) ||
	     nla_put_u32(skb, SHIFT_A_MSG_CAPS, info->form.caps)))
		return -EMSGSIZE;
	if (info->dscps && nla_put_u64_64bit(skb, SHIFT_A_DSCPS, info->dscps, SHIFT_A_PAD))
		return -EMSGSIZE;
	return info->proven ? nla_put_flag(skb, SHIFT_A_PROVEN) : 0;
}

static int nl_put_time(struct sk_buff *skb, int attr, u64 ns)
{
	return ns ? nla_put_u64_64bit(skb, attr, ns, SHIFT_A_PAD) : 0;
}

static int nl_put_times(struct sk_buff *skb, const struct shift_qp_times *times)
{
	if (nl_put_time(skb, SHIFT_A_FAULT_NS, times->fault) ||
	    nl_put_time(skb, SHIFT_A_AGREED_NS, times->agreed) ||
	    nl_put_time(skb, SHIFT_A_FENCED_NS, times->fenced) ||
	    nl_put_time(skb, SHIFT_A_REPLAYED_NS, times->replayed) ||
	    nl_put_time(skb, SHIFT_A_COMPLETION_NS, times->completion))
		return -EMSGSIZE;
	return 0;
}

/**
 * shift_nl_put_qp - attributes of a QP
 * @skb: message.
 * @sqp: the QP; referenced by the caller.  No lock of it is needed.
 *
 * The QP may change meanwhile: each value is right, but they may be of different moments.
 *
 * Context: process context.
 * Return: 0 or -EMSGSIZE.
 */
int shift_nl_put_qp(struct sk_buff *skb, const struct shift_qp *sqp)
{
	u32 qpn = shift_proxy_qpn(sqp, SHIFT_PATH_BACKUP);
	struct shift_qp_times times = sqp->fo.times;
	enum shift_reason reason;
	char name[IB_DEVICE_NAME_MAX];
	enum shift_qp_state shown = shift_qp_shown(sqp, &reason);

	if (nla_put_string(skb, SHIFT_A_DEV, shift_dev_name(sqp->sdev, name)) ||
	    nla_put_u32(skb, SHIFT_A_QPN, sqp->qpn) ||
	    nla_put_u32(skb, SHIFT_A_REMOTE_QPN, READ_ONCE(sqp->app.dest_qpn)) ||
	    nla_put_u32(skb, SHIFT_A_PID, sqp->app.pid) ||
	    nla_put_string(skb, SHIFT_A_COMM, sqp->app.comm) ||
	    nl_put_gid(skb, SHIFT_A_LOCAL_GID, &sqp->app.sgid) ||
	    nl_put_gid(skb, SHIFT_A_REMOTE_GID, &sqp->app.dgid) ||
	    nla_put_u32(skb, SHIFT_A_QP_STATE, shown) ||
	    nla_put_u32(skb, SHIFT_A_EPOCH, READ_ONCE(sqp->fo.epoch)) ||
	    nla_put_u32(skb, SHIFT_A_PATH, READ_ONCE(sqp->fo.path)) ||
	    nla_put_u32(skb, SHIFT_A_CAUSE, shift_qp_shown_cause(sqp)) ||
	    nla_put_u32(skb, SHIFT_A_REPLAYED, READ_ONCE(sqp->fo.replayed)) ||
	    nla_put_u32(skb, SHIFT_A_EXECUTED, READ_ONCE(sqp->fo.executed)) ||
	    nla_put_u32(skb, SHIFT_A_SWITCHES, READ_ONCE(sqp->fo.switches)) ||
	    nl_put_times(skb, &times))
		return -EMSGSIZE;

	if (qpn && nla_put_u32(skb, SHIFT_A_BACKUP_QPN, qpn))
		return -EMSGSIZE;
	if ((shown == SHIFT_QP_UNPROTECTED || shown == SHIFT_QP_FAILED) &&
	    (nla_put_u32(skb, SHIFT_A_REASON, reason) ||
	     nla_put_string(skb, SHIFT_A_REASON_TEXT, shift_reason_text(reason))))
		return -EMSGSIZE;
	return 0;
}

static void nl_snapshot_free(struct shift_nl_snapshot *snap)
{
	struct shift_nl_message *msg, *next;

	list_for_each_entry_safe(msg, next, &snap->messages, list)
		kfree(msg);
	nlmsg_free(snap->scratch);
	kfree(snap);
}

static struct shift_nl_snapshot *nl_snapshot_new(struct netlink_callback *cb)
{
	struct shift_nl_snapshot *snap;

	snap = kzalloc(sizeof(*snap), GFP_KERNEL_ACCOUNT);
	if (!snap)
		return NULL;
	INIT_LIST_HEAD(&snap->messages);
	snap->portid = NETLINK_CB(cb->skb).portid;
	snap->seq = cb->nlh->nlmsg_seq;
	snap->cmd = ((struct genlmsghdr *)nlmsg_data(cb->nlh))->cmd;
	snap->admin = netlink_capable(cb->skb, CAP_NET_ADMIN);
	snap->scratch = alloc_skb(SHIFT_NL_MSG_MAX, GFP_KERNEL_ACCOUNT);
	if (!snap->scratch) {
		kfree(snap);
		return NULL;
	}
	return snap;
}

static void *nl_message_begin(struct shift_nl_snapshot *snap)
{
	skb_trim(snap->scratch, 0);
	return genlmsg_put(snap->scratch, snap->portid, snap->seq,
			   &shift_genl_family, NLM_F_MULTI, snap->cmd);
}

/* The caller holds locks that a failover may wait for: no reclaim that needs I/O. */
static int nl_message_end(struct shift_nl_snapshot *snap, void *hdr, int err)
{
	struct sk_buff *skb = snap->scratch;
	struct shift_nl_message *msg;

	if (err)
		return err;
	genlmsg_end(skb, hdr);
	msg = kmalloc(struct_size(msg, data, skb->len), GFP_NOIO | __GFP_ACCOUNT);
	if (!msg)
		return -ENOMEM;
	msg->len = skb->len;
	memcpy(msg->data, skb->data, skb->len);
	list_add_tail(&msg->list, &snap->messages);
	return 0;
}

/* End of all functions that start a dump. */
static int nl_started(struct netlink_callback *cb,
		      struct shift_nl_snapshot *snap, int err)
{
	if (err) {
		nl_snapshot_free(snap);
		NL_SET_ERR_MSG(cb->extack, "not enough memory to show all");
		return err;
	}
	cb->args[0] = (long)snap;
	return 0;
}

static int nl_no_memory(struct netlink_callback *cb)
{
	NL_SET_ERR_MSG(cb->extack, "out of memory");
	return -ENOMEM;
}

/**
 * shift_nl_dump - the next messages of a snapshot
 * @skb: where to.
 * @cb: of the dump.
 *
 * Return: bytes in @skb, 0 at the end, or -EMSGSIZE.
 */
int shift_nl_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct shift_nl_snapshot *snap = (void *)cb->args[0];
	struct shift_nl_message *msg, *next;

	list_for_each_entry_safe(msg, next, &snap->messages, list) {
		if (skb_tailroom(skb) < NLMSG_ALIGN(msg->len))
			return skb->len ?: -EMSGSIZE;
		skb_put_data(skb, msg->data, msg->len);
		list_del(&msg->list);
		kfree(msg);
	}
	return skb->len;
}

/**
 * shift_nl_done - the end of a dump, read or not
 * @cb: of the dump.
 *
 * Return: 0.
 */
int shift_nl_done(struct netlink_callback *cb)
{
	nl_snapshot_free((void *)cb->args[0]);
	return 0;
}

static int nl_pair_note(struct shift_pair *pair, void *arg)
{
	struct list_head *pairs = arg;
	struct shift_nl_pair *note;

	note = kzalloc(sizeof(*note), GFP_NOIO);
	if (!note)
		return -ENOMEM;
	note->pair = pair;
	shift_pair_get(pair);
	if (ib_device_try_get(pair->sdev->ibdev))
		note->ibdev = pair->sdev->ibdev;
	if (ib_device_try_get(pair->backup->ibdev))
		note->backup_ibdev = pair->backup->ibdev;
	list_add_tail(&note->list, pairs);
	return 0;
}

/* Query the port's state and put the device at once, as its removal waits for that. */
static enum ib_port_state nl_port_state(struct ib_device *ibdev)
{
	struct ib_port_attr attr;
	int err;

	if (!ibdev)
		return IB_PORT_NOP;
	err = ib_query_port(ibdev, rdma_start_port(ibdev), &attr);
	ib_device_put(ibdev);
	return err ? IB_PORT_NOP : attr.state;
}

static int nl_pair_message(struct shift_nl_snapshot *snap, const struct shift_pair *pair,
			   enum ib_port_state state, enum ib_port_state backup_state)
{
	struct sk_buff *skb = snap->scratch;
	char users[SHIFT_KERNEL_USERS_TEXT];
	struct shift_qp_counts counts;
	void *hdr;
	int err;

	shift_qp_count(pair->sdev, &counts);
	shift_users_text(shift_pd_users(pair->sdev), users, sizeof(users));
	hdr = nl_message_begin(snap);
	mutex_lock(&shift_devices_lock);
	err = shift_nl_put_pair(skb, pair);
	mutex_unlock(&shift_devices_lock);
	if (!err)
		err = nla_put_u32(skb, SHIFT_A_PORT_STATE, state);
	if (!err)
		err = nla_put_u32(skb, SHIFT_A_BACKUP_PORT_STATE, backup_state);
	if (!err && READ_ONCE(pair->drained))
		err = nla_put_flag(skb, SHIFT_A_DRAINED);
	if (!err)
		err = nla_put_u32(skb, SHIFT_A_PROTECTED_QPS, counts.protected);
	if (!err)
		err = nla_put_u32(skb, SHIFT_A_TRACKED_QPS, counts.tracked);
	if (!err)
		err = nla_put_string(skb, SHIFT_A_USED_BY, users);
	return nl_message_end(snap, hdr, err);
}

/**
 * shift_nl_pair_start - begin a dump of pairs
 * @cb: of the dump.
 *
 * Return: 0 or a negative errno.
 */
int shift_nl_pair_start(struct netlink_callback *cb)
{
	struct shift_nl_snapshot *snap = nl_snapshot_new(cb);
	enum ib_port_state state, backup_state;
	struct shift_nl_pair *note, *next;
	LIST_HEAD(pairs);
	int err;

	if (!snap)
		return nl_no_memory(cb);
	if (snap->admin)
		shift_look_all();
	err = shift_pair_walk(nl_pair_note, &pairs);
	list_for_each_entry_safe(note, next, &pairs, list) {
		state = nl_port_state(note->ibdev);
		backup_state = nl_port_state(note->backup_ibdev);
		if (!err)
			err = nl_pair_message(snap, note->pair, state, backup_state);
		shift_pair_put(note->pair);
		kfree(note);
	}
	return nl_started(cb, snap, err);
}

static int nl_put_nic(struct sk_buff *skb, const struct shift_peer_nic *nic)
{
	struct nlattr *nest;
	u32 i;

	nest = nla_nest_start(skb, SHIFT_A_NIC);
	if (!nest || nl_put_gid(skb, SHIFT_NIC_A_GID, &nic->gid))
		return -EMSGSIZE;
	for (i = 0; i < nic->num_backups; i++)
		if (nl_put_gid(skb, SHIFT_NIC_A_BACKUP, &nic->backup[i]))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int nl_peer_message(const char *node, const struct shift_peer_nic *nics,
			   u32 n, void *arg)
{
	struct shift_nl_snapshot *snap = arg;
	void *hdr;
	int err;
	u32 i;

	hdr = nl_message_begin(snap);
	err = nla_put_string(snap->scratch, SHIFT_A_NODE, node);
	for (i = 0; snap->admin && i < n && !err; i++)
		err = nl_put_nic(snap->scratch, &nics[i]);
	return nl_message_end(snap, hdr, err);
}

/**
 * shift_nl_peer_start - begin a dump of the directory of peers
 * @cb: of the dump.
 *
 * Return: 0 or a negative errno.
 */
int shift_nl_peer_start(struct netlink_callback *cb)
{
	struct shift_nl_snapshot *snap = nl_snapshot_new(cb);

	if (!snap)
		return nl_no_memory(cb);
	cb->min_dump_alloc = SHIFT_NL_MSG_MAX;
	return nl_started(cb, snap, shift_peer_walk(nl_peer_message, snap));
}

static int nl_link_message(const struct shift_link_info *info, void *arg)
{
	struct shift_nl_snapshot *snap = arg;
	void *hdr;
	int err;

	hdr = nl_message_begin(snap);
	err = shift_nl_put_link(snap->scratch, info, snap->admin);
	if (!err && snap->admin && memchr_inv(info->peer_boot_id, 0, sizeof(info->peer_boot_id)))
		err = nla_put(snap->scratch, SHIFT_A_BOOT_ID, sizeof(info->peer_boot_id),
			      info->peer_boot_id);
	return nl_message_end(snap, hdr, err);
}

/**
 * shift_nl_link_start - begin a dump of links
 * @cb: of the dump.
 *
 * Return: 0 or a negative errno.
 */
int shift_nl_link_start(struct netlink_callback *cb)
{
	struct shift_nl_snapshot *snap = nl_snapshot_new(cb);

	if (!snap)
		return nl_no_memory(cb);
	return nl_started(cb, snap, shift_link_walk(nl_link_message, snap));
}

static int nl_qp_message(struct shift_nl_snapshot *snap, const struct shift_qp *sqp)
{
	void *hdr = nl_message_begin(snap);

	return nl_message_end(snap, hdr, shift_nl_put_qp(snap->scratch, sqp));
}

/* Of a QP that is not tracked, no more is known than whose it is. */
static int nl_unlisted_message(struct shift_nl_snapshot *snap, const char *dev,
			       const struct shift_unlisted *entry)
{
	void *hdr = nl_message_begin(snap);
	struct sk_buff *skb = snap->scratch;
	int err = 0;

	if (nla_put_string(skb, SHIFT_A_DEV, dev) ||
	    nla_put_u32(skb, SHIFT_A_QPN, entry->qpn) ||
	    nla_put_u32(skb, SHIFT_A_PID, 0) ||
	    nla_put_string(skb, SHIFT_A_COMM, entry->user) ||
	    nla_put_u32(skb, SHIFT_A_QP_STATE, SHIFT_QP_UNPROTECTED) ||
	    nla_put_u32(skb, SHIFT_A_REASON, SHIFT_REASON_UNLISTED) ||
	    nla_put_string(skb, SHIFT_A_REASON_TEXT, shift_reason_text(SHIFT_REASON_UNLISTED)))
		err = -EMSGSIZE;
	return nl_message_end(snap, hdr, err);
}

/**
 * shift_nl_qp_start - begin a dump of QPs
 * @cb: of the dump.
 *
 * Takes no lock of a QP's.  If an administrator asks, QPs look into their rings first, for which
 * they have a moment: see shift_look_all().  Other users are shown the QPs of their own processes.
 *
 * Return: 0 or a negative errno.
 */
int shift_nl_qp_start(struct netlink_callback *cb)
{
	struct shift_unlisted_cursor cursor = {};
	struct shift_unlisted entry;
	struct shift_nl_snapshot *snap = nl_snapshot_new(cb);
	unsigned long index = 0;
	struct shift_qp *sqp;
	int err = 0;

	if (!snap)
		return nl_no_memory(cb);
	if (snap->admin)
		shift_look_all();
	for (; !err && (sqp = shift_qp_next(&index)); shift_qp_put(sqp)) {
		/* the application has destroyed it, but a reference is still held */
		if (!READ_ONCE(sqp->qp))
			continue;
		if (!snap->admin && !uid_eq(sqp->app.uid, current_uid()))
			continue;
		err = nl_qp_message(snap, sqp);
	}
	while (!err && snap->admin && shift_unlisted_next(&cursor, &entry))
		err = nl_unlisted_message(snap, cursor.name, &entry);
	return nl_started(cb, snap, err);
}
