// SPDX-License-Identifier: GPL-2.0
/*
 * Two queue pairs of one device, connected to each other by the device's own address.  They send
 * from and to memory of the rig's, by the PD's local key: no other key exists, so that nobody else
 * reaches memory by these QPs.  Both may be on an SRQ of the rig's.
 */
#include <linux/crc32.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include "core/ib.h"
#include "core/node.h"
#include "provider/mlx5/rig.h"
#include "pure/psn.h"

#define ACK_TIMEOUT	14		/* 67 ms, on machines that are not slow */
#define ACK_SLOWEST	18
#define RNR_TIMER	14		/* 1.28 ms */
#define RNR_FOR_EVER	7
#define SGES		4
#define RECV		BIT(8)		/* in a wr_id: a receive */
#define TEXT		(SHIFT_RIG_DATA + SHIFT_RIG_DEPTH)

static int end_init(struct shift_rig *rig, struct shift_rig_end *end)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.srq = rig->srq,
		.cap = {
			.max_send_wr = SHIFT_RIG_DEPTH,
			.max_recv_wr = rig->srq ? 0 : SHIFT_RIG_DEPTH,
			.max_send_sge = SGES,
			.max_recv_sge = rig->srq ? 0 : 1,
		},
	};
	struct ib_qp *qp;
	struct ib_cq *cq;

	end->data = kzalloc(SHIFT_RIG_DATA, GFP_KERNEL);
	if (!end->data)
		return -ENOMEM;
	end->dma = ib_dma_map_single(rig->ibdev, end->data, SHIFT_RIG_DATA, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(rig->ibdev, end->dma)) {
		end->dma = 0;
		return -ENOMEM;
	}
	cq = ib_alloc_cq_any(rig->ibdev, rig, 2 * SHIFT_RIG_DEPTH, IB_POLL_DIRECT);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	end->cq = cq;
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ib_create_qp(rig->pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	end->qp = qp;
	return 0;
}

static void end_free(struct shift_rig *rig, struct shift_rig_end *end)
{
	if (end->ops)
		return;
	if (end->qp) {
		shift_qp_quiet(end->qp);
		ib_destroy_qp(end->qp);
	}
	if (end->cq)
		ib_free_cq(end->cq);
	if (end->dma)
		ib_dma_unmap_single(rig->ibdev, end->dma, SHIFT_RIG_DATA, DMA_FROM_DEVICE);
	kfree(end->data);
}

void shift_rig_free(struct shift_rig *rig)
{
	end_free(rig, &rig->end[0]);
	end_free(rig, &rig->end[1]);
	if (!IS_ERR_OR_NULL(rig->srq))
		ib_destroy_srq(rig->srq);
	if (rig->dma)
		ib_dma_unmap_single(rig->ibdev, rig->dma, TEXT, DMA_TO_DEVICE);
	if (!IS_ERR_OR_NULL(rig->pd))
		ib_dealloc_pd(rig->pd);
	kfree(rig->text);
	kfree(rig);
}

/* Its ring, which the driver makes larger by one, is full then. */
static int srq_init(struct shift_rig *rig)
{
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = SHIFT_RIG_SRQ, .max_sge = 1 },
	};

	rig->srq = ib_create_srq(rig->pd, &init);
	return PTR_ERR_OR_ZERO(rig->srq);
}

static int rig_init(struct shift_rig *rig, int ends, bool with_srq)
{
	int i, err = 0;

	rig->text = kmalloc(TEXT, GFP_KERNEL);
	if (!rig->text)
		return -ENOMEM;
	get_random_bytes(rig->text, TEXT);
	rig->pd = ib_alloc_pd(rig->ibdev, 0);
	if (IS_ERR(rig->pd))
		return PTR_ERR(rig->pd);
	rig->dma = ib_dma_map_single(rig->ibdev, rig->text, TEXT, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(rig->ibdev, rig->dma)) {
		rig->dma = 0;
		return -ENOMEM;
	}
	if (with_srq)
		err = srq_init(rig);
	for (i = 0; i < ends && !err; i++)
		err = end_init(rig, &rig->end[i]);
	return err;
}

static struct shift_rig *rig_new(struct ib_device *ibdev, int ends, bool with_srq)
{
	struct shift_rig *rig = kzalloc(sizeof(*rig), GFP_KERNEL);
	int err;

	if (!rig)
		return ERR_PTR(-ENOMEM);
	rig->ibdev = ibdev;
	rig->rnr_retry = RNR_FOR_EVER;
	err = rig_init(rig, ends, with_srq);
	if (!err)
		return rig;
	shift_rig_free(rig);
	return ERR_PTR(err);
}

/**
 * shift_rig_new - make two QPs of a device, in RESET
 * @ibdev: the device; it stays until shift_rig_free().
 *
 * Context: process context; sleeps on the device.
 * Return: them, or an ERR_PTR.
 */
struct shift_rig *shift_rig_new(struct ib_device *ibdev)
{
	return rig_new(ibdev, 2, false);
}

/**
 * shift_rig_new_srq - make two QPs of a device on an SRQ, in RESET
 * @ibdev: the device; it stays until shift_rig_free().
 *
 * A send that finds no receive ends in an error at once.
 *
 * Context: process context; sleeps on the device.
 * Return: them, or an ERR_PTR.
 */
struct shift_rig *shift_rig_new_srq(struct ib_device *ibdev)
{
	struct shift_rig *rig = rig_new(ibdev, 2, true);

	if (!IS_ERR(rig))
		rig->rnr_retry = 0;
	return rig;
}

/**
 * shift_rig_borrow - make one QP; the second end is an application's
 * @qp: that of the application, in RESET; it stays until shift_rig_free(), which leaves it alone.
 * @ops: of its driver.
 *
 * The first end finds no receive only once: then it is in ERR.  The second one posts nothing.
 *
 * Context: process context; sleeps on the device.
 * Return: them, or an ERR_PTR.
 */
struct shift_rig *shift_rig_borrow(struct ib_qp *qp, const struct ib_device_ops *ops)
{
	struct shift_rig *rig = rig_new(qp->device, 1, false);

	if (IS_ERR(rig))
		return rig;
	rig->rnr_retry = 0;
	rig->end[1].qp = qp;
	rig->end[1].ops = ops;
	return rig;
}

static int end_modify(struct shift_rig_end *end, struct ib_qp_attr *attr, int mask)
{
	return end->ops ? end->ops->modify_qp(end->qp, attr, mask, NULL) :
			  ib_modify_qp(end->qp, attr, mask);
}

static int end_to_init(struct shift_rig_end *end)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };

	return end_modify(end, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			  IB_QP_ACCESS_FLAGS);
}

static int end_to_rtr(struct shift_rig *rig, struct shift_rig_end *end,
		      const struct shift_rig_end *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_256,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = peer->psn,
		.min_rnr_timer = RNR_TIMER,
	};
	const struct ib_gid_attr *gid;
	union ib_gid own;
	int err;

	err = shift_dev_gid(rig->ibdev, SHIFT_VLAN_ANY, &own);
	if (err)
		return err;
	gid = shift_gid_find(rig->ibdev, &own, SHIFT_VLAN_ANY);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	attr.ah_attr.type = rdma_ah_find_type(rig->ibdev, 1);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_move_grh_sgid_attr(&attr.ah_attr, &own, 0, 64, 0, gid);
	if (attr.ah_attr.type == RDMA_AH_ATTR_TYPE_ROCE)
		rdma_read_gid_l2_fields(gid, NULL, attr.ah_attr.roce.dmac);
	err = end_modify(end, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			 IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			 IB_QP_MIN_RNR_TIMER);
	rdma_destroy_ah_attr(&attr.ah_attr);
	return err;
}

static int end_to_rts(const struct shift_rig *rig, struct shift_rig_end *end)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = min_t(u8, ACK_TIMEOUT + order_base_2(shift_scale(1)), ACK_SLOWEST),
		.retry_cnt = 1,
		.rnr_retry = rig->rnr_retry,
		.sq_psn = end->psn,
	};

	return end_modify(end, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			  IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/* What is noted of an end begins anew: all that it has posted has ended. */
void shift_rig_part(struct shift_rig *rig, int at)
{
	struct shift_rig_end *end = &rig->end[at];

	end->silent = 0;
	end->nsend = 0;
	end->nrecv = 0;
	end->rnr = false;
	memset(&end->sends, 0, sizeof(end->sends));
	memset(&end->recvs, 0, sizeof(end->recvs));
}

/**
 * shift_rig_connect - bring both QPs from RESET to RTS, with PSNs that nobody foresees
 * @rig: the QPs; what is noted of them begins anew.
 *
 * Context: process context.
 * Return: 0, -ENOENT (the device has no address), or what a verb says.
 */
int shift_rig_connect(struct shift_rig *rig)
{
	struct shift_rig_end *end;
	int i, err;

	for (i = 0; i < 2; i++) {
		end = &rig->end[i];
		end->psn = get_random_u32() & SHIFT_PSN_MASK;
		shift_rig_part(rig, i);
		err = end_to_init(end);
		if (err)
			return err;
	}
	for (i = 0; i < 2; i++) {
		err = end_to_rtr(rig, &rig->end[i], &rig->end[!i]);
		if (err)
			return err;
	}
	err = end_to_rts(rig, &rig->end[0]);
	return err ?: end_to_rts(rig, &rig->end[1]);
}

/**
 * shift_rig_send - post a SEND
 * @rig: the QPs.
 * @from: the end that posts it, which has posted fewer than SHIFT_RIG_DEPTH in this part.
 * @len: bytes, at least @num_sge, at most SHIFT_RIG_DATA.
 * @num_sge: pieces, at most 4; 0: no bytes; with 3 of them a request takes two blocks of its ring.
 * @signaled: it has a completion if it succeeds.
 *
 * Context: process context.
 * Return: 0 or what ib_post_send() says.
 */
int shift_rig_send(struct shift_rig *rig, int from, u32 len, u32 num_sge, bool signaled)
{
	struct shift_rig_end *end = &rig->end[from];
	struct ib_sge sge[SGES];
	struct ib_send_wr wr = {
		.wr_id = end->nsend,
		.opcode = IB_WR_SEND,
		.send_flags = signaled ? IB_SEND_SIGNALED : 0,
		.sg_list = sge,
		.num_sge = num_sge,
	};
	u64 addr = rig->dma + end->nsend;
	u32 i;

	for (i = 0; i < num_sge; i++) {
		sge[i].addr = addr + i;
		sge[i].length = i == num_sge - 1 ? len - i : 1;
		sge[i].lkey = rig->pd->local_dma_lkey;
	}
	if (!signaled)
		end->silent |= 1u << end->nsend;
	end->len[end->nsend++] = len;
	return ib_post_send(end->qp, &wr, NULL);
}

/*
 * Post receives at an end, at most SHIFT_RIG_DEPTH in a part: each with a place of its own, or
 * @large, all with the same memory.  If there is an SRQ they are posted there, with the memory of
 * that end, and their numbers go on from part to part.
 */
int shift_rig_recv(struct shift_rig *rig, int at, u32 num, bool large)
{
	struct shift_rig_end *end = &rig->end[at];
	struct ib_sge sge = {
		.length = large ? SHIFT_RIG_DATA : SHIFT_RIG_PLACE,
		.lkey = rig->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	u32 *posted = rig->srq ? &rig->nsrq : &end->nrecv;
	int err = 0;

	for (; num && !err; num--) {
		sge.addr = end->dma;
		if (!large)
			sge.addr += *posted % SHIFT_RIG_DEPTH * SHIFT_RIG_PLACE;
		wr.wr_id = (*posted)++ | RECV;
		err = rig->srq ? ib_post_srq_recv(rig->srq, &wr, NULL) :
				 ib_post_recv(end->qp, &wr, NULL);
	}
	return err;
}

static void end_note(struct shift_rig_end *end, const struct ib_wc *wc)
{
	struct shift_trial_log *log = wc->wr_id & RECV ? &end->recvs : &end->sends;

	end->rnr |= wc->status == IB_WC_RNR_RETRY_EXC_ERR;
	if (log->n++ < SHIFT_TRIAL_MOST)
		log->seen[log->n - 1] = (struct shift_trial_seen) {
			.id = wc->wr_id & ~(u64)RECV,
			.status = wc->status == IB_WC_SUCCESS ? SHIFT_TRIAL_OK :
				  wc->status == IB_WC_WR_FLUSH_ERR ? SHIFT_TRIAL_FLUSHED :
				  SHIFT_TRIAL_ERROR,
			.len = wc->byte_len,
		};
}

/* Note all completions that are there; their number. */
static u32 end_poll(struct shift_rig_end *end)
{
	struct ib_wc wc;
	u32 n = 0;

	/* more than both queues can have is noted by its number */
	while (n < 4 * SHIFT_TRIAL_MOST && ib_poll_cq(end->cq, 1, &wc) == 1) {
		end_note(end, &wc);
		n++;
	}
	return n;
}

/**
 * shift_rig_wait - wait for completions of an end
 * @rig: the QPs.
 * @at: the end.
 * @sends: how many there are to be in this part.
 * @recvs: the same of receives.
 * @ms: how long (scaled).
 *
 * Context: process context.
 * Return: false if that time is over.
 */
bool shift_rig_wait(struct shift_rig *rig, int at, u32 sends, u32 recvs, unsigned int ms)
{
	struct shift_rig_end *end = &rig->end[at];
	u64 until = shift_from_now(ms);
	bool late;

	do {
		late = ktime_get_ns() > until;
		end_poll(end);
		if (end->sends.n >= sends && end->recvs.n >= recvs)
			return true;
		usleep_range(50, 200);
	} while (!late);
	return false;
}

/* Packets that an end has executed in this part, by the PSN that it expects next. */
int shift_rig_executed(struct shift_rig *rig, int at, u32 *packets)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	int err = ib_query_qp(rig->end[at].qp, &attr, IB_QP_RQ_PSN, &init);

	*packets = err ? 0 : (attr.rq_psn - rig->end[!at].psn) & SHIFT_PSN_MASK;
	return err;
}

/* Does the device say that an end is in ERR? */
bool shift_rig_is_broken(struct shift_rig *rig, int at)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	return !ib_query_qp(rig->end[at].qp, &attr, IB_QP_STATE, &init) &&
	       attr.qp_state == IB_QPS_ERR;
}

/* Bring an end to ERR. */
int shift_rig_stop(struct shift_rig *rig, int at)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	return ib_modify_qp(rig->end[at].qp, &attr, IB_QP_STATE);
}

/**
 * shift_rig_reset - bring both QPs to RESET, by way of ERR
 * @rig: the QPs.
 *
 * Context: process context.
 * Return: how many completions there were after that.
 */
u32 shift_rig_reset(struct shift_rig *rig)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	u32 late = 0;
	int i;

	for (i = 0; i < 2; i++)
		shift_qp_stop(rig->end[i].qp);
	for (i = 0; i < 2; i++) {
		end_poll(&rig->end[i]);
		ib_modify_qp(rig->end[i].qp, &attr, IB_QP_STATE);
	}
	for (i = 0; i < 2; i++)
		late += end_poll(&rig->end[i]);
	return late;
}

/* Is what was sent in the first @num receives of an end? */
bool shift_rig_text_is_there(struct shift_rig *rig, int at, u32 num)
{
	struct shift_rig_end *end = &rig->end[at];
	const struct shift_rig_end *peer = &rig->end[!at];
	u32 i;

	ib_dma_sync_single_for_cpu(rig->ibdev, end->dma, SHIFT_RIG_DATA, DMA_FROM_DEVICE);
	for (i = 0; i < num; i++)
		if (memcmp(end->data + i * SHIFT_RIG_PLACE, rig->text + i, peer->len[i]))
			return false;
	return true;
}

/* A checksum of an end's memory. */
u32 shift_rig_memory(struct shift_rig *rig, int at)
{
	struct shift_rig_end *end = &rig->end[at];

	ib_dma_sync_single_for_cpu(rig->ibdev, end->dma, SHIFT_RIG_DATA, DMA_FROM_DEVICE);
	return crc32_le(0, end->data, SHIFT_RIG_DATA);
}
