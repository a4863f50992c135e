/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the program share. */
#ifndef AUTH_FUZZ_H
#define AUTH_FUZZ_H

#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>
#include "link/link_priv.h"

#define FUZZ_IDS	8	/* of RDMA CM at a time */
#define FUZZ_KEYS	3	/* that exist; two can be loaded */

/* how far a cm_id is: which events RDMA CM may have for it */
enum fuzz_state { FUZZ_FREE, FUZZ_NEW, FUZZ_ADDR, FUZZ_ROUTE, FUZZ_ASKED, FUZZ_CONNECTED };

struct fuzz_frame { u8 bytes[SHIFT_LINK_BUF_SIZE]; u32 len; };

struct fuzz_id {
	struct rdma_cm_id id;
	struct sa_path_rec path;
	enum fuzz_state state;
	struct ib_qp qp;
	struct shift_conn *conn;		/* NULL: it has no QP yet */
	struct shift_link_buf *recv[SHIFT_LINK_BUFS], *sent[SHIFT_LINK_BUFS];
	u32 num_recv, num_sent;
	struct fuzz_frame last;			/* that was sent */
	u8 nonce[SHIFT_LINK_BUFS * 2][SHIFT_AUTH_BYTES];	/* that the peer has sent */
	u32 num_nonces;
	u32 proofs;				/* of these keys, that the peer has sent */
	u32 keys;				/* that were there since it was made */
};

/* fuzz_auth.c */
extern struct shift_link fuzz_link;
extern struct ib_device fuzz_device;
bool fuzz_refuses(void);
void fuzz_check_sent(struct fuzz_id *f);
void fuzz_check_item(const struct shift_link_item *item);

/* kernel.c */
extern long fuzz_memory;			/* pieces that are allocated */
extern u32 fuzz_first, fuzz_second;		/* the loaded keys; FUZZ_KEYS: none */
extern struct user_key_payload fuzz_key[FUZZ_KEYS];
void fuzz_hash(const struct user_key_payload *key, const void *data, u32 len, u8 *out);
void fuzz_kernel_reset(void);
void fuzz_locks_are_free(void);
bool fuzz_run_work(u32 which);			/* false: there is none */

/* device.c */
extern struct fuzz_id fuzz_ids[FUZZ_IDS];
extern struct rdma_cm_id fuzz_listener;		/* the module's, for IPv4 */
struct fuzz_id *fuzz_new_id(void);		/* NULL: there are too many */

/* stubs.c */
extern bool fuzz_known;				/* the peer is in the directory */

#endif /* AUTH_FUZZ_H */
