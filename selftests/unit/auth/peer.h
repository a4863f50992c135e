/* SPDX-License-Identifier: GPL-2.0 */
/* What the peer sends. */
#ifndef AUTH_PEER_H
#define AUTH_PEER_H

#include "fuzz.h"

#define FRAME_MAGIC	0x53485155u
#define HELLO_MAGIC	0x53484c4fu

/* As they are on the wire, written down once more. */
struct hello {
	__be32 magic;
	u8 version, oldest, newest, caps, boot_id[16];
	union ib_gid local, remote;
} __packed;

struct frame {
	__be32 magic;
	u8 version, kind, newest, reserved, bytes[32];
} __packed;

struct claim {
	char label[16];
	u8 connects, nonce[32], boot_id[16], other_boot_id[16];
	union ib_gid local, remote;
} __packed;

/* peer.c */
struct hello fuzz_hello(void);
u32 fuzz_frame(struct fuzz_id *f, u8 *to);	/* its length */
void fuzz_note(struct fuzz_id *f, const u8 *bytes, u32 len);
void fuzz_prove(const struct shift_conn *c, bool own, const u8 *nonce, u32 key, u8 *proof);
bool fuzz_proves(u32 key);
void fuzz_spoil(void *what, u32 len);

/* fuzz_auth.c */
u8 fuzz_byte(void);
struct fuzz_id *fuzz_pick(void);

#endif /* AUTH_PEER_H */
