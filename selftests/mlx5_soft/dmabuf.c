// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of a dma-buf, with a dynamic importer as mlx5 has it.  rxe cannot import: the pages of the
 * buffer become a region of rxe's by a work request, which keeps its key when the buffer moves.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/version.h>
#include "mlx5_soft.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
MODULE_IMPORT_NS("DMA_BUF");
#define move_notify invalidate_mappings
#else
MODULE_IMPORT_NS(DMA_BUF);
#endif

/* What exporters map for: our devices do no DMA and have no struct device for it. */
static struct platform_device *mapper;
static struct workqueue_struct *moves;

struct mls_dmabuf {
	struct mls_mr *mr;
	struct mls_pd *pd;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;	/* mapped, and the region is valid; under the buffer's dma_resv */
	u64 offset, length, iova;
	int access;
	bool closing;		/* under the same */
	struct work_struct moved;
};

/* Give rxe's region the pages that the exporter has mapped. */
static int region_fill(struct mls_dmabuf *buf, struct sg_table *sgt)
{
	struct ib_mr *lower = buf->mr->lower;
	u64 skip = buf->offset >> PAGE_SHIFT, left = buf->length;
	u32 offset = offset_in_page(buf->offset);
	struct scatterlist *sgl;
	struct sg_page_iter iter;
	unsigned int n, i;
	int err = -EINVAL;

	n = (offset + buf->length + PAGE_SIZE - 1) >> PAGE_SHIFT;
	sgl = kvmalloc_array(n, sizeof(*sgl), GFP_KERNEL);
	if (!sgl)
		return -ENOMEM;
	sg_init_table(sgl, n);
	__sg_page_iter_start(&iter, sgt->sgl, sgt->orig_nents, skip);
	for (i = 0; i < n; i++) {
		u32 part = min_t(u64, left, PAGE_SIZE - offset);

		if (!__sg_page_iter_next(&iter))
			goto out;
		sg_set_page(&sgl[i], sg_page_iter_page(&iter), part, offset);
		left -= part;
		offset = 0;
	}
	/* no DMA: this fills in addresses of the kernel */
	if (ib_dma_map_sg(lower->device, sgl, n, DMA_BIDIRECTIONAL) != n ||
	    ib_map_mr_sg(lower, sgl, n, NULL, PAGE_SIZE) != (int)n)
		goto out;
	lower->iova = buf->iova;
	err = mls_registrar_validate(buf->pd, lower, buf->access);
out:
	kvfree(sgl);
	return err;
}

static int dmabuf_map(struct mls_dmabuf *buf)
{
	struct sg_table *sgt;
	int err;

	dma_resv_assert_held(buf->attach->dmabuf->resv);
	if (buf->sgt || buf->closing)
		return 0;
	sgt = dma_buf_map_attachment(buf->attach, DMA_BIDIRECTIONAL);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	err = region_fill(buf, sgt);
	if (err)
		dma_buf_unmap_attachment(buf->attach, sgt, DMA_BIDIRECTIONAL);
	else
		buf->sgt = sgt;
	return err;
}

static void dmabuf_unmap(struct mls_dmabuf *buf)
{
	dma_resv_assert_held(buf->attach->dmabuf->resv);
	if (!buf->sgt)
		return;
	if (mls_registrar_invalidate(buf->pd, buf->mr->lower))
		pr_err("mlx5_soft: a region could not be taken back\n");
	dma_buf_unmap_attachment(buf->attach, buf->sgt, DMA_BIDIRECTIONAL);
	buf->sgt = NULL;
}

/* A NIC maps the buffer again when it is used; here a worker does it, as rxe cannot wait. */
static void dmabuf_moved(struct work_struct *work)
{
	struct mls_dmabuf *buf = container_of(work, struct mls_dmabuf, moved);
	struct dma_resv *resv = buf->attach->dmabuf->resv;
	int err;

	dma_resv_lock(resv, NULL);
	err = dmabuf_map(buf);
	dma_resv_unlock(resv);
	if (err)
		pr_err("mlx5_soft: a buffer that moved: %d\n", err);
}

static void dmabuf_move_notify(struct dma_buf_attachment *attach)
{
	struct mls_dmabuf *buf = attach->importer_priv;

	dmabuf_unmap(buf);
	if (!buf->closing)
		queue_work(moves, &buf->moved);
}

static const struct dma_buf_attach_ops dmabuf_attach_ops = {
	.allow_peer2peer = true,
	.move_notify = dmabuf_move_notify,
};

/* All importers have mapped what has moved until now. */
void mls_dmabuf_settle(void)
{
	flush_workqueue(moves);
}

static void dmabuf_free(struct mls_dmabuf *buf)
{
	struct dma_buf *dmabuf = buf->attach->dmabuf;

	dma_resv_lock(dmabuf->resv, NULL);
	buf->closing = true;
	dmabuf_unmap(buf);
	dma_resv_unlock(dmabuf->resv);
	cancel_work_sync(&buf->moved);
	dma_buf_detach(dmabuf, buf->attach);
	dma_buf_put(dmabuf);
	kfree(buf);
}

void mls_dmabuf_dereg(struct mls_mr *mr)
{
	dmabuf_free(mr->buf);
}

static struct mls_dmabuf *dmabuf_import(u64 offset, u64 length, int fd)
{
	struct mls_dmabuf *buf = kzalloc(sizeof(*buf), GFP_KERNEL);
	struct dma_buf *dmabuf;
	int err = -EINVAL;

	if (!buf)
		return ERR_PTR(-ENOMEM);
	dmabuf = dma_buf_get(fd);
	if (IS_ERR(dmabuf)) {
		kfree(buf);
		return ERR_CAST(dmabuf);
	}
	INIT_WORK(&buf->moved, dmabuf_moved);
	if (!length || offset + length < offset || offset + length > dmabuf->size)
		goto err_put;
	buf->attach = dma_buf_dynamic_attach(dmabuf, &mapper->dev, &dmabuf_attach_ops, buf);
	if (!IS_ERR(buf->attach))
		return buf;
	err = PTR_ERR(buf->attach);
err_put:
	dma_buf_put(dmabuf);
	kfree(buf);
	return ERR_PTR(err);
}

/**
 * mls_reg_dmabuf() - the pages of a dma-buf as a region of rxe's
 * @mr: ours; @mr->lower and @mr->buf are filled in
 * @pd: its PD
 * @offset: where it begins in the buffer
 * @length: bytes
 * @iova: the address in work requests
 * @fd: the buffer
 * @access: rights
 *
 * Return: 0 or -errno.
 */
int mls_reg_dmabuf(struct mls_mr *mr, struct mls_pd *pd, u64 offset, u64 length, u64 iova, int fd,
		   int access)
{
	struct mls_dmabuf *buf;
	unsigned int n;
	int err;

	err = mls_registrar_make(pd);
	if (err)
		return err;
	buf = dmabuf_import(offset, length, fd);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	buf->mr = mr;
	buf->pd = pd;
	buf->offset = offset;
	buf->length = length;
	buf->iova = iova;
	buf->access = access;
	n = (offset_in_page(offset) + length + PAGE_SIZE - 1) >> PAGE_SHIFT;
	mr->lower = ib_alloc_mr(pd->lower, IB_MR_TYPE_MEM_REG, n);
	if (IS_ERR(mr->lower)) {
		err = PTR_ERR(mr->lower);
		goto err_buf;
	}
	if (mr->lower->lkey == MLS_END_KEY)
		ib_update_fast_reg_key(mr->lower, 1);
	mr->buf = buf;
	dma_resv_lock(buf->attach->dmabuf->resv, NULL);
	err = dmabuf_map(buf);
	dma_resv_unlock(buf->attach->dmabuf->resv);
	if (!err)
		return 0;
	dmabuf_free(buf);	/* first: a worker may be filling the region */
	ib_dereg_mr(mr->lower);
	return err;

err_buf:
	dmabuf_free(buf);
	return err;
}

int mls_dmabuf_init(void)
{
	int err;

	mapper = platform_device_register_simple("mlx5_soft", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(mapper))
		return PTR_ERR(mapper);
	err = dma_coerce_mask_and_coherent(&mapper->dev, DMA_BIT_MASK(64));
	moves = err ? NULL : alloc_workqueue("mlx5_soft_moves", WQ_UNBOUND, 0);
	if (!moves) {
		platform_device_unregister(mapper);
		return err ?: -ENOMEM;
	}
	return 0;
}

void mls_dmabuf_uninit(void)
{
	destroy_workqueue(moves);
	platform_device_unregister(mapper);
}
