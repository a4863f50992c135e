// SPDX-License-Identifier: GPL-2.0
/* The wire form of messages. */
#include "pure/msg.h"
#include "ktap.h"

static u8 buf[SHIFT_MSG_MAX + 8], buf2[SHIFT_MSG_MAX];
static struct shift_msg msg, msg2;
/* between two nodes of this module's version */
static const struct shift_msg_form form = {
	.version = SHIFT_MSG_NEWEST, .caps = SHIFT_MSG_CAPS,
};

/* any message that may be sent */
static void any_message(struct rnd *r, u8 type)
{
	memset(&msg, 0, sizeof(msg));
	msg.type = type;
	msg.dst_cookie = rnd64(r) | 1;
	msg.src_cookie = rnd64(r) | 1;
	msg.epoch = rnd32(r) | 1;

	switch (type) {
	case SHIFT_MSG_HEARTBEAT:
		if (rnd_one_in(r, 2))
			msg.dst_cookie = msg.src_cookie = msg.epoch = 0;
		msg.heartbeat.seq = rnd32(r);
		break;
	case SHIFT_MSG_PAIR:
		if (rnd_one_in(r, 2))
			msg.dst_cookie = 0;
		msg.pair.flags = rnd_below(r, 32);
		msg.pair.src_qpn = rnd_below(r, 1u << 24);
		msg.pair.dst_qpn = rnd_below(r, 1u << 24);
		rnd_fill(r, msg.pair.src_gid, 16);
		rnd_fill(r, msg.pair.dst_gid, 16);
		rnd_fill(r, msg.pair.backup_gid, 16);
		msg.pair.mtu = 256u << rnd_below(r, 5);
		if ((msg.pair.flags & SHIFT_PAIR_REFUSED) && rnd_one_in(r, 2))
			msg.pair.mtu = 0;
		break;
	case SHIFT_MSG_REQ:
		msg.req.to = (u8)rnd_below(r, SHIFT_MSG_PATHS);
		msg.req.kind = (u8)rnd_below(r, __SHIFT_KIND_MAX);
		msg.req.cause = (u8)rnd32(r);
		msg.req.t_detect = rnd64(r);
		break;
	case SHIFT_MSG_ACK:
		msg.ack.to = (u8)rnd_below(r, SHIFT_MSG_PATHS);
		break;
	case SHIFT_MSG_NACK:
		msg.nack.code = (u8)rnd_below(r, __SHIFT_NACK_MAX);
		msg.nack.busy_epoch = rnd32(r);
		break;
	case SHIFT_MSG_PROGRESS:
		msg.progress.to = (u8)rnd_below(r, SHIFT_MSG_PATHS);
		msg.progress.status = (u8)rnd_below(r, __SHIFT_PROGRESS_MAX);
		msg.progress.path = (u8)rnd_below(r, SHIFT_MSG_PATHS);
		msg.progress.flags = (u8)rnd_below(r, 2);
		msg.progress.expected_psn = rnd_below(r, 1u << 24);
		msg.progress.arm_epoch = rnd32(r);
		msg.progress.qpn = rnd_below(r, 1u << 24);
		break;
	case SHIFT_MSG_RESOLVE:
	case SHIFT_MSG_RESOLVED:
		msg.key.rkey = rnd32(r);
		msg.key.new_rkey = rnd32(r);
		msg.key.status = rnd_below(r, 4096);
		msg.key.ask = rnd32(r);
		break;
	case SHIFT_MSG_RKEY_GONE:
		msg.key.rkey = rnd32(r);
		msg.key.new_rkey = rnd_below(r, __SHIFT_RKEY_MAX);
		break;
	}
}

static void round_trip(struct ktap *t)
{
	struct rnd r = { .state = 5 };
	int i, n, size;
	u8 type;

	for (i = 0; i < 500; i++) {
		for (type = 1; type < __SHIFT_MSG_MAX; type++) {
			any_message(&r, type);
			memset(buf, 0xa5, sizeof(buf));
			/* at any alignment */
			n = shift_msg_encode(&msg, &form, buf + i % 8, SHIFT_MSG_MAX);
			ASSERT(t, n > 0 && n <= SHIFT_MSG_MAX);
			EXPECT(t, buf[i % 8 + n] == 0xa5 || i % 8 + n == sizeof(buf));
			memset(&msg2, 0x5a, sizeof(msg2));
			EXPECT_EQ(t, shift_msg_decode(buf + i % 8, n, &msg2), 0);
			EXPECT(t, !memcmp(&msg, &msg2, sizeof(msg)));

			/* every other size is refused */
			for (size = 0; size < n; size++) {
				EXPECT_EQ(t, shift_msg_encode(&msg, &form, buf2, size),
					  -EINVAL);
				EXPECT_EQ(t, shift_msg_decode(buf + i % 8, size, &msg2),
					  -EINVAL);
			}
			EXPECT_EQ(t, shift_msg_decode(buf, n + 1, &msg2), -EINVAL);
		}
		ktap_breathe();
	}
}

/* whatever is taken is exactly what would be sent */
static void damaged(struct ktap *t)
{
	struct rnd r = { .state = 6 };
	int i, n, ret;
	u8 type;

	for (i = 0; i < 3000; i++) {
		for (type = 1; type < __SHIFT_MSG_MAX; type++) {
			any_message(&r, type);
			n = shift_msg_encode(&msg, &form, buf, sizeof(buf));
			ASSERT(t, n > 0);
			buf[rnd_below(&r, n)] ^= (u8)(1u << rnd_below(&r, 8));
			ret = shift_msg_decode(buf, n, &msg2);
			if (ret) {
				EXPECT(t, ret == -EINVAL || ret == -EPROTONOSUPPORT);
				continue;
			}
			EXPECT_EQ(t, shift_msg_encode(&msg2, &form, buf2, sizeof(buf2)), n);
			EXPECT(t, !memcmp(buf, buf2, n));
		}
	}
	for (i = 0; i < 20000; i++) {
		n = rnd_below(&r, sizeof(buf) + 1);
		rnd_fill(&r, buf, n);
		EXPECT(t, shift_msg_decode(buf, n, &msg2));
	}
}

static void wire_layout(struct ktap *t)
{
	static const u8 want[] = {
		0x53, 0x48, 0x46, 0x54,				/* magic */
		4, SHIFT_MSG_PROGRESS, 0, 56,			/* version, type, length */
		0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,	/* dst cookie */
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,	/* src cookie */
		0x21, 0x22, 0x23, 0x24, 0, 0, 0, 0,		/* epoch */
		1, SHIFT_PROGRESS_UNKNOWN, 2, 1,		/* to, status, path, flags */
		0x00, 0xab, 0xcd, 0xef,				/* expected psn */
		0x31, 0x32, 0x33, 0x34, 0, 0, 0, 0,		/* arm epoch */
		0, 0, 0, 0, 0, 0, 0, 0,
	};
	static const u8 sizes[__SHIFT_MSG_MAX] = {
		[SHIFT_MSG_HEARTBEAT] = 40, [SHIFT_MSG_PAIR] = 96,
		[SHIFT_MSG_REQ] = 48, [SHIFT_MSG_ACK] = 40, [SHIFT_MSG_NACK] = 40,
		[SHIFT_MSG_PROGRESS] = 56, [SHIFT_MSG_RESOLVE] = 48,
		[SHIFT_MSG_RESOLVED] = 48, [SHIFT_MSG_RKEY_GONE] = 48,
		[SHIFT_MSG_READY] = 32, [SHIFT_MSG_GONE] = 32,
	};
	struct rnd r = { .state = 7 };
	u8 type;

	memset(&msg, 0, sizeof(msg));
	msg.type = SHIFT_MSG_PROGRESS;
	msg.dst_cookie = 0x0102030405060708ull;
	msg.src_cookie = 0x1112131415161718ull;
	msg.epoch = 0x21222324;
	msg.progress.to = 1;
	msg.progress.status = SHIFT_PROGRESS_UNKNOWN;
	msg.progress.path = 2;
	msg.progress.flags = SHIFT_PROGRESS_AT_LEAST_ONCE;
	msg.progress.expected_psn = 0xabcdef;
	msg.progress.arm_epoch = 0x31323334;
	EXPECT_EQ(t, shift_msg_encode(&msg, &form, buf, sizeof(buf)), sizeof(want));
	EXPECT(t, !memcmp(buf, want, sizeof(want)));

	for (type = 1; type < __SHIFT_MSG_MAX; type++) {
		any_message(&r, type);
		EXPECT_EQ(t, shift_msg_encode(&msg, &form, buf, sizeof(buf)), sizes[type]);
	}
}

static void versions(struct ktap *t)
{
	struct rnd r = { .state = 8 };
	int n;

	any_message(&r, SHIFT_MSG_ACK);
	n = shift_msg_encode(&msg, &form, buf, sizeof(buf));
	ASSERT(t, n > 0);
	buf[4] = SHIFT_MSG_OLDEST - 1;
	EXPECT_EQ(t, shift_msg_decode(buf, n, &msg2), -EPROTONOSUPPORT);
	buf[4] = SHIFT_MSG_NEWEST + 1;
	EXPECT_EQ(t, shift_msg_decode(buf, n, &msg2), -EPROTONOSUPPORT);
	/* whatever a later version looks like behind its first fields */
	EXPECT_EQ(t, shift_msg_decode(buf, sizeof(buf), &msg2), -EPROTONOSUPPORT);
	buf[0] ^= 1;
	EXPECT_EQ(t, shift_msg_decode(buf, n, &msg2), -EINVAL);
}

/* what two nodes have in common is used, and a node of another age is refused */
static void agreement(struct ktap *t)
{
	struct shift_msg_form got;

	/* a module that does not say */
	EXPECT(t, shift_msg_agree(0, 0, 0, &got));
	EXPECT_EQ(t, got.version, SHIFT_MSG_OLDEST);
	EXPECT_EQ(t, got.caps, 0);
	EXPECT(t, shift_msg_agree(SHIFT_MSG_OLDEST, SHIFT_MSG_NEWEST, SHIFT_MSG_CAPS, &got));
	EXPECT_EQ(t, got.version, SHIFT_MSG_NEWEST);
	EXPECT_EQ(t, got.caps, SHIFT_MSG_CAPS);
	/* one that has no lanes */
	EXPECT(t, shift_msg_agree(SHIFT_MSG_OLDEST, SHIFT_MSG_NEWEST, SHIFT_MSG_CAP_ALONE, &got));
	EXPECT_EQ(t, got.caps, SHIFT_MSG_CAP_ALONE);
	/* a newer one that still knows ours */
	EXPECT(t, shift_msg_agree(SHIFT_MSG_NEWEST, 255, 255, &got));
	EXPECT_EQ(t, got.version, SHIFT_MSG_NEWEST);
	EXPECT_EQ(t, got.caps, SHIFT_MSG_CAPS);
	/* an older one, but not too old */
	EXPECT(t, shift_msg_agree(1, SHIFT_MSG_OLDEST, 0, &got));
	EXPECT_EQ(t, got.version, SHIFT_MSG_OLDEST);
	/* nothing in common; and what makes no sense */
	EXPECT(t, !shift_msg_agree(1, SHIFT_MSG_OLDEST - 1, 255, &got));
	EXPECT(t, !shift_msg_agree(SHIFT_MSG_NEWEST + 1, 255, 255, &got));
	EXPECT(t, !shift_msg_agree(255, 1, 255, &got));
}

/* what the receiver does not understand is left out, and the rest is the same */
static void capabilities(struct ktap *t)
{
	const struct shift_msg_form old = { .version = SHIFT_MSG_OLDEST };
	struct rnd r = { .state = 9 };
	int n;

	any_message(&r, SHIFT_MSG_PAIR);
	msg.pair.flags |= SHIFT_PAIR_ALONE;
	n = shift_msg_encode(&msg, &old, buf, sizeof(buf));
	ASSERT(t, n > 0);
	EXPECT_EQ(t, buf[4], SHIFT_MSG_OLDEST);
	EXPECT_EQ(t, shift_msg_decode(buf, n, &msg2), 0);
	msg.pair.flags &= ~SHIFT_PAIR_ALONE;
	EXPECT(t, !memcmp(&msg, &msg2, sizeof(msg)));
}

/* changes one field of a good message to a bad value: no encode */
#define REFUSES(t, _type, change) do {					\
	any_message(&r, SHIFT_MSG_##_type);				\
	EXPECT(t, shift_msg_encode(&msg, &form, buf, sizeof(buf)) > 0);	\
	change;								\
	EXPECT_EQ(t, shift_msg_encode(&msg, &form, buf, sizeof(buf)), -EINVAL);	\
} while (0)

static void out_of_range(struct ktap *t)
{
	struct rnd r = { .state = 9 };

	REFUSES(t, ACK, msg.type = 0);
	REFUSES(t, ACK, msg.type = __SHIFT_MSG_MAX);
	REFUSES(t, ACK, msg.type = 255);
	REFUSES(t, ACK, msg.src_cookie = 0);
	REFUSES(t, ACK, msg.dst_cookie = 0);
	REFUSES(t, ACK, msg.epoch = 0);
	REFUSES(t, ACK, msg.ack.to = SHIFT_MSG_PATHS);
	REFUSES(t, GONE, msg.dst_cookie = 0);
	REFUSES(t, READY, msg.epoch = 0);
	REFUSES(t, PAIR, msg.src_cookie = 0);
	REFUSES(t, PAIR, msg.pair.flags |= 32);
	REFUSES(t, PAIR, msg.pair.src_qpn = 1u << 24);
	REFUSES(t, PAIR, msg.pair.dst_qpn = 1u << 24);
	REFUSES(t, PAIR, (msg.pair.flags = 0, msg.pair.mtu = 0));
	REFUSES(t, PAIR, msg.pair.mtu = 1000);
	REFUSES(t, PAIR, msg.pair.mtu = 8192);
	REFUSES(t, REQ, msg.req.kind = __SHIFT_KIND_MAX);
	REFUSES(t, REQ, msg.req.to = 255);
	REFUSES(t, NACK, msg.nack.code = __SHIFT_NACK_MAX);
	REFUSES(t, PROGRESS, msg.progress.status = __SHIFT_PROGRESS_MAX);
	REFUSES(t, PROGRESS, msg.progress.path = SHIFT_MSG_PATHS);
	REFUSES(t, PROGRESS, msg.progress.flags = 2);
	REFUSES(t, PROGRESS, msg.progress.expected_psn = 1u << 24);
	REFUSES(t, RESOLVED, msg.key.status = 4096);
	REFUSES(t, RKEY_GONE, msg.key.new_rkey = __SHIFT_RKEY_MAX);
	REFUSES(t, RKEY_GONE, msg.key.status = 1);
	REFUSES(t, RKEY_GONE, msg.key.ask = 1);
	REFUSES(t, READY, msg.src_cookie = 0);
}

/* several messages behind one another, as a batch has them */
static void batch(struct ktap *t)
{
	struct rnd r = { 7 };
	u8 wire[4 * SHIFT_MSG_MAX];
	size_t at = 0, end = 0;
	u8 type;
	int n;

	for (type = 1; type <= 4; type++) {
		any_message(&r, type);
		end += (size_t)shift_msg_encode(&msg, &form, wire + end, sizeof(wire) - end);
	}
	for (type = 1; type <= 4; type++) {
		n = shift_msg_length(wire + at, end - at);
		EXPECT(t, n > 0);
		EXPECT(t, !shift_msg_decode(wire + at, (size_t)n, &msg2));
		EXPECT(t, msg2.type == type);
		/* one that is cut off is not looked at */
		EXPECT(t, shift_msg_length(wire + at, (size_t)n - 1) == -EINVAL);
		at += (size_t)n;
	}
	EXPECT(t, at == end);
	EXPECT(t, shift_msg_length(wire, 0) == -EINVAL);
	wire[6] = 0;
	wire[7] = 31;	/* shorter than its own head */
	EXPECT(t, shift_msg_length(wire, end) == -EINVAL);
	wire[0] ^= 1;
	EXPECT(t, shift_msg_length(wire, end) == -EINVAL);
}

static void names(struct ktap *t)
{
	u8 type;

	for (type = 1; type < __SHIFT_MSG_MAX; type++)
		EXPECT(t, shift_msg_name(type) && shift_msg_name(type)[0] != '?');
	EXPECT(t, !strcmp(shift_msg_name(0), "?"));
	EXPECT(t, !strcmp(shift_msg_name(255), "?"));
}

static const struct ktap_case cases[] = {
	KTAP_CASE(round_trip),
	KTAP_CASE(damaged),
	KTAP_CASE(wire_layout),
	KTAP_CASE(versions),
	KTAP_CASE(agreement),
	KTAP_CASE(capabilities),
	KTAP_CASE(out_of_range),
	KTAP_CASE(batch),
	KTAP_CASE(names),
};

KTAP_SUITE(msg, cases);
