/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What every provider has of rdma/shift-abi.h: /dev/shift, the objects registered
 * there, and the ioctls of the paths that are not fast.
 *
 * Whatever fails here leaves the object as stock: the module is never the reason
 * of an error that the application sees.
 */
#ifndef SHIFT_H
#define SHIFT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <util/compiler.h>
#include "shift_side.h"
#include "shift_srq.h"

/* The oldest version of the ABI that providers know */
#ifndef SHIFT_ABI_OLDEST
#define SHIFT_ABI_OLDEST	7
#endif

#define __shift_cold __attribute__((cold, noinline))

struct shift_context {
	pthread_mutex_t		lock;
	bool			tried;
	int			fd;		/* -1: off */
	uint32_t		version;	/* of the ABI, that the module knows, too */
};

/* The flag words, which the fast paths look at, are where the provider wants them */
struct shift_object {
	bool			registered;
	uint32_t		id;
};

struct shift_cq {
	struct shift_object	obj;
	struct shift_side	side;
	size_t			side_len;
};

struct shift_srq {
	struct shift_object	obj;
	struct shift_srq_table	table;
	size_t			table_len;
};

void shift_init(struct shift_context *ctx);
void shift_uninit(struct shift_context *ctx);

/* @cmd: all of it but abi_version; what it calls flag_addr is a word that stays */
void shift_register_cq(struct shift_context *ctx, struct shift_cq *cq,
		       struct shift_abi_reg_cq *cmd);
void shift_register_qp(struct shift_context *ctx, struct shift_object *qp,
		       struct shift_abi_reg_qp *cmd);
void shift_register_srq(struct shift_context *ctx, struct shift_srq *srq,
			struct shift_abi_reg_srq *cmd, uint32_t max_sge);
void shift_unregister(struct shift_context *ctx, struct shift_object *obj,
		      enum shift_abi_type type);
/* of what is not registered any more */
void shift_free_cq(struct shift_cq *cq);
void shift_free_srq(struct shift_srq *srq);

__shift_cold bool shift_wait(struct shift_context *ctx, const struct shift_object *qp);
__shift_cold bool shift_kick(struct shift_context *ctx, const struct shift_object *obj,
			     enum shift_abi_type type);
__shift_cold bool shift_rebase(struct shift_context *ctx, const struct shift_object *qp,
			       enum shift_abi_step step, struct shift_abi_rebase *base);
/* see SHIFT_IOC_EMPTY; 0, or an errno */
__shift_cold int shift_empty(struct shift_context *ctx, const struct shift_object *qp,
			     struct shift_abi_empty *cmd);
__shift_cold bool shift_swallow(struct shift_context *ctx, const struct shift_cq *cq,
				uint32_t qp_num, uint32_t status);

/*
 * Are flags set in a word that the kernel writes? Must hold the object's lock, and a
 * doorbell record be written: for that the kernel sets the flag, runs a barrier
 * on each CPU, and looks at the record.
 *
 * Not an atomic load, of which compilers do not make one instruction with the test.
 */
static inline bool shift_flagged(const uint32_t *word, uint32_t flags)
{
	atomic_signal_fence(memory_order_seq_cst);
	return unlikely(*word & flags);
}

#endif /* SHIFT_H */
