/* SPDX-License-Identifier: GPL-2.0 */
/* How the two ends of a connection prove that they know the cluster's key. */
#ifndef SHIFT_LINK_AUTH_H
#define SHIFT_LINK_AUTH_H

#include <linux/types.h>
#include <linux/workqueue.h>

#define SHIFT_AUTH_BYTES	32	/* of a nonce, and of a proof: SHA-256 */

/**
 * struct shift_auth - the proofs of a connection
 * @wanted: there was a key when the connection was made: it is not established without proofs.
 * @proven: the peer has proved that it knows a key; link->lock.
 * @asked: the peer was sent @nonce; @work only.
 * @answered: the peer was sent a proof, and gets no other one; @work only.
 * @nonce: what its proof has to be about.
 * @work: does all of it.
 */
struct shift_auth {
	bool wanted, proven, asked, answered;
	u8 nonce[SHIFT_AUTH_BYTES];
	struct work_struct work;
};

/* What is sent for it, in a buffer of its own.  A nonce looks like that in all versions. */
struct shift_auth_frame {
	__be32 magic;
	u8 version;			/* of a proof; with a nonce: the oldest that will do */
	u8 kind;			/* AUTH_* */
	u8 newest;			/* with a nonce: the newest that will do */
	u8 reserved;
	u8 bytes[SHIFT_AUTH_BYTES];
} __packed;

/* what shift_auth_take() returns if nothing is wrong */
enum { SHIFT_AUTH_PROVEN, SHIFT_AUTH_ANSWER };

struct shift_conn;

int shift_auth_init(void);
void shift_auth_uninit(void);
void shift_auth_ask(const struct shift_conn *c, struct shift_auth_frame *frame);
int shift_auth_take(struct shift_conn *c, const struct shift_auth_frame *frame, u32 len,
		    struct shift_auth_frame *answer);

#endif /* SHIFT_LINK_AUTH_H */
