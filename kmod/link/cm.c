// SPDX-License-Identifier: GPL-2.0
/*
 * How links are connected: RDMA CM's events on both sides, HELLO, the listener.
 * Documentation/internals/links.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include "core/ib.h"
#include "core/node.h"
#include "core/object.h"
#include "core/stat.h"
#include "link/link.h"
#include "link/link_priv.h"
#include "pure/msg.h"

#define SHIFT_HELLO_MAGIC	0x53484c4fu	/* "SHLO" */
#define SHIFT_HELLO_LANE	0x53484c4eu	/* "SHLN": modules without lanes refuse it */
#define SHIFT_HELLO_VERSION	3	/* of struct shift_hello; both ends need the same */

#define SHIFT_CONN_RESOLVE	2000	/* ms for an address or a route */
#define SHIFT_CONN_BACKLOG	128

/* RDMA CM lets only privileged users bind to ports below the second one */
#define SHIFT_PORT_LOWEST	512
#define SHIFT_PORT_USERS	1024

/*
 * RC: 4.096 us << 14 = 67 ms, 6 retries: a dead path shows within 0.5 s.  Not 7
 * retries: rxe takes that for retries without end.
 */
#define SHIFT_CONN_TIMEOUT	14
#define SHIFT_CONN_RETRIES	6
#define SHIFT_CONN_RNR	7	/* without end: a slow receiver is not a dead one */
#define SHIFT_CONN_RNR_TIMER	14	/* 1.28 ms; RDMA CM's 0 is 655 ms: silence */

/*
 * Private data of REQ and REP; a REQ has no room for more.  Modules that had one version of the
 * messages send zeros for @oldest, @newest and @caps.
 */
struct shift_hello {
	__be32 magic;
	u8 version;
	u8 oldest, newest;		/* of the messages, SHIFT_MSG_* */
	u8 caps;
	u8 boot_id[16];
	union ib_gid local, remote;	/* the sender's view */
} __packed;

/* May be changed at any time. */
static unsigned char tos;
module_param(tos, byte, 0644);
MODULE_PARM_DESC(tos, "type of service of links' packets (DSCP << 2), from their next connection on; the side that connects decides");

static struct rdma_cm_id *shift_listeners[2];

static int conn_event(struct rdma_cm_id *cm_id, struct rdma_cm_event *event);

/* Both sides */

static void conn_param(struct shift_conn *c, struct shift_hello *hello,
		       struct rdma_conn_param *param)
{
	memset(hello, 0, sizeof(*hello));
	hello->magic = cpu_to_be32(c->link->base ? SHIFT_HELLO_LANE : SHIFT_HELLO_MAGIC);
	hello->version = SHIFT_HELLO_VERSION;
	hello->oldest = SHIFT_MSG_OLDEST;
	hello->newest = SHIFT_MSG_NEWEST;
	hello->caps = SHIFT_MSG_CAPS;
	memcpy(hello->boot_id, shift_boot_id, sizeof(hello->boot_id));
	hello->local = c->link->local;
	hello->remote = c->link->remote;

	memset(param, 0, sizeof(*param));
	param->private_data = hello;
	param->private_data_len = sizeof(*hello);
	param->responder_resources = 1;
	param->initiator_depth = 1;
	param->retry_count = SHIFT_CONN_RETRIES;
	param->rnr_retry_count = SHIFT_CONN_RNR;
}

static bool hello_is_of_lane(const struct shift_hello *hello)
{
	return SHIFT_MSG_CAPS & SHIFT_MSG_CAP_LANES &&
	       hello->magic == cpu_to_be32(SHIFT_HELLO_LANE);
}

static bool hello_valid(const struct shift_hello *hello, size_t len)
{
	return hello && len >= sizeof(*hello) &&
	       (hello->magic == cpu_to_be32(SHIFT_HELLO_MAGIC) || hello_is_of_lane(hello)) &&
	       hello->version == SHIFT_HELLO_VERSION &&
	       memchr_inv(hello->boot_id, 0, sizeof(hello->boot_id));
}

/* Is there a form of messages that both ends know?  It is the conn's then. */
static bool hello_agrees(const struct shift_hello *hello, struct shift_msg_form *form)
{
	return shift_msg_agree(hello->oldest, hello->newest, hello->caps, form);
}

static void conn_set_timers(struct rdma_cm_id *cm_id)
{
	unsigned int scale = shift_scale(1);

	rdma_set_ack_timeout(cm_id, min(SHIFT_CONN_TIMEOUT + order_base_2(scale), 31));
	rdma_set_min_rnr_timer(cm_id, SHIFT_CONN_RNR_TIMER);
}

static void gid_to_sockaddr(const union ib_gid *gid, u16 port, struct sockaddr_storage *ss)
{
	memset(ss, 0, sizeof(*ss));
	rdma_gid2ip((struct sockaddr *)ss, gid);
	if (ss->ss_family == AF_INET)
		((struct sockaddr_in *)ss)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)ss)->sin6_port = htons(port);
}

/**
 * shift_port_is_privileged - may only privileged users of a host bind to a port?
 * @port: of RDMA CM, in host order.
 *
 * Context: any.
 */
bool shift_port_is_privileged(u16 port)
{
	return port && port < SHIFT_PORT_USERS;
}

/*
 * Bind to a privileged port, so that the peer knows that no ordinary user speaks.  All conns share
 * the highest one, unless somebody else has it.
 */
static int conn_bind(struct rdma_cm_id *cm_id, const union ib_gid *local)
{
	struct sockaddr_storage src;
	u16 port = SHIFT_PORT_USERS;
	int err;

	err = rdma_set_reuseaddr(cm_id, 1);
	if (err)
		return err;
	do {
		gid_to_sockaddr(local, --port, &src);
		err = rdma_bind_addr(cm_id, (struct sockaddr *)&src);
	} while ((err == -EADDRINUSE || err == -EADDRNOTAVAIL) && port > SHIFT_PORT_LOWEST);
	return err;
}

/**
 * shift_conn_connect - begin to connect a link
 * @link: active; its @conns counts the caller, so that its device stays.
 *
 * Context: process, sleeps.
 * Return: 0: it has begun, and the connection is retired if it fails; -errno: it could not begin.
 */
int shift_conn_connect(struct shift_link *link)
{
	struct sockaddr_storage dst;
	struct shift_conn *c;
	const struct ib_gid_attr *gid;
	struct ib_device *dev;
	int err;

	dev = READ_ONCE(link->dev);
	if (!dev)
		return -ENODEV;
	gid = shift_gid_find(dev, &link->local, SHIFT_VLAN_ANY);
	if (IS_ERR(gid))
		return -EADDRNOTAVAIL;
	rdma_put_gid_attr(gid);
	c = shift_conn_create(link);
	if (!c)
		return -ENOMEM;
	c->cm_id = rdma_create_id(&init_net, conn_event, c, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(c->cm_id)) {
		err = PTR_ERR(c->cm_id);
		shift_conn_done(c);
		return err;
	}
	/* once it is on the link it may be retired, but is not destroyed while this lock is held */
	rdma_lock_handler(c->cm_id);
	if (!shift_conn_install(c, false)) {
		rdma_unlock_handler(c->cm_id);
		rdma_destroy_id(c->cm_id);
		shift_conn_done(c);
		return 0;
	}
	gid_to_sockaddr(&link->remote, shift_link_port, &dst);
	conn_set_timers(c->cm_id);
	if (link->base || READ_ONCE(tos))
		rdma_set_service_type(c->cm_id, link->base ? link->tclass : tos);
	err = conn_bind(c->cm_id, &link->local);
	if (!err)
		err = rdma_resolve_addr(c->cm_id, NULL, (struct sockaddr *)&dst,
					jiffies_to_msecs(shift_scaled_jiffies(SHIFT_CONN_RESOLVE)));
	if (err)
		shift_conn_fail(c, "resolve address", err);
	rdma_unlock_handler(c->cm_id);
	return 0;
}

/* Has the path that RDMA CM has found both GIDs of the link? */
static bool conn_fits(struct shift_conn *c)
{
	const struct shift_link *link = c->link;
	const struct sa_path_rec *path = c->cm_id->route.path_rec;

	return path && !memcmp(&path->sgid, &link->local, sizeof(link->local)) &&
	       !memcmp(&path->dgid, &link->remote, sizeof(link->remote));
}

static int conn_resolved(struct shift_conn *c)
{
	unsigned int timeout;
	struct ib_device *dev = READ_ONCE(c->link->dev);

	if (!dev)
		return -ENODEV;
	/* two devices may have the same address */
	if (c->cm_id->device != dev) {
		pr_warn_ratelimited("link %u: %pI6c is reached through another device than %s\n",
				    c->link->id, c->link->remote.raw, c->link->name);
		return -EXDEV;
	}
	timeout = jiffies_to_msecs(shift_scaled_jiffies(SHIFT_CONN_RESOLVE));
	return rdma_resolve_route(c->cm_id, timeout);
}

static int conn_routed(struct shift_conn *c)
{
	struct rdma_conn_param param;
	struct shift_hello hello;
	int err;

	if (!conn_fits(c))
		return -EXDEV;
	err = shift_conn_build(c);
	if (err)
		return err;
	conn_param(c, &hello, &param);
	return rdma_connect_locked(c->cm_id, &param);
}

/* Both sides; on the passive side the HELLO came with the request. */
static int conn_connected(struct shift_conn *c, const struct rdma_cm_event *event)
{
	const struct shift_hello *hello = event->param.conn.private_data;
	struct sa_path_rec *path = c->cm_id->route.path_rec;
	const u8 *dmac = path ? sa_path_get_dmac(path) : NULL;
	struct shift_link *link = c->link;

	if (!c->hello) {
		if (!hello_valid(hello, event->param.conn.private_data_len) ||
		    hello_is_of_lane(hello) != !!link->base ||
		    memcmp(&hello->local, &link->remote, sizeof(hello->local)) ||
		    memcmp(&hello->remote, &link->local, sizeof(hello->remote)) ||
		    !hello_agrees(hello, &c->form)) {
			pr_warn_ratelimited("link %u: %pI6c answered with a bad HELLO\n", link->id,
					    link->remote.raw);
			return -EPROTO;
		}
		memcpy(c->boot_id, hello->boot_id, sizeof(c->boot_id));
	}
	if (path)
		c->tclass = path->traffic_class & SHIFT_LINK_CLASS;
	spin_lock_irq(&link->lock);
	c->hello = true;
	if (dmac)
		memcpy(link->dmac, dmac, sizeof(link->dmac));
	shift_conn_establish(c);
	spin_unlock_irq(&link->lock);
	if (dmac)
		shift_neigh_note(link, &c->cm_id->route.addr.dev_addr);
	return 0;
}

/* Handler of a connection's cm_id.  It returns 0, so that RDMA CM never destroys the cm_id. */
static int conn_event(struct rdma_cm_id *cm_id, struct rdma_cm_event *event)
{
	struct shift_conn *c = cm_id->context;
	unsigned int noio;
	int err = 0;

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		spin_lock_irq(&c->link->lock);
		shift_link_cut_off(c->link);
		spin_unlock_irq(&c->link->lock);
	}
	if (event->event == RDMA_CM_EVENT_ESTABLISHED)
		c->connected = true;
	if (event->event == RDMA_CM_EVENT_DISCONNECTED)
		complete_all(&c->left);
	if (READ_ONCE(c->closing))
		return 0;

	noio = memalloc_noio_save();
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = conn_resolved(c);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		err = conn_routed(c);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		err = conn_connected(c, event);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	case RDMA_CM_EVENT_REJECTED:
		/* the answer has come in that class */
		if (c->link->base)
			shift_lane_absolve(c->link);
		fallthrough;
	default:
		/* an error, the peer's disconnect, a changed address, a removed device */
		err = event->status ?: -ECONNRESET;
		break;
	}
	memalloc_noio_restore(noio);
	if (err)
		shift_conn_fail(c, rdma_event_msg(event->event), err);
	return 0;
}

/* The listener */

/* 0: the request has a HELLO that fits the path it came on. */
static int listen_check(const struct rdma_cm_id *cm_id, const struct rdma_cm_event *event)
{
	const struct shift_hello *hello = event->param.conn.private_data;
	const struct sa_path_rec *path = cm_id->route.path_rec;
	struct shift_msg_form form;
	const char *why;
	/* it is at the same place in both kinds of address */
	u16 port = ntohs(((const struct sockaddr_in *)&cm_id->route.addr.dst_addr)->sin_port);

	if (!path || !hello_valid(hello, event->param.conn.private_data_len))
		why = "not a HELLO of this version";
	else if (memcmp(&hello->remote, &path->sgid, sizeof(path->sgid)) ||
		 memcmp(&hello->local, &path->dgid, sizeof(path->dgid)))
		why = "HELLO of another path";
	else if (memcmp(&hello->local, &hello->remote, sizeof(hello->local)) >= 0)
		why = "this side is the one to connect";
	else if (!shift_peer_knows(&hello->local))
		why = "not in the directory";
	else if (!shift_port_is_privileged(port))
		why = "its port is one that any user may have";
	else if (!hello_agrees(hello, &form))
		why = "its module is too old or too new for this one";
	else
		return 0;
	shift_stat_inc(SHIFT_STAT_STRANGERS);
	pr_warn_ratelimited("%s: connection from %pI6c rejected: %s\n",
			    dev_name(&cm_id->device->dev),
			    path ? path->dgid.raw : (const u8 *)&in6addr_any, why);
	return -ECONNREFUSED;
}

/* If this returns an error, RDMA CM rejects the request and destroys @cm_id. */
static int listen_accept(struct rdma_cm_id *cm_id, const struct rdma_cm_event *event,
			 struct shift_link *link)
{
	const struct shift_hello *peer = event->param.conn.private_data;
	struct rdma_conn_param param;
	struct shift_conn *c;
	struct shift_hello hello;
	int err;

	c = shift_conn_create(link);
	if (!c)
		return -EBUSY;
	c->cm_id = cm_id;
	memcpy(c->boot_id, peer->boot_id, sizeof(c->boot_id));
	hello_agrees(peer, &c->form);
	c->tclass = cm_id->route.path_rec->traffic_class & SHIFT_LINK_CLASS;
	c->hello = true;
	cm_id->context = c;
	cm_id->event_handler = conn_event;

	conn_set_timers(cm_id);
	err = shift_conn_build(c);
	if (err)
		goto err_release;
	/* before the peer can send: the connection must be on the link when that arrives */
	if (!shift_conn_install(c, true)) {
		err = -ENODEV;
		goto err_release;
	}
	/* from here on @cm_id is destroyed with the connection, also after an error */
	conn_param(c, &hello, &param);
	err = rdma_accept(cm_id, &param);
	if (err)
		shift_conn_fail(c, "accept", err);
	return 0;

err_release:
	shift_conn_release(c);
	shift_conn_done(c);
	return err;
}

/* A connection for heartbeats in the class that it came in. */
static int listen_lane(struct rdma_cm_id *cm_id, const struct rdma_cm_event *event,
		       struct shift_link *link)
{
	const struct shift_hello *peer = event->param.conn.private_data;
	struct shift_link *lane;
	int err;

	if (!shift_lane_welcome(link, peer->boot_id))
		return -ENOTCONN;
	lane = shift_link_lane(link, cm_id->route.path_rec->traffic_class, false);
	if (IS_ERR(lane))
		return PTR_ERR(lane);
	err = listen_accept(cm_id, event, lane);
	shift_link_put(lane);
	return err;
}

static int listen_event(struct rdma_cm_id *cm_id, struct rdma_cm_event *event)
{
	const struct shift_hello *hello = event->param.conn.private_data;
	struct shift_link *link;
	unsigned int noio;
	int err;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	if (!shift_dev_is_known(cm_id->device))
		return -ENODEV;
	err = listen_check(cm_id, event);
	if (err)
		return err;

	noio = memalloc_noio_save();
	link = shift_link_find(cm_id->device, &hello->remote, &hello->local);
	if (IS_ERR(link)) {
		err = -EBUSY;
	} else {
		err = hello_is_of_lane(hello) ? listen_lane(cm_id, event, link) :
						listen_accept(cm_id, event, link);
		shift_link_put(link);
	}
	memalloc_noio_restore(noio);
	return err;
}

static struct rdma_cm_id *listener_make(sa_family_t family)
{
	struct sockaddr_storage any = { .ss_family = family };
	struct rdma_cm_id *cm_id;
	int err;

	/* the port is at the same place in both kinds of address */
	((struct sockaddr_in *)&any)->sin_port = htons(shift_link_port);
	cm_id = rdma_create_id(&init_net, listen_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(cm_id))
		return cm_id;
	err = rdma_set_afonly(cm_id, 1);
	if (!err)
		err = rdma_bind_addr(cm_id, (struct sockaddr *)&any);
	if (!err)
		err = rdma_listen(cm_id, SHIFT_CONN_BACKLOG);
	if (!err)
		return cm_id;
	rdma_destroy_id(cm_id);
	return ERR_PTR(err);
}

/**
 * shift_listener_start - accept connections from known peers
 *
 * Context: process, sleeps.
 * Return: 0, also if IPv6 is disabled; -errno.
 */
int shift_listener_start(void)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6 };
	unsigned int i;
	int err;

	BUILD_BUG_ON(sizeof(struct shift_hello) > 56);
	BUILD_BUG_ON(ARRAY_SIZE(families) != ARRAY_SIZE(shift_listeners));

	for (i = 0; i < ARRAY_SIZE(families); i++) {
		struct rdma_cm_id *cm_id = listener_make(families[i]);

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
 * shift_listener_stop - accept no more connections; those that were accepted stay
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
