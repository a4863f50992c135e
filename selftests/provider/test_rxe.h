/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* An application of an rxe device, whose QP is connected to itself: test_rxe_*.c. */
#ifndef TEST_RXE_H
#define TEST_RXE_H

#include <stdio.h>
#include <infiniband/verbs.h>
#include "fake_kernel.h"

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# %s:%d: %s\n", __func__, __LINE__, #cond);	\
		test_failures++;					\
	}								\
} while (0)

extern int test_failures;

/* The application: what it has made on the device that is open. */
extern struct ibv_pd *pd;
extern struct ibv_mr *mr;		/* of buf */
extern struct ibv_cq *cq;
extern struct ibv_qp *qp;
extern struct ibv_srq *srq;		/* of the QP that setup() makes; NULL: it has none */
extern char buf[4096];

void open_device(struct ibv_device *dev);
void close_device(void);

/* the CQ, for ibv_start_poll() or not, and the connected QP */
void setup(int ext);
void teardown(void);

/* Let the device put its completions into the CQ ring. */
void settle(void);

/* a test of shared receive queues, in a file of its own */
void test_srq(struct ibv_device *dev);

#endif /* TEST_RXE_H */
