/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Posting by the real libmlx5: what golden_mlx5.c has for its callers. */
#ifndef GOLDEN_MLX5_H
#define GOLDEN_MLX5_H

#include "provider/mlx5/wqe.h"

#define QPN		0x012345
#define MAX_BLOCKS	1024
#define MAX_ASKED	1024
#define SLOT_SHIFT	6	/* receives: four entries */
#define SLOT_SGE	4
#define FILLER		0xee	/* what the ring holds before its first use */

/* how it is posted */
enum api { POST_SEND, WR, WR_LIST, BIND };

extern uint8_t ring[];
extern uint8_t text[];		/* letters, for inline data */

/* what was asked for since the ring was last empty, as the decoder should say it */
extern struct shift_wr asked[];
extern uint32_t num_asked;

void qp_init(uint32_t blocks, uint32_t first, bool sig_all);
void srq_init(uint32_t slots);
uint32_t sq_posted(void);
void sq_completed(void);

/* wr: as posted; the data of sge is read if it is inline */
void ask(const struct shift_wr *wr, enum api api);
void ask_batch(const struct shift_wr *wr, uint32_t n, bool abort);
void ask_recv(const struct shift_wr *wr, bool shared);

void print_all(void);
int random_all(unsigned long batches);
void random_completions(unsigned long n);
int provider_test(void) __attribute__((weak));
int cost(const char *what, unsigned long loops, bool clock);

/* random numbers, the same in each run */
uint64_t rnd(void);
uint32_t below(uint32_t n);

#endif /* GOLDEN_MLX5_H */
