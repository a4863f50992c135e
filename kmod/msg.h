/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages between two kernels, and their wire form (big endian, fixed layout,
 * one record each).  Pure.  Everything received is validated here: sizes,
 * version, enumerations, 24-bit fields, reserved fields zero.
 */
#ifndef SHIFT_MSG_H
#define SHIFT_MSG_H

#include "pure.h"

#define SHIFT_MSG_MAGIC		0x53484654u	/* "SHFT" */
#define SHIFT_MSG_VERSION	2
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

enum shift_msg_kind { SHIFT_KIND_FAULT, SHIFT_KIND_NEXT, __SHIFT_KIND_MAX };

enum shift_msg_nack {
	SHIFT_NACK_BUSY, SHIFT_NACK_GONE, SHIFT_NACK_NO_MIRROR, SHIFT_NACK_NO_PATH,
	__SHIFT_NACK_MAX
};

enum shift_msg_progress {
	SHIFT_PROGRESS_OK, SHIFT_PROGRESS_UNKNOWN, SHIFT_PROGRESS_APP_ERR,
	__SHIFT_PROGRESS_MAX
};

#define SHIFT_PAIR_ACK		(1u << 0)	/* answers a PAIR: do not answer again */
#define SHIFT_PAIR_REFUSED	(1u << 1)	/* sender is unprotected: see reason */
#define SHIFT_PAIR_ATOMIC	(1u << 2)	/* atomics may go to either of the sender's NICs */
#define SHIFT_PAIR_WINDOWS	(1u << 3)	/* the sender knows what becomes of windows */

#define SHIFT_PROGRESS_PAPER	(1u << 0)	/* UNKNOWN: the sender would go on with it */

/**
 * struct shift_msg - a message in host order
 * @type: enum shift_msg_type.
 * @dst_cookie: the receiver's QP incarnation (0 in PAIR before it is known).
 * @src_cookie: the sender's; never 0.
 * @epoch: of the switch; 0 where it has no meaning.
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
			u32 reason;		/* enum shift_reason */
			u32 src_qpn, dst_qpn;	/* default QPs */
			u8 src_gid[16], dst_gid[16];
			u8 backup_gid[16];
			u32 backup_qpn;
			u32 mtu;		/* bytes, of the default path */
		} pair;
		struct {
			u8 from, to, kind, cause;
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
			u64 executed;		/* messages since pairing */
		} progress;
		struct {
			/* status: 0 or errno, positive; windows.md: new_rkey of RESOLVE */
			u32 rkey, new_rkey, status;
		} key;				/* RESOLVE, RESOLVED, RKEY_GONE */
		struct {
			u8 to;
			u32 qpn, start_psn;
			u32 recvs_posted;
			u64 ledger_base;
		} ready;
		struct {
			u32 reason;
		} gone;
	};
};

/* bytes written, or -EINVAL */
int shift_msg_encode(const struct shift_msg *m, void *buf, size_t size);
/* bytes of the first of several messages, or -EINVAL */
int shift_msg_length(const void *buf, size_t size);
/* 0, -EINVAL (malformed), -EPROTONOSUPPORT (version) */
int shift_msg_decode(const void *buf, size_t size, struct shift_msg *m);
const char *shift_msg_name(u8 type);

#endif /* SHIFT_MSG_H */
