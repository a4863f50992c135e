/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the user in the kernel share: kernel_user.c. */
#ifndef KERNEL_USER_H
#define KERNEL_USER_H

#include <linux/completion.h>
#include <rdma/ib_verbs.h>
#include <uapi/linux/shift.h>

#define DEPTH		16
#define CHAIN		4	/* requests that are posted together, the last of them signaled */
#define LENGTH		64
#define MAX_SGE		2
#define WAIT		(30 * HZ)

/* One request that completes: what came of it. */
struct token {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

struct kernel_user {
	struct ib_device *ibdev;
	enum ib_poll_context ctx;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp[2];
	struct ib_mr *mr;
	u8 *memory;
	u64 dma;
	struct token send, recv[CHAIN];
};

void token_begin(struct token *token);
int token_wait(struct kernel_user *u, struct token *token);
int kernel_user_connect(struct ib_device *ibdev, struct ib_qp *qp, u32 peer, u32 rq_psn,
			u32 sq_psn);

/* kernel_push.c; 0 or a negative errno */
int kernel_push_init(void);
int kernel_push_some(struct kernel_user *u, unsigned int round);
int kernel_push_drain(struct kernel_user *u);
int kernel_push_destroy(struct kernel_user *u);
int kernel_push_handler(struct kernel_user *u);
int kernel_push_path(struct ib_qp *qp, bool backup);
int kernel_push_reason(struct ib_qp *qp, enum shift_reason reason);

int kernel_cost(struct kernel_user *u, unsigned int count);
int kernel_full(struct ib_device *ibdev);
int kernel_mistake(struct ib_device *ibdev, unsigned int which);

#endif /* KERNEL_USER_H */
