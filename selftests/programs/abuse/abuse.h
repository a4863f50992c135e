/* SPDX-License-Identifier: GPL-2.0 */
/*
 * abi_abuse: everything a hostile process may say to /dev/shift.
 *
 * What must be refused and is not is a failure here; what the kernel makes of it
 * is seen in its log.
 */
#ifndef ABUSE_H
#define ABUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include <rdma/shift-abi.h>

/* One process' verbs objects and what would be a valid registration of them. */
struct victim {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct shift_abi_ring cq_ring, srq_ring, sq, rq;
	uint32_t *words;	/* a page: flag words and locks */
};

extern int failures;

void victim_open(struct victim *v, const char *device);
void victim_close(struct victim *v);
struct shift_abi_reg_cq valid_cq(const struct victim *v);
struct shift_abi_reg_qp valid_qp(const struct victim *v);
struct shift_abi_reg_srq valid_srq(const struct victim *v);

int open_shift(void);
/* ioctl that must fail; any errno will do if @want is 0 */
void refused(int fd, unsigned long cmd, void *arg, int want, const char *what);
void allowed(int fd, unsigned long cmd, void *arg, const char *what);
void report(bool good, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void abuse_fuzz(const struct victim *v, unsigned int rounds, unsigned int seed);
void abuse_race(const struct victim *v);

#endif
