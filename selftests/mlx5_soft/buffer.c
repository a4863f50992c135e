// SPDX-License-Identifier: GPL-2.0
/*
 * An exporter of dma-bufs in pages of memory, which moves them when it is told to.  What a GPU's
 * driver does when it evicts a buffer.  Stock kernels of Debian 12 have no udmabuf, and that never
 * moves anything.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include "buffer.h"
#include "mlx5_soft.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
#define dma_buf_move_notify dma_buf_invalidate_mappings
#endif

#define BUFFER_PAGES_MAX	4096
#define LEFT			0x5a	/* in pages that the buffer has left */

/* @page and @old change under the buffer's dma_resv. */
struct mls_buffer {
	unsigned int pages;
	int importers;
	atomic_t attached;
	struct page **page;	/* @pages, and as many that it has left */
	struct page **old;
};

/* Whoever writes into a page after it was left had not been told, or has not listened. */
static void old_check(struct mls_buffer *b)
{
	unsigned int i, wrong = 0;
	void *mapped;

	for (i = 0; i < b->pages && b->old[i]; i++) {
		mapped = kmap_local_page(b->old[i]);
		wrong += !!memchr_inv(mapped, LEFT, PAGE_SIZE);
		kunmap_local(mapped);
		__free_page(b->old[i]);
		b->old[i] = NULL;
	}
	WARN(wrong, "mlx5_soft: %u pages were written after they were left\n", wrong);
}

static int pages_alloc(struct page **page, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		page[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (page[i])
			continue;
		while (i--)
			__free_page(page[i]);
		return -ENOMEM;
	}
	return 0;
}

static int buffer_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct mls_buffer *b = dmabuf->priv;

	if (b->importers && atomic_read(&b->attached) >= b->importers)
		return -EBUSY;
	atomic_inc(&b->attached);
	return 0;
}

static void buffer_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct mls_buffer *b = dmabuf->priv;

	atomic_dec(&b->attached);
}

/*
 * Dynamic importers need one that can pin.  Kernels without DMABUF_MOVE_NOTIFY pin whatever is
 * mapped; this exporter moves it all the same, as its importer can bear that.
 */
static int buffer_pin(struct dma_buf_attachment *attach)
{
	return 0;
}

static void buffer_unpin(struct dma_buf_attachment *attach)
{
}

static struct sg_table *buffer_map(struct dma_buf_attachment *attach,
				   enum dma_data_direction dir)
{
	struct mls_buffer *b = attach->dmabuf->priv;
	struct sg_table *sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	int err;

	if (!sgt)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table_from_pages(sgt, b->page, b->pages, 0, (size_t)b->pages << PAGE_SHIFT,
					GFP_KERNEL);
	if (err)
		goto err_free;
	err = dma_map_sgtable(attach->dev, sgt, dir, 0);
	if (!err)
		return sgt;
	sg_free_table(sgt);
err_free:
	kfree(sgt);
	return ERR_PTR(err);
}

static void buffer_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			 enum dma_data_direction dir)
{
	dma_unmap_sgtable(attach->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static void buffer_free(struct mls_buffer *b)
{
	unsigned int i;

	old_check(b);
	for (i = 0; i < b->pages && b->page[i]; i++)
		__free_page(b->page[i]);
	kvfree(b->page);
	kfree(b);
}

static void buffer_release(struct dma_buf *dmabuf)
{
	buffer_free(dmabuf->priv);
}

static vm_fault_t buffer_fault(struct vm_fault *vmf)
{
	struct dma_buf *dmabuf = vmf->vma->vm_private_data;
	struct mls_buffer *b = dmabuf->priv;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	dma_resv_lock(dmabuf->resv, NULL);
	if (vmf->pgoff < b->pages)
		ret = vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(b->page[vmf->pgoff]));
	dma_resv_unlock(dmabuf->resv);
	return ret;
}

static const struct vm_operations_struct buffer_vm_ops = {
	.fault = buffer_fault,
};

/* Pages by number: what has mapped them does not keep them, as with memory of a device. */
static int buffer_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vma->vm_ops = &buffer_vm_ops;
	vma->vm_private_data = dmabuf;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_set(vma, VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
#else
	vma->vm_flags |= VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP;
#endif
	return 0;
}

static const struct dma_buf_ops buffer_ops = {
	.attach = buffer_attach,
	.detach = buffer_detach,
	.pin = buffer_pin,
	.unpin = buffer_unpin,
	.map_dma_buf = buffer_map,
	.unmap_dma_buf = buffer_unmap,
	.release = buffer_release,
	.mmap = buffer_mmap,
};

static int buffer_new(unsigned int pages, int importers)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;
	struct mls_buffer *b;
	int fd;

	if (!pages || pages > BUFFER_PAGES_MAX || importers < 0)
		return -EINVAL;
	b = kzalloc(sizeof(*b), GFP_KERNEL);
	if (!b)
		return -ENOMEM;
	b->pages = pages;
	b->importers = importers;
	b->page = kvcalloc(2 * pages, sizeof(*b->page), GFP_KERNEL);
	b->old = b->page + pages;
	if (!b->page || pages_alloc(b->page, pages)) {
		kvfree(b->page);
		kfree(b);
		return -ENOMEM;
	}
	info.ops = &buffer_ops;
	info.size = (size_t)pages << PAGE_SHIFT;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = b;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		buffer_free(b);
		return PTR_ERR(dmabuf);
	}
	fd = dma_buf_fd(dmabuf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(dmabuf);
	return fd;
}

/* Devices let go of the old pages, then processes; then the new ones get what is in the old. */
static int buffer_move(int fd)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);
	struct page **fresh;
	struct mls_buffer *b;
	unsigned int i;
	void *mapped;
	int err = -EINVAL;

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	if (dmabuf->ops != &buffer_ops)
		goto out;
	b = dmabuf->priv;
	err = -ENOMEM;
	fresh = kvcalloc(b->pages, sizeof(*fresh), GFP_KERNEL);
	if (!fresh || pages_alloc(fresh, b->pages))
		goto out_free;
	dma_resv_lock(dmabuf->resv, NULL);
	dma_buf_move_notify(dmabuf);
	unmap_mapping_range(dmabuf->file->f_mapping, 0, 0, 1);
	old_check(b);
	for (i = 0; i < b->pages; i++) {
		copy_highpage(fresh[i], b->page[i]);
		mapped = kmap_local_page(b->page[i]);
		memset(mapped, LEFT, PAGE_SIZE);
		kunmap_local(mapped);
		b->old[i] = b->page[i];
		b->page[i] = fresh[i];
	}
	dma_resv_unlock(dmabuf->resv);
	mls_dmabuf_settle();
	err = 0;
out_free:
	kvfree(fresh);
out:
	dma_buf_put(dmabuf);
	return err;
}

static long buffer_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct mls_buffer_new new;
	s32 fd;

	switch (cmd) {
	case MLS_BUFFER_NEW:
		if (copy_from_user(&new, (void __user *)arg, sizeof(new)))
			return -EFAULT;
		return buffer_new(new.pages, new.importers);
	case MLS_BUFFER_MOVE:
		if (copy_from_user(&fd, (void __user *)arg, sizeof(fd)))
			return -EFAULT;
		return buffer_move(fd);
	}
	return -ENOTTY;
}

static const struct file_operations buffer_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = buffer_ioctl,
};

static struct miscdevice buffer_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "mlx5_soft_buffer",
	.mode = 0666,
	.fops = &buffer_fops,
};

int mls_buffer_init(void)
{
	return misc_register(&buffer_device);
}

void mls_buffer_uninit(void)
{
	misc_deregister(&buffer_device);
}
