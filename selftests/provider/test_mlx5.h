/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A QP and a CQ of the patched libmlx5 in plain memory: test_mlx5_*.c. */
#ifndef TEST_MLX5_H
#define TEST_MLX5_H

#include <stdio.h>
#include <string.h>

#include "../../rdma-core/golden_mlx5_lib.h"
#include "fake_kernel.h"

#define CQES	16
#define BLOCKS	64
#define UIDX	0x345
#define MTU	1024

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# %s:%d: v%d, %d: %s\n", __func__, __LINE__,	\
		       v1, test_cq.cqe_sz, #cond);			\
		test_failures++;					\
	}								\
} while (0)

extern int v1;				/* version of the CQEs */
extern int test_failures;
extern struct mlx5_cq test_cq;
extern uint8_t cqes[CQES * 128];
extern __be32 cq_db[2];
extern uint32_t produced;		/* CQEs by the device */

/* libmlx5's own */
extern void (*register_cq)(struct mlx5_cq *);
extern void (*unregister_cq)(struct mlx5_cq *);
extern void (*register_qp)(struct mlx5_qp *);
extern void (*clean_cq)(struct mlx5_cq *, uint32_t, struct mlx5_srq *);

/* the objects as the verbs would have made them, and registered */
void setup(int cqe_sz);
void teardown(void);

void post_n(uint64_t wr_id, int n, uint32_t len, unsigned int flags);
void post(uint64_t wr_id);
void post_recv(uint64_t wr_id);

/* Has a doorbell been rung, or a WQE been copied to the device? */
int rung(void);
uint32_t record(int which);

/* CQEs by the device */
void device_put(const struct shift_abi_wc *wc, uint8_t opcode, uint8_t syndrome);
void device_send_done(uint16_t index);
void device_send_error(uint16_t index, uint8_t syndrome);
struct mlx5_cqe64 *last_cqe(void);

/* one of the QP's in the side ring, and the flag that tells of it */
void side_put(uint16_t index, uint32_t opcode, uint32_t status, uint32_t len);

int poll_wc(struct ibv_wc *wc, int n);
struct ibv_cq_ex *ex(void);
int start_poll(void);

void test_swallow(void);
void test_swallow_lazy(void);
void test_accessors(void);
void test_order(void);
void test_unsignaled(void);
void test_clean(void);
void test_clock(void);
void test_data(void);
void test_data_read(void);
void test_export_qp(void);
void test_export_cq(void);
void test_cancel(void);
void test_rebase_kick(void);
void test_rebase_poll(void);
void test_srq_home(void);
void test_srq_order(void);
void test_srq_errors(void);
void test_srq_away(void);
void test_srq_export(void);
void test_srq_empty(void);

#endif /* TEST_MLX5_H */
