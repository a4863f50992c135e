/* SPDX-License-Identifier: GPL-2.0 */
/* What mlx5_assume's tests share. */
#ifndef MLX5_ASSUME_H
#define MLX5_ASSUME_H

#include "rig.h"

#define FLUSHED		MLX5_CQE_SYNDROME_WR_FLUSH_ERR
#define TRIES		20	/* to catch a device in the middle of its work */

void make(struct pair *pair, const struct setup *setup);
void settle(void);
uint32_t sum(const struct end *end);	/* of its memory, but the last 8 bytes */
const char *say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Each returns NULL, "SKIP " and why, or what is not as assumed.
 */
/* assume_stop.c */
const char *assume_err_sends(void);
const char *assume_err_flushes(void);
const char *assume_err_executes(void);
const char *assume_own_errors(void);
const char *assume_reset(void);
const char *assume_reset_doorbell(void);
const char *assume_memory(void);
const char *assume_again(void);
/* assume_work.c */
const char *assume_psns(void);
const char *assume_nop(void);
const char *assume_umr(void);
const char *assume_counters(void);
const char *assume_lengths(void);
const char *assume_data(void);
const char *assume_masked(void);
const char *assume_producer(void);
/* assume_kernel.c */
const char *assume_kernel_qp(struct port *port);

#endif /* MLX5_ASSUME_H */
