/* SPDX-License-Identifier: GPL-2.0-only */
/* A program that connects to another node's kernel as a link does. */
#ifndef ABUSE_HELLO_H
#define ABUSE_HELLO_H

#include <rdma/rdma_cma.h>

/**
 * struct hello_who - who speaks to whom
 * @from: IPv4 address to connect from.
 * @to: IPv4 address of the other kernel.
 * @as: address that the HELLO names in place of @from; NULL: the same.
 * @boot_id: that the HELLO has, as shiftctl shows it.
 * @port: to connect from; 0: any that an ordinary user may have.
 */
struct hello_who {
	const char *from, *to, *as, *boot_id;
	int port;
};

struct rdma_cm_id *hello_open(const struct hello_who *who);
/* 0: the other kernel believes it; -1: it does not, and errno says how it ended */
int hello_connect(struct rdma_cm_id *id, const struct hello_who *who);
void hello_gid(const char *address, uint8_t gid[16]);
void hello_fail(const char *what) __attribute__((noreturn));

#endif /* ABUSE_HELLO_H */
