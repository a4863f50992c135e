/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages between two kernels, and their wire form (big endian, fixed layout,
 * one record each).  Pure.  Everything received is validated here: sizes,
 * version, enumerations, 24-bit fields, reserved fields zero.
 */
#ifndef SHIFT_PURE_MSG_H
#define SHIFT_PURE_MSG_H

#include "pure/pure.h"

#define SHIFT_MSG_MAGIC		0x53484654u	/* "SHFT" */
/*
 * Versions of the wire form that this module speaks: what two nodes have in common is used between
 * them, so that nodes can be upgraded one by one.  What only adds a flag or a type is a capability,
 * and needs no version.
 */
#define SHIFT_MSG_OLDEST	4
#ifndef SHIFT_MSG_NEWEST
#define SHIFT_MSG_NEWEST	4
#endif
#define SHIFT_MSG_MAX		256	/* bytes on the wire, every type */
#define SHIFT_MSG_PATHS		8	/* path numbers on the wire are below */

enum shift_msg_type {
	SHIFT_MSG_HEARTBEAT	= 1,
	SHIFT_MSG_PAIR,
	SHIFT_MSG_REQ,
	SHIFT_MSG_ACK,
	SHIFT_MSG_NACK,
	SHIFT_MSG_PROGRESS,
	SHIFT_MSG_RESOLVE,
	SHIFT_MSG_RESOLVED,
	SHIFT_MSG_RKEY_GONE,
	SHIFT_MSG_READY,
	SHIFT_MSG_GONE,
	__SHIFT_MSG_MAX
};

/* what a receiver understands beyond the oldest version */
#define SHIFT_MSG_CAP_ALONE	(1u << 0)	/* SHIFT_PAIR_ALONE */
#define SHIFT_MSG_CAP_LANES	(1u << 1)	/* connections for one traffic class */
#ifndef SHIFT_MSG_CAPS
#define SHIFT_MSG_CAPS		(SHIFT_MSG_CAP_ALONE | SHIFT_MSG_CAP_LANES)
#endif

/**
 * struct shift_msg_form - how two nodes write what they send to each other
 * @version: of the wire form.
 * @caps: SHIFT_MSG_CAP_*, that both understand.
 */
struct shift_msg_form {
	u8 version, caps;
};

enum shift_msg_kind { SHIFT_KIND_FAULT, SHIFT_KIND_MOVE, __SHIFT_KIND_MAX };

enum shift_msg_nack {
	SHIFT_NACK_BUSY, SHIFT_NACK_GONE, SHIFT_NACK_NO_MIRROR,
	SHIFT_NACK_QUEUED,	/* no refusal: what you have sent waits for my QP's work item */
	__SHIFT_NACK_MAX
};

enum shift_msg_progress {
	SHIFT_PROGRESS_OK, SHIFT_PROGRESS_UNKNOWN,
	__SHIFT_PROGRESS_MAX	/* 2 was an application's own error; reserved */
};

enum shift_msg_gone {
	SHIFT_RKEY_GONE,
	SHIFT_RKEY_TELL,	/* answer when the key is forgotten */
	SHIFT_RKEY_FORGOTTEN,	/* the answer */
	__SHIFT_RKEY_MAX
};

#define SHIFT_PAIR_ACK		(1u << 0)	/* answers a PAIR: do not answer again */
#define SHIFT_PAIR_REFUSED	(1u << 1)	/* the sender is unprotected */
#define SHIFT_PAIR_ATOMIC	(1u << 2)	/* atomics may go to either of the sender's NICs */
#define SHIFT_PAIR_WINDOWS	(1u << 3)	/* the sender records operations on windows */
#define SHIFT_PAIR_ALONE	(1u << 4)	/* no other QP of the sender's moves with it */

#define SHIFT_PROGRESS_AT_LEAST_ONCE	(1u << 0)	/* the policy of the sender of UNKNOWN */

/**
 * struct shift_msg - a message in host order
 * @type: enum shift_msg_type.
 * @dst_cookie: the receiver's QP incarnation (0 in PAIR before it is known).
 * @src_cookie: the sender's; never 0.
 * @epoch: of the failover; in PAIR the highest one that its sender knows; 0: it has no meaning.
 */
struct shift_msg {
	u8 type;
	u64 dst_cookie;
	u64 src_cookie;
	u32 epoch;
	union {
		struct {
			u32 seq;
		} heartbeat;
		struct {
			u32 flags;
			u32 src_qpn, dst_qpn;	/* default QPs */
			u8 src_gid[16], dst_gid[16];
			u8 backup_gid[16];
			u32 mtu;		/* bytes, of the default path */
		} pair;
		struct {
			u8 to, kind, cause;	/* enum shift_msg_kind, enum shift_cause */
			u64 t_detect;		/* CLOCK_REALTIME ns */
		} req;
		struct {
			u8 to;
		} ack;
		struct {
			u8 code;		/* enum shift_msg_nack */
			u32 busy_epoch;
		} nack;
		struct {
			u8 to, status, path, flags;
			u32 expected_psn;	/* on @path, armed in @arm_epoch */
			u32 arm_epoch;
			u32 qpn;		/* for path @to */
		} progress;
		struct {
			/* status: 0 or a positive errno; new_rkey in a RESOLVE: windows.md */
			/* new_rkey in a RKEY_GONE: enum shift_msg_gone */
			u32 rkey, new_rkey, status;
			u32 ask;		/* RESOLVED has that of its RESOLVE */
		} key;				/* RESOLVE, RESOLVED, RKEY_GONE */
		/* READY and GONE say all by their head */
	};
};

bool shift_msg_agree(u8 oldest, u8 newest, u8 caps, struct shift_msg_form *form);
/* bytes written, or -EINVAL */
int shift_msg_encode(const struct shift_msg *m, const struct shift_msg_form *form, void *buf,
		     size_t size);
/* bytes of the first of several messages, or -EINVAL */
int shift_msg_length(const void *buf, size_t size);
/* 0, -EINVAL (malformed), -EPROTONOSUPPORT (version) */
int shift_msg_decode(const void *buf, size_t size, struct shift_msg *m);
const char *shift_msg_name(u8 type);
u8 shift_msg_target(const struct shift_msg *m);

#endif /* SHIFT_PURE_MSG_H */
