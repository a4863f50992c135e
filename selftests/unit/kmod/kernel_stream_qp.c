// SPDX-License-Identifier: GPL-2.0
/* A QP of a stream, with its memory and MRs. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/slab.h>
#include "kernel_conn.h"
#include "kernel_stream.h"

#define PSN		0xfffe00	/* the number space is left and begins anew */
#define TIMEOUT		21		/* 9 s: nodes are slow, and rxe's retries end QPs */
#define OPENS_MS	30000

/* Pages for what lies between the first slot and the end of the counter. */
#define SLOT_PAGES	DIV_ROUND_UP(SLOTS * LONG + sizeof(u64), PAGE_SIZE)

static int qp_mrs(struct stream_qp *q)
{
	struct ib_pd *pd = q->stream->pd;
	struct ib_mr *mr;
	unsigned int i;

	if (q->stream->options.global_key)
		return 0;
	mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, SLOT_PAGES);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	q->slots = mr;
	for (i = 0; i < ROUNDS; i++) {
		mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1);
		if (IS_ERR(mr))
			return PTR_ERR(mr);
		q->mr[i].mr = mr;
	}
	return 0;
}

static int qp_make(struct stream_qp *q)
{
	struct stream *s = q->stream;
	unsigned int first = s->options.one_cq ? 0 : 2 * q->index;
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.send_cq = s->cq[first], .recv_cq = s->cq[s->options.one_cq ? 0 : first + 1],
		.cap = {
			.max_send_wr = SENDS, .max_recv_wr = RECVS + 1, .max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_qp *qp;

	q->memory = alloc_pages_exact(sizeof(*q->memory), GFP_KERNEL | __GFP_ZERO);
	if (!q->memory)
		return -ENOMEM;
	q->dma = ib_dma_map_single(s->ibdev, q->memory, sizeof(*q->memory), DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(s->ibdev, q->dma)) {
		q->dma = 0;
		return -EIO;
	}
	qp = ib_create_qp(s->pd, &attr);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	q->qp = qp;
	return qp_mrs(q);
}

/**
 * stream_qp_new - a QP that is not connected
 * @s: its stream, which has a PD and CQs
 * @index: the number of the QP
 *
 * Return: the QP, or an ERR_PTR.
 */
struct stream_qp *stream_qp_new(struct stream *s, unsigned int index)
{
	struct stream_qp *q = kvzalloc(sizeof(*q), GFP_KERNEL);
	int err;

	if (!q)
		return ERR_PTR(-ENOMEM);
	q->stream = s;
	q->index = index;
	spin_lock_init(&q->lock);
	err = qp_make(q);
	if (err) {
		stream_qp_free(q);
		return ERR_PTR(err);
	}
	return q;
}

/* Who polls directly has nobody do so any more. */
void stream_qp_free(struct stream_qp *q)
{
	unsigned int i;

	if (q->qp) {
		if (q->connected)
			ib_drain_qp(q->qp);
		ib_destroy_qp(q->qp);
	}
	for (i = 0; i < ROUNDS; i++)
		if (q->mr[i].mr)
			ib_dereg_mr(q->mr[i].mr);
	if (q->slots)
		ib_dereg_mr(q->slots);
	if (q->dma)
		ib_dma_unmap_single(q->stream->ibdev, q->dma, sizeof(*q->memory),
				    DMA_BIDIRECTIONAL);
	if (q->memory)
		free_pages_exact(q->memory, sizeof(*q->memory));
	kvfree(q);
}

static u32 slots_key(struct stream_qp *q)
{
	return q->slots ? q->slots->rkey : q->stream->pd->unsafe_global_rkey;
}

/* A line for the peer, which it connects by. */
int stream_qp_describe(struct stream_qp *q, char *text, int size)
{
	return scnprintf(text, size, "%u %u %#x %#llx\n", q->index, q->qp->qp_num, slots_key(q),
			 stream_dma(q, q->memory->slot));
}

/* Is nothing under way? */
bool stream_qp_idle(struct stream_qp *q)
{
	bool idle;

	spin_lock_bh(&q->lock);
	idle = q->posted == q->done && q->rounds == q->answered && q->rounds == q->ended;
	spin_unlock_bh(&q->lock);
	return idle;
}

/* The receiver's memory is registered before the sender begins. */
static int qp_opens(struct stream_qp *q)
{
	unsigned long end = jiffies + msecs_to_jiffies(OPENS_MS);

	stream_receiver_opens(q);
	while (!stream_qp_idle(q)) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		msleep(20);
	}
	return 0;
}

/**
 * stream_qp_connect - connect a QP
 * @q: the QP
 * @text: what the peer says of its own (stream_qp_describe(), but for the number), its MAC and GID
 *
 * Context: process context; sleeps.
 * Return: 0 or a negative errno.
 */
int stream_qp_connect(struct stream_qp *q, const char *text)
{
	struct stream *s = q->stream;
	struct kernel_conn conn = {
		.sq_psn = PSN, .rq_psn = PSN, .mtu = IB_MTU_1024, .timeout = TIMEOUT,
		.atomics = s->options.atomics ? STREAM_ATOMICS : 0,
	};
	char mac[2 * ETH_ALEN + 1], gid[2 * sizeof(conn.gid) + 1];
	unsigned int i;
	int err;

	if (q->connected)
		return -EISCONN;
	if (sscanf(text, "%u %x %llx %12s %32s", &conn.qpn, &q->key, &q->addr, mac, gid) != 5 ||
	    hex2bin(conn.mac, mac, ETH_ALEN) || hex2bin(conn.gid.raw, gid, sizeof(conn.gid)))
		return -EINVAL;
	err = kernel_conn_make(q->qp, s->gid_index, &conn);
	if (err)
		return err;
	q->connected = true;
	spin_lock_bh(&q->lock);
	for (i = 0; i < RECVS; i++)
		stream_post_recv(q);
	spin_unlock_bh(&q->lock);
	return s->sends || s->options.global_key ? 0 : qp_opens(q);
}
