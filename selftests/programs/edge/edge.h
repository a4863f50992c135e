/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EDGE_H
#define EDGE_H

#include <stdint.h>
#include <infiniband/verbs.h>

/* What an end tells the other of itself. */
struct end {
	uint32_t qpn, rkey;
	uint64_t addr;
	union ibv_gid gid;
};

void die(const char *what);		/* with errno; exits with 2 */
void say(const char *text);		/* a line, at once */
struct ibv_context *open_device(const char *name);
int meet(const char *server, int port);	/* a TCP connection; no server: be one */
void exchange(int fd, const void *mine, void *theirs, size_t len);
int find_gid(struct ibv_context *context, union ibv_gid *gid);
void connect_rtr(struct ibv_qp *qp, int gid_index, const struct end *peer);
void connect_rts(struct ibv_qp *qp, int timeout);
void connect_qp(struct ibv_qp *qp, int gid_index, const struct end *peer);
int poll_cq(struct ibv_cq *cq, struct ibv_wc *wc);	/* sleeps a moment if there is none */

#endif /* EDGE_H */
