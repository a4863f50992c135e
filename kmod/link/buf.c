// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers of a connection: their memory, what maps them for its device, and posting them.
 * Documentation/internals/links.md.
 */
#include <linux/slab.h>
#include "link/link_priv.h"

/**
 * shift_buf_alloc - memory for the buffers of a connection
 * @c: connection, zeroed.
 * @recv_done: is called as a receive completes.
 * @send_done: the same of a send.
 *
 * Context: process, may sleep.
 * Return: 0, -ENOMEM; then, too, shift_buf_free() has to be called.
 */
int shift_buf_alloc(struct shift_conn *c, shift_wc_fn *recv_done, shift_wc_fn *send_done)
{
	unsigned int i;

	c->rx_data = kcalloc(SHIFT_LINK_BUFS, SHIFT_LINK_BUF_SIZE, GFP_KERNEL);
	c->tx_data = kcalloc(SHIFT_LINK_BUFS, SHIFT_LINK_BUF_SIZE, GFP_KERNEL);
	if (!c->rx_data || !c->tx_data)
		return -ENOMEM;

	INIT_LIST_HEAD(&c->free);
	for (i = 0; i < SHIFT_LINK_BUFS; i++) {
		c->rx[i].cqe.done = recv_done;
		c->rx[i].data = c->rx_data + i * SHIFT_LINK_BUF_SIZE;
		c->rx[i].item.type = SHIFT_LINK_ITEM_MSG;
		c->rx[i].item.conn = c;
		c->tx[i].cqe.done = send_done;
		c->tx[i].data = c->tx_data + i * SHIFT_LINK_BUF_SIZE;
		c->tx[i].item.conn = c;
		list_add_tail(&c->tx[i].item.entry, &c->free);
	}
	return 0;
}

/**
 * shift_buf_free - free what shift_buf_alloc() has made
 * @c: connection; not mapped.
 *
 * Context: any.
 */
void shift_buf_free(struct shift_conn *c)
{
	kfree(c->rx_data);
	kfree(c->tx_data);
}

/**
 * shift_buf_map - map the buffers for the device of the connection
 * @c: connection.
 *
 * Context: process.
 * Return: 0, -ENOMEM; then, too, shift_buf_unmap() has to be called.
 */
int shift_buf_map(struct shift_conn *c)
{
	size_t size = SHIFT_LINK_BUFS * SHIFT_LINK_BUF_SIZE;
	unsigned int i;

	c->rx_dma = ib_dma_map_single(c->dev, c->rx_data, size, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(c->dev, c->rx_dma))
		return -ENOMEM;
	c->rx_mapped = true;
	c->tx_dma = ib_dma_map_single(c->dev, c->tx_data, size, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(c->dev, c->tx_dma))
		return -ENOMEM;
	c->tx_mapped = true;
	for (i = 0; i < SHIFT_LINK_BUFS; i++) {
		c->rx[i].dma = c->rx_dma + i * SHIFT_LINK_BUF_SIZE;
		c->tx[i].dma = c->tx_dma + i * SHIFT_LINK_BUF_SIZE;
	}
	return 0;
}

/**
 * shift_buf_unmap - undo shift_buf_map()
 * @c: connection, without a QP; perhaps not mapped.
 *
 * Context: process.
 */
void shift_buf_unmap(struct shift_conn *c)
{
	size_t size = SHIFT_LINK_BUFS * SHIFT_LINK_BUF_SIZE;

	if (c->rx_mapped)
		ib_dma_unmap_single(c->dev, c->rx_dma, size, DMA_FROM_DEVICE);
	if (c->tx_mapped)
		ib_dma_unmap_single(c->dev, c->tx_dma, size, DMA_TO_DEVICE);
	c->rx_mapped = false;
	c->tx_mapped = false;
}

/**
 * shift_buf_post_recv - give a receive buffer to the device
 * @c: its link is locked and it is not closing, or shift_conn_build() is just making it.
 * @buf: one of @c->rx.
 *
 * Context: any.
 * Return: 0 or what ib_post_recv() says.
 */
int shift_buf_post_recv(struct shift_conn *c, struct shift_link_buf *buf)
{
	struct ib_sge sge = {
		.addr = buf->dma,
		.length = SHIFT_LINK_BUF_SIZE,
		.lkey = c->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &buf->cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	lockdep_assert(!c->established || lockdep_is_held(&c->link->lock));
	ib_dma_sync_single_for_device(c->dev, buf->dma, SHIFT_LINK_BUF_SIZE, DMA_FROM_DEVICE);
	return ib_post_recv(c->qp, &wr, NULL);
}

/**
 * shift_buf_post_send - have the device send a buffer
 * @c: its link is locked.
 * @buf: one of @c->tx, filled.
 *
 * Context: any.
 * Return: 0 or what ib_post_send() says.
 */
int shift_buf_post_send(struct shift_conn *c, struct shift_link_buf *buf)
{
	struct ib_sge sge = {
		.addr = buf->dma,
		.length = buf->len,
		.lkey = c->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &buf->cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};

	lockdep_assert_held(&c->link->lock);
	ib_dma_sync_single_for_device(c->dev, buf->dma, buf->len, DMA_TO_DEVICE);
	return ib_post_send(c->qp, &wr, NULL);
}
