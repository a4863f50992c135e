/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two queue pairs of one device that are connected to each other, for a trial of the device, or for
 * messages to an application's QP.
 */
#ifndef SHIFT_PROVIDER_MLX5_RIG_H
#define SHIFT_PROVIDER_MLX5_RIG_H

#include <rdma/ib_verbs.h>
#include "provider/mlx5/judge.h"

#define SHIFT_RIG_DEPTH	16		/* sends and receives of an end, at most */
#define SHIFT_RIG_SRQ	15		/* receives of the SRQ: a power of 2, less 1 */
#define SHIFT_RIG_PLACE	2048		/* bytes of a place for a receive */
#define SHIFT_RIG_DATA	(SHIFT_RIG_DEPTH * SHIFT_RIG_PLACE)
#define SHIFT_RIG_MTU	256		/* so that a message has several packets */

/**
 * struct shift_rig_end - one of the two QPs
 * @qp, @cq: of both queues.
 * @ops: of the driver, for an application's QP, which is not the rig's; else NULL.
 * @psn: of its first packet in this part.
 * @data: its receives: SHIFT_RIG_DATA bytes.
 * @dma: their address.
 * @len: lengths of the sends that were posted in this part.
 * @silent: bits of those that are unsignaled.
 * @nsend, @nrecv: number of requests that were posted in this part.
 * @sends, @recvs: completions in this part.
 * @rnr: a send of this part has ended because there was no receive.
 */
struct shift_rig_end {
	struct ib_qp *qp;
	struct ib_cq *cq;
	const struct ib_device_ops *ops;
	u32 psn;
	u8 *data;
	u64 dma;
	u32 len[SHIFT_RIG_DEPTH];
	u32 silent;
	u32 nsend, nrecv;
	struct shift_trial_log sends, recvs;
	bool rnr;
};

/**
 * struct shift_rig - two QPs of a device, and what they send
 * @text: what is sent: message n begins at byte n.
 * @dma: its address.
 * @rnr_retry: of both QPs.
 * @srq: of both QPs; NULL: each has a receive queue.
 * @nsrq: number of receives that were posted there.
 */
struct shift_rig {
	struct ib_device *ibdev;
	struct ib_pd *pd;
	u8 *text;
	u64 dma;
	u8 rnr_retry;
	struct ib_srq *srq;
	u32 nsrq;
	struct shift_rig_end end[2];
};

/* All in process context; they sleep. */
struct shift_rig *shift_rig_new(struct ib_device *ibdev);
struct shift_rig *shift_rig_new_srq(struct ib_device *ibdev);
struct shift_rig *shift_rig_borrow(struct ib_qp *qp, const struct ib_device_ops *ops);
void shift_rig_free(struct shift_rig *rig);
int shift_rig_connect(struct shift_rig *rig);
void shift_rig_part(struct shift_rig *rig, int at);
int shift_rig_send(struct shift_rig *rig, int from, u32 len, u32 num_sge, bool signaled);
int shift_rig_recv(struct shift_rig *rig, int at, u32 num, bool large);
bool shift_rig_wait(struct shift_rig *rig, int at, u32 sends, u32 recvs, unsigned int ms);
int shift_rig_executed(struct shift_rig *rig, int at, u32 *packets);
bool shift_rig_is_broken(struct shift_rig *rig, int at);
int shift_rig_stop(struct shift_rig *rig, int at);
u32 shift_rig_reset(struct shift_rig *rig);
bool shift_rig_text_is_there(struct shift_rig *rig, int at, u32 num);
u32 shift_rig_memory(struct shift_rig *rig, int at);

#endif /* SHIFT_PROVIDER_MLX5_RIG_H */
