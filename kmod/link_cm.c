// SPDX-License-Identifier: GPL-2.0
/*
 * How links are connected: RDMA CM's events on both sides, HELLO, the listener.
 * Documentation/links.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": link: " fmt

#include <linux/log2.h>
#include <linux/sched/mm.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include "link_priv.h"
#include "shift.h"

#define SHIFT_HELLO_MAGIC	0x53484c4fu	/* "SHLO" */
#define SHIFT_HELLO_VERSION	2	/* as SHIFT_MSG_VERSION: no link for what cannot talk */

#define SHIFT_CARRIER_RESOLVE	2000	/* ms for an address or a route */
#define SHIFT_CARRIER_BACKLOG	128

/*
 * RC: 4.096 us << 14 = 67 ms, 6 retries: a dead path shows within 0.5 s.  Not 7
 * retries: rxe takes that for retries without end.
 */
#define SHIFT_CARRIER_TIMEOUT	14
#define SHIFT_CARRIER_RETRIES	6
#define SHIFT_CARRIER_RNR	7	/* without end: a slow receiver is not a dead one */

/* private data of REQ and REP; fills up what a REQ has */
struct shift_hello {
	__be32 magic;
	u8 version;
	u8 reserved[3];
	u8 boot_id[16];
	union ib_gid local, remote;	/* the sender's view */
} __packed;

static struct rdma_cm_id *shift_listeners[2];

static int shift_carrier_event(struct rdma_cm_id *cm_id, struct rdma_cm_event *event);

/* Both sides */

static void shift_carrier_param(struct shift_carrier *c, struct shift_hello *hello,
				struct rdma_conn_param *param)
{
	memset(hello, 0, sizeof(*hello));
	hello->magic = cpu_to_be32(SHIFT_HELLO_MAGIC);
	hello->version = SHIFT_HELLO_VERSION;
	memcpy(hello->boot_id, shift_boot_id, sizeof(hello->boot_id));
	hello->local = c->link->local;
	hello->remote = c->link->remote;

	memset(param, 0, sizeof(*param));
	param->private_data = hello;
	param->private_data_len = sizeof(*hello);
	param->responder_resources = 1;
	param->initiator_depth = 1;
	param->retry_count = SHIFT_CARRIER_RETRIES;
	param->rnr_retry_count = SHIFT_CARRIER_RNR;
}

static bool shift_hello_valid(const struct shift_hello *hello, size_t len)
{
	return hello && len >= sizeof(*hello) && hello->magic == cpu_to_be32(SHIFT_HELLO_MAGIC) &&
	       hello->version == SHIFT_HELLO_VERSION &&
	       memchr_inv(hello->boot_id, 0, sizeof(hello->boot_id));
}

static void shift_carrier_set_timeout(struct rdma_cm_id *cm_id)
{
	unsigned int scale = max(READ_ONCE(shift_deadline_scale), 1U);

	rdma_set_ack_timeout(cm_id, min(SHIFT_CARRIER_TIMEOUT + order_base_2(scale), 31));
}

static void shift_gid_to_sockaddr(const union ib_gid *gid, u16 port, struct sockaddr_storage *ss)
{
	memset(ss, 0, sizeof(*ss));
	rdma_gid2ip((struct sockaddr *)ss, gid);
	if (ss->ss_family == AF_INET)
		((struct sockaddr_in *)ss)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)ss)->sin6_port = htons(port);
}

/* the namespace that a GID's IP address is in, referenced */
static struct net *shift_gid_net(struct ib_device *dev, const union ib_gid *gid)
{
	const struct ib_gid_attr *attr;
	struct net_device *ndev;
	struct net *net = NULL;

	attr = rdma_find_gid(dev, gid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL);
	if (IS_ERR(attr))
		return NULL;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (!IS_ERR(ndev))
		net = maybe_get_net(dev_net(ndev));
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
	return net;
}

/**
 * shift_carrier_connect - start connecting
 * @link: active; called by its timer, so that its device is there.
 *
 * Context: process, sleeps.
 * Return: 0: a carrier is on the way, and will be retired if it fails; -errno:
 * could not even start.
 */
int shift_carrier_connect(struct shift_link *link)
{
	struct sockaddr_storage src, dst;
	struct shift_carrier *c;
	struct ib_device *dev;
	struct net *net;
	int err;

	dev = READ_ONCE(link->dev);
	if (!dev)
		return -ENODEV;
	net = shift_gid_net(dev, &link->local);
	if (!net)
		return -EADDRNOTAVAIL;
	c = shift_carrier_create(link);
	if (!c) {
		put_net(net);
		return -ENOMEM;
	}
	c->cm_id = rdma_create_id(net, shift_carrier_event, c, RDMA_PS_TCP, IB_QPT_RC);
	put_net(net);
	if (IS_ERR(c->cm_id)) {
		err = PTR_ERR(c->cm_id);
		shift_carrier_done(c);
		return err;
	}
	if (!shift_carrier_install(c, false)) {
		rdma_destroy_id(c->cm_id);
		shift_carrier_done(c);
		return 0;
	}

	/* from here on it may be retired, but not destroyed under this lock */
	rdma_lock_handler(c->cm_id);
	shift_gid_to_sockaddr(&link->local, 0, &src);
	shift_gid_to_sockaddr(&link->remote, shift_link_port, &dst);
	shift_carrier_set_timeout(c->cm_id);
	err = rdma_resolve_addr(c->cm_id, (struct sockaddr *)&src, (struct sockaddr *)&dst,
				jiffies_to_msecs(shift_link_jiffies(SHIFT_CARRIER_RESOLVE)));
	if (err)
		shift_carrier_fail(c, "resolve address", err);
	rdma_unlock_handler(c->cm_id);
	return 0;
}

/* does the path that RDMA CM has found go where the link goes? */
static bool shift_carrier_fits(struct shift_carrier *c)
{
	const struct shift_link *link = c->link;
	const struct sa_path_rec *path = c->cm_id->route.path_rec;

	return path && !memcmp(&path->sgid, &link->local, sizeof(link->local)) &&
	       !memcmp(&path->dgid, &link->remote, sizeof(link->remote));
}

static int shift_carrier_resolved(struct shift_carrier *c)
{
	unsigned int timeout;
	struct ib_device *dev = READ_ONCE(c->link->dev);

	if (!dev)
		return -ENODEV;
	/* the same address on two devices, for one */
	if (c->cm_id->device != dev) {
		pr_warn_ratelimited("%u: %pI6c is reached through another device than %s\n",
				    c->link->id, c->link->remote.raw, c->link->name);
		return -EXDEV;
	}
	timeout = jiffies_to_msecs(shift_link_jiffies(SHIFT_CARRIER_RESOLVE));
	return rdma_resolve_route(c->cm_id, timeout);
}

static int shift_carrier_routed(struct shift_carrier *c)
{
	struct rdma_conn_param param;
	struct shift_hello hello;
	int err;

	if (!shift_carrier_fits(c))
		return -EXDEV;
	err = shift_carrier_build(c);
	if (err)
		return err;
	shift_carrier_param(c, &hello, &param);
	return rdma_connect_locked(c->cm_id, &param);
}

/* both sides; on the passive one the HELLO came with the request */
static int shift_carrier_connected(struct shift_carrier *c, const struct rdma_cm_event *event)
{
	const struct shift_hello *hello = event->param.conn.private_data;
	struct sa_path_rec *path = c->cm_id->route.path_rec;
	const u8 *dmac = path ? sa_path_get_dmac(path) : NULL;
	struct shift_link *link = c->link;

	if (!c->hello) {
		if (!shift_hello_valid(hello, event->param.conn.private_data_len) ||
		    memcmp(&hello->local, &link->remote, sizeof(hello->local)) ||
		    memcmp(&hello->remote, &link->local, sizeof(hello->remote))) {
			pr_warn_ratelimited("%u: %pI6c answered with a bad HELLO\n", link->id,
					    link->remote.raw);
			return -EPROTO;
		}
		memcpy(c->boot_id, hello->boot_id, sizeof(c->boot_id));
	}
	spin_lock_irq(&link->lock);
	c->hello = true;
	if (dmac)
		memcpy(link->dmac, dmac, sizeof(link->dmac));
	shift_carrier_establish(c);
	spin_unlock_irq(&link->lock);
	return 0;
}

/* handler of a carrier's cm_id: never has RDMA CM destroy it */
static int shift_carrier_event(struct rdma_cm_id *cm_id, struct rdma_cm_event *event)
{
	struct shift_carrier *c = cm_id->context;
	unsigned int noio;
	int err = 0;

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		spin_lock_irq(&c->link->lock);
		shift_link_cut_off(c->link);
		spin_unlock_irq(&c->link->lock);
	}
	if (READ_ONCE(c->closing))
		return 0;

	noio = memalloc_noio_save();
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = shift_carrier_resolved(c);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		err = shift_carrier_routed(c);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		err = shift_carrier_connected(c, event);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		/* errors, the peer's disconnect, a moved address, a removed device */
		err = event->status ?: -ECONNRESET;
		break;
	}
	memalloc_noio_restore(noio);
	if (err)
		shift_carrier_fail(c, rdma_event_msg(event->event), err);
	return 0;
}

/* The listener */

/* 0: it is a HELLO that fits the path it came on */
static int shift_listen_check(const struct rdma_cm_id *cm_id, const struct rdma_cm_event *event)
{
	const struct shift_hello *hello = event->param.conn.private_data;
	const struct sa_path_rec *path = cm_id->route.path_rec;
	const char *why;

	if (!path || !shift_hello_valid(hello, event->param.conn.private_data_len))
		why = "not a HELLO of this version";
	else if (memcmp(&hello->remote, &path->sgid, sizeof(path->sgid)) ||
		 memcmp(&hello->local, &path->dgid, sizeof(path->dgid)))
		why = "HELLO of another path";
	else if (memcmp(&hello->local, &hello->remote, sizeof(hello->local)) >= 0)
		why = "it is the one to listen";
	else if (!shift_peer_knows(&hello->local))
		why = "not in the directory";
	else
		return 0;
	pr_warn_ratelimited("%s: connection from %pI6c rejected: %s\n",
			    dev_name(&cm_id->device->dev),
			    path ? path->dgid.raw : (const u8 *)&in6addr_any, why);
	return -ECONNREFUSED;
}

/* a non-zero return has RDMA CM reject the request and destroy @cm_id */
static int shift_listen_accept(struct rdma_cm_id *cm_id, const struct rdma_cm_event *event,
			       struct shift_link *link)
{
	const struct shift_hello *peer = event->param.conn.private_data;
	struct rdma_conn_param param;
	struct shift_carrier *c;
	struct shift_hello hello;
	int err;

	c = shift_carrier_create(link);
	if (!c)
		return -EBUSY;
	c->cm_id = cm_id;
	memcpy(c->boot_id, peer->boot_id, sizeof(c->boot_id));
	c->hello = true;
	cm_id->context = c;
	cm_id->event_handler = shift_carrier_event;

	shift_carrier_set_timeout(cm_id);
	err = shift_carrier_build(c);
	if (err)
		goto err_release;
	/* before the peer can send: what it sends must find it on the link */
	if (!shift_carrier_install(c, true)) {
		err = -ENODEV;
		goto err_release;
	}
	/* from here on it is the carrier's, whatever happens */
	shift_carrier_param(c, &hello, &param);
	err = rdma_accept(cm_id, &param);
	if (err)
		shift_carrier_fail(c, "accept", err);
	return 0;

err_release:
	shift_carrier_release(c);
	shift_carrier_done(c);
	return err;
}

static int shift_listen_event(struct rdma_cm_id *cm_id, struct rdma_cm_event *event)
{
	const struct shift_hello *hello = event->param.conn.private_data;
	struct shift_link *link;
	unsigned int noio;
	int err;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	err = shift_listen_check(cm_id, event);
	if (err)
		return err;

	noio = memalloc_noio_save();
	link = shift_link_find(cm_id->device, &hello->remote, &hello->local);
	if (IS_ERR(link)) {
		err = -EBUSY;
	} else {
		err = shift_listen_accept(cm_id, event, link);
		shift_link_put(link);
	}
	memalloc_noio_restore(noio);
	return err;
}

static struct rdma_cm_id *shift_listen(sa_family_t family)
{
	struct sockaddr_storage any = { .ss_family = family };
	struct rdma_cm_id *cm_id;
	int err;

	/* the port is at the same place in both */
	((struct sockaddr_in *)&any)->sin_port = htons(shift_link_port);
	cm_id = rdma_create_id(&init_net, shift_listen_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(cm_id))
		return cm_id;
	err = rdma_set_afonly(cm_id, 1);
	if (!err)
		err = rdma_bind_addr(cm_id, (struct sockaddr *)&any);
	if (!err)
		err = rdma_listen(cm_id, SHIFT_CARRIER_BACKLOG);
	if (!err)
		return cm_id;
	rdma_destroy_id(cm_id);
	return ERR_PTR(err);
}

/**
 * shift_listener_start - accept connections from known peers
 *
 * Context: process, sleeps.
 * Return: 0 or -errno; an IPv6 that is disabled is no error.
 */
int shift_listener_start(void)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6 };
	unsigned int i;
	int err;

	BUILD_BUG_ON(sizeof(struct shift_hello) > 56);
	BUILD_BUG_ON(ARRAY_SIZE(families) != ARRAY_SIZE(shift_listeners));

	for (i = 0; i < ARRAY_SIZE(families); i++) {
		struct rdma_cm_id *cm_id = shift_listen(families[i]);

		if (IS_ERR(cm_id)) {
			err = PTR_ERR(cm_id);
			if (err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL)
				continue;
			shift_listener_stop();
			return err;
		}
		shift_listeners[i] = cm_id;
	}
	return 0;
}

/**
 * shift_listener_stop - accept no more; carriers that were accepted stay
 *
 * Context: process, sleeps.
 */
void shift_listener_stop(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(shift_listeners); i++) {
		if (shift_listeners[i])
			rdma_destroy_id(shift_listeners[i]);
		shift_listeners[i] = NULL;
	}
}
