// SPDX-License-Identifier: GPL-2.0
/*
 * Wire form of the messages between two kernels.
 *
 * A fixed head, then a body of fixed size by type; all big endian, naturally
 * aligned, reserved fields zero.  What the sender may not send the receiver
 * does not take: both directions go through the same check.
 */
#include "pure/msg.h"

struct wire_head {
	__be32 magic;
	u8 version;
	u8 type;
	__be16 length;		/* of the whole message */
	__be64 dst_cookie;
	__be64 src_cookie;
	__be32 epoch;
	__be32 reserved;
};

struct wire_heartbeat {
	__be32 seq;
	__be32 reserved;
};

struct wire_pair {
	__be32 flags;
	__be32 mtu;
	__be32 src_qpn;
	__be32 dst_qpn;
	u8 src_gid[16];
	u8 dst_gid[16];
	u8 backup_gid[16];
};

struct wire_req {
	u8 to;
	u8 kind;
	u8 cause;
	u8 reserved[5];
	__be64 t_detect;
};

struct wire_ack {
	u8 to;
	u8 reserved[7];
};

struct wire_nack {
	u8 code;
	u8 reserved[3];
	__be32 busy_epoch;
};

struct wire_progress {
	u8 to;
	u8 status;
	u8 path;
	u8 flags;
	__be32 expected_psn;
	__be32 arm_epoch;
	__be32 qpn;
	__be32 reserved[2];
};

struct wire_key {
	__be32 rkey;
	__be32 new_rkey;
	__be32 status;
	__be32 ask;
};

union wire_body {
	struct wire_heartbeat heartbeat;
	struct wire_pair pair;
	struct wire_req req;
	struct wire_ack ack;
	struct wire_nack nack;
	struct wire_progress progress;
	struct wire_key key;
};

struct wire {
	struct wire_head head;
	union wire_body body;
};

static_assert(sizeof(struct wire_head) == 32);
static_assert(sizeof(struct wire_heartbeat) == 8);
static_assert(sizeof(struct wire_pair) == 64);
static_assert(sizeof(struct wire_req) == 16);
static_assert(sizeof(struct wire_ack) == 8);
static_assert(sizeof(struct wire_nack) == 8);
static_assert(sizeof(struct wire_progress) == 24);
static_assert(sizeof(struct wire_key) == 16);
static_assert(offsetof(struct wire, body) == sizeof(struct wire_head));
static_assert(sizeof(struct wire) <= SHIFT_MSG_MAX);

#define MAX_24BIT	0xffffffu
#define MAX_STATUS	4095u		/* MAX_ERRNO */
#define PAIR_FLAGS	(SHIFT_PAIR_ACK | SHIFT_PAIR_REFUSED | SHIFT_PAIR_ATOMIC | \
			 SHIFT_PAIR_WINDOWS | SHIFT_PAIR_ALONE)

static const struct {
	const char *name;
	u16 body;
} types[] = {
	[SHIFT_MSG_HEARTBEAT]	= { "HEARTBEAT", sizeof(struct wire_heartbeat) },
	[SHIFT_MSG_PAIR]	= { "PAIR", sizeof(struct wire_pair) },
	[SHIFT_MSG_REQ]		= { "REQ", sizeof(struct wire_req) },
	[SHIFT_MSG_ACK]		= { "ACK", sizeof(struct wire_ack) },
	[SHIFT_MSG_NACK]	= { "NACK", sizeof(struct wire_nack) },
	[SHIFT_MSG_PROGRESS]	= { "PROGRESS", sizeof(struct wire_progress) },
	[SHIFT_MSG_RESOLVE]	= { "RESOLVE", sizeof(struct wire_key) },
	[SHIFT_MSG_RESOLVED]	= { "RESOLVED", sizeof(struct wire_key) },
	[SHIFT_MSG_RKEY_GONE]	= { "RKEY_GONE", sizeof(struct wire_key) },
	[SHIFT_MSG_READY]	= { "READY", 0 },
	[SHIFT_MSG_GONE]	= { "GONE", 0 },
};

static bool valid_type(u8 type)
{
	return type && type < __SHIFT_MSG_MAX;
}

/**
 * shift_msg_name() - name of a message type
 * @type: any value.
 *
 * Return: the name, "?" for a value that is no type.
 */
const char *shift_msg_name(u8 type)
{
	BUILD_BUG_ON(ARRAY_SIZE(types) != __SHIFT_MSG_MAX);
	return valid_type(type) ? types[type].name : "?";
}

static bool valid_mtu(u32 mtu)
{
	return mtu >= 256 && mtu <= 4096 && !(mtu & (mtu - 1));
}

static bool valid_pair(const struct shift_msg *m)
{
	if ((m->pair.flags & ~PAIR_FLAGS) || m->pair.src_qpn > MAX_24BIT ||
	    m->pair.dst_qpn > MAX_24BIT)
		return false;
	/* a refusal comes from a QP that may not be connected, and then has no MTU */
	return valid_mtu(m->pair.mtu) ||
	       (!m->pair.mtu && (m->pair.flags & SHIFT_PAIR_REFUSED));
}

/* Are the cookies of both ends, and the epoch of the failover, there if the type needs them? */
static bool valid_head(const struct shift_msg *m)
{
	switch (m->type) {
	case SHIFT_MSG_HEARTBEAT:
		return true;
	case SHIFT_MSG_PAIR:
		return m->src_cookie;
	case SHIFT_MSG_RESOLVE:
	case SHIFT_MSG_RESOLVED:
	case SHIFT_MSG_RKEY_GONE:
	case SHIFT_MSG_GONE:
		return m->src_cookie && m->dst_cookie;
	default:
		return m->src_cookie && m->dst_cookie && m->epoch;
	}
}

static bool valid_body(const struct shift_msg *m)
{
	switch (m->type) {
	case SHIFT_MSG_PAIR:
		return valid_pair(m);
	case SHIFT_MSG_REQ:
		return m->req.to < SHIFT_MSG_PATHS && m->req.kind < __SHIFT_KIND_MAX;
	case SHIFT_MSG_ACK:
		return m->ack.to < SHIFT_MSG_PATHS;
	case SHIFT_MSG_NACK:
		return m->nack.code < __SHIFT_NACK_MAX;
	case SHIFT_MSG_PROGRESS:
		return m->progress.status < __SHIFT_PROGRESS_MAX &&
		       m->progress.to < SHIFT_MSG_PATHS &&
		       m->progress.path < SHIFT_MSG_PATHS &&
		       !(m->progress.flags & ~SHIFT_PROGRESS_AT_LEAST_ONCE) &&
		       m->progress.qpn <= MAX_24BIT &&
		       m->progress.expected_psn <= MAX_24BIT;
	case SHIFT_MSG_RESOLVE:
	case SHIFT_MSG_RESOLVED:
		return m->key.status <= MAX_STATUS;
	case SHIFT_MSG_RKEY_GONE:
		return m->key.new_rkey < __SHIFT_RKEY_MAX && !m->key.status && !m->key.ask;
	default:
		return true;
	}
}

static bool valid(const struct shift_msg *m)
{
	return valid_head(m) && valid_body(m);
}

static void put_body(const struct shift_msg *m, union wire_body *b)
{
	switch (m->type) {
	case SHIFT_MSG_HEARTBEAT:
		b->heartbeat.seq = cpu_to_be32(m->heartbeat.seq);
		break;
	case SHIFT_MSG_PAIR:
		b->pair.flags = cpu_to_be32(m->pair.flags);
		b->pair.mtu = cpu_to_be32(m->pair.mtu);
		b->pair.src_qpn = cpu_to_be32(m->pair.src_qpn);
		b->pair.dst_qpn = cpu_to_be32(m->pair.dst_qpn);
		memcpy(b->pair.src_gid, m->pair.src_gid, 16);
		memcpy(b->pair.dst_gid, m->pair.dst_gid, 16);
		memcpy(b->pair.backup_gid, m->pair.backup_gid, 16);
		break;
	case SHIFT_MSG_REQ:
		b->req.to = m->req.to;
		b->req.kind = m->req.kind;
		b->req.cause = m->req.cause;
		b->req.t_detect = cpu_to_be64(m->req.t_detect);
		break;
	case SHIFT_MSG_ACK:
		b->ack.to = m->ack.to;
		break;
	case SHIFT_MSG_NACK:
		b->nack.code = m->nack.code;
		b->nack.busy_epoch = cpu_to_be32(m->nack.busy_epoch);
		break;
	case SHIFT_MSG_PROGRESS:
		b->progress.to = m->progress.to;
		b->progress.status = m->progress.status;
		b->progress.path = m->progress.path;
		b->progress.flags = m->progress.flags;
		b->progress.expected_psn = cpu_to_be32(m->progress.expected_psn);
		b->progress.arm_epoch = cpu_to_be32(m->progress.arm_epoch);
		b->progress.qpn = cpu_to_be32(m->progress.qpn);
		break;
	case SHIFT_MSG_RESOLVE:
	case SHIFT_MSG_RESOLVED:
	case SHIFT_MSG_RKEY_GONE:
		b->key.rkey = cpu_to_be32(m->key.rkey);
		b->key.new_rkey = cpu_to_be32(m->key.new_rkey);
		b->key.status = cpu_to_be32(m->key.status);
		b->key.ask = cpu_to_be32(m->key.ask);
		break;
	}
}

static void get_body(const union wire_body *b, struct shift_msg *m)
{
	switch (m->type) {
	case SHIFT_MSG_HEARTBEAT:
		m->heartbeat.seq = be32_to_cpu(b->heartbeat.seq);
		break;
	case SHIFT_MSG_PAIR:
		m->pair.flags = be32_to_cpu(b->pair.flags);
		m->pair.mtu = be32_to_cpu(b->pair.mtu);
		m->pair.src_qpn = be32_to_cpu(b->pair.src_qpn);
		m->pair.dst_qpn = be32_to_cpu(b->pair.dst_qpn);
		memcpy(m->pair.src_gid, b->pair.src_gid, 16);
		memcpy(m->pair.dst_gid, b->pair.dst_gid, 16);
		memcpy(m->pair.backup_gid, b->pair.backup_gid, 16);
		break;
	case SHIFT_MSG_REQ:
		m->req.to = b->req.to;
		m->req.kind = b->req.kind;
		m->req.cause = b->req.cause;
		m->req.t_detect = be64_to_cpu(b->req.t_detect);
		break;
	case SHIFT_MSG_ACK:
		m->ack.to = b->ack.to;
		break;
	case SHIFT_MSG_NACK:
		m->nack.code = b->nack.code;
		m->nack.busy_epoch = be32_to_cpu(b->nack.busy_epoch);
		break;
	case SHIFT_MSG_PROGRESS:
		m->progress.to = b->progress.to;
		m->progress.status = b->progress.status;
		m->progress.path = b->progress.path;
		m->progress.flags = b->progress.flags;
		m->progress.expected_psn = be32_to_cpu(b->progress.expected_psn);
		m->progress.arm_epoch = be32_to_cpu(b->progress.arm_epoch);
		m->progress.qpn = be32_to_cpu(b->progress.qpn);
		break;
	case SHIFT_MSG_RESOLVE:
	case SHIFT_MSG_RESOLVED:
	case SHIFT_MSG_RKEY_GONE:
		m->key.rkey = be32_to_cpu(b->key.rkey);
		m->key.new_rkey = be32_to_cpu(b->key.new_rkey);
		m->key.status = be32_to_cpu(b->key.status);
		m->key.ask = be32_to_cpu(b->key.ask);
		break;
	}
}

static void put_wire(const struct shift_msg *m, const struct shift_msg_form *form, struct wire *w)
{
	memset(w, 0, sizeof(*w));
	w->head.magic = cpu_to_be32(SHIFT_MSG_MAGIC);
	w->head.version = form->version;
	w->head.type = m->type;
	w->head.length = cpu_to_be16((u16)(sizeof(w->head) + types[m->type].body));
	w->head.dst_cookie = cpu_to_be64(m->dst_cookie);
	w->head.src_cookie = cpu_to_be64(m->src_cookie);
	w->head.epoch = cpu_to_be32(m->epoch);
	put_body(m, &w->body);
	if (m->type == SHIFT_MSG_PAIR && !(form->caps & SHIFT_MSG_CAP_ALONE))
		w->body.pair.flags &= cpu_to_be32(~SHIFT_PAIR_ALONE);
}

/**
 * shift_msg_agree() - the form of messages between two nodes
 * @oldest: version that the peer speaks; 0 of a module that had one version only, and said none.
 * @newest: the same.
 * @caps: what the peer understands; bits that are not known here are left out.
 * @form: out: the newest version that both speak, and what both understand.
 *
 * Return: false if the two have no version in common.
 */
bool shift_msg_agree(u8 oldest, u8 newest, u8 caps, struct shift_msg_form *form)
{
	if (!newest) {
		oldest = SHIFT_MSG_OLDEST;
		newest = SHIFT_MSG_OLDEST;
	}
	form->version = newest < SHIFT_MSG_NEWEST ? newest : SHIFT_MSG_NEWEST;
	form->caps = caps & SHIFT_MSG_CAPS;
	return form->version >= oldest && form->version >= SHIFT_MSG_OLDEST;
}

/**
 * shift_msg_encode() - write a message
 * @m: the message.
 * @form: how the receiver wants it; what that does not understand is left out.
 * @buf: where to; any alignment.
 * @size: its size; SHIFT_MSG_MAX is enough for every type.
 *
 * Return: bytes written, or -EINVAL if a field is out of its range or @buf too
 * small.
 */
int shift_msg_encode(const struct shift_msg *m, const struct shift_msg_form *form, void *buf,
		     size_t size)
{
	struct wire w;
	size_t n;

	if (!valid_type(m->type) || !valid(m))
		return -EINVAL;
	n = sizeof(w.head) + types[m->type].body;
	if (size < n)
		return -EINVAL;

	put_wire(m, form, &w);
	memcpy(buf, &w, n);
	return (int)n;
}

/**
 * shift_msg_length() - how long the first of several messages is
 * @buf: what was received, or what is left of it; any alignment.
 * @size: its bytes.
 *
 * Return: bytes to give to shift_msg_decode(), or -EINVAL if that cannot be told.
 */
int shift_msg_length(const void *buf, size_t size)
{
	struct wire_head head;
	size_t length;

	if (size < sizeof(head))
		return -EINVAL;
	memcpy(&head, buf, sizeof(head));
	length = be16_to_cpu(head.length);
	if (head.magic != cpu_to_be32(SHIFT_MSG_MAGIC) || length < sizeof(head) || length > size)
		return -EINVAL;
	return (int)length;
}

/**
 * shift_msg_decode() - read and check a message
 * @buf: what was received; any alignment.
 * @size: exactly one message.
 * @m: the message; undefined on error.
 *
 * Return: 0, -EPROTONOSUPPORT for a version that is none of ours, -EINVAL for
 * anything else that shift_msg_encode() would not have written.
 */
int shift_msg_decode(const void *buf, size_t size, struct shift_msg *m)
{
	struct shift_msg_form form = { .caps = SHIFT_MSG_CAPS };
	struct wire w, again;

	if (size < sizeof(w.head))
		return -EINVAL;
	memset(&w, 0, sizeof(w));
	memcpy(&w, buf, size < sizeof(w) ? size : sizeof(w));

	if (w.head.magic != cpu_to_be32(SHIFT_MSG_MAGIC))
		return -EINVAL;
	form.version = w.head.version;
	if (form.version < SHIFT_MSG_OLDEST || form.version > SHIFT_MSG_NEWEST)
		return -EPROTONOSUPPORT;
	if (!valid_type(w.head.type) || be16_to_cpu(w.head.length) != size ||
	    size != sizeof(w.head) + types[w.head.type].body)
		return -EINVAL;

	memset(m, 0, sizeof(*m));
	m->type = w.head.type;
	m->dst_cookie = be64_to_cpu(w.head.dst_cookie);
	m->src_cookie = be64_to_cpu(w.head.src_cookie);
	m->epoch = be32_to_cpu(w.head.epoch);
	get_body(&w.body, m);
	if (!valid(m))
		return -EINVAL;

	/* Written again it is the same, unless reserved fields were set. */
	put_wire(m, &form, &again);
	return memcmp(&w, &again, sizeof(w)) ? -EINVAL : 0;
}

/**
 * shift_msg_target - the path that a message of a failover is about
 * @m: REQ, ACK or PROGRESS.
 *
 * Context: any.
 * Return: a path, or SHIFT_PATH_OWN.
 */
u8 shift_msg_target(const struct shift_msg *m)
{
	switch (m->type) {
	case SHIFT_MSG_REQ:
		return m->req.to;
	case SHIFT_MSG_ACK:
		return m->ack.to;
	default:
		return m->progress.to;
	}
}
