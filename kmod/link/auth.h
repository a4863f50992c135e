/* SPDX-License-Identifier: GPL-2.0 */
/* How the two ends of a connection prove that they know the cluster's key. */
#ifndef SHIFT_LINK_AUTH_H
#define SHIFT_LINK_AUTH_H

#include <linux/types.h>
#include <linux/workqueue.h>

#define SHIFT_AUTH_NONCE	32

/**
 * struct shift_auth - the proofs of a connection
 * @wanted: there was a key when the connection was made: it is not established without proofs.
 * @proven: the peer has proved that it knows a key; link->lock.
 * @asked: the peer was sent @nonce; @work only.
 * @nonce: what its proof has to be about.
 * @work: does all of it.
 */
struct shift_auth {
	bool wanted, proven, asked;
	u8 nonce[SHIFT_AUTH_NONCE];
	struct work_struct work;
};

struct shift_conn;

int shift_auth_init(void);
void shift_auth_uninit(void);
void shift_auth_begin(struct shift_conn *c);
bool shift_auth_ready(struct shift_conn *c);
void shift_auth_end(struct shift_conn *c);

#endif /* SHIFT_LINK_AUTH_H */
