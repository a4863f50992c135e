// SPDX-License-Identifier: GPL-2.0
/*
 * NICs behind an IOMMU that translates, with the module parameter "iommu".  The address of memory
 * is the kernel's, which is what rxe takes, and an offset that is another one for each NIC.  It is
 * taken off where addresses of users in the kernel come in.  One that was mapped for another NIC is
 * no address of memory then: a request with it fails, as if an IOMMU had found it.
 */
#include <linux/dma-map-ops.h>
#include <linux/mm.h>
#include <linux/platform_device.h>
#include <linux/scatterlist.h>
#include <linux/version.h>
#include "mlx5_soft.h"

bool mls_iommu;

/* The highest bits of the kernel's addresses are all set: the result has the NIC's number there. */
static u64 offset_of(const struct device *dev)
{
	return (u64)(to_platform_device(dev)->id + 1) << 48;
}

static dma_addr_t iommu_map(struct device *dev, const void *kva)
{
	return (uintptr_t)kva + offset_of(dev);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
static dma_addr_t iommu_map_phys(struct device *dev, phys_addr_t phys, size_t size,
				 enum dma_data_direction dir, unsigned long attrs)
{
	return iommu_map(dev, phys_to_virt(phys));
}
#else
static dma_addr_t iommu_map_page(struct device *dev, struct page *page, unsigned long offset,
				 size_t size, enum dma_data_direction dir, unsigned long attrs)
{
	return iommu_map(dev, page_address(page) + offset);
}
#endif

/* Nothing is kept of what is mapped. */
static void iommu_unmap(struct device *dev, dma_addr_t addr, size_t size,
			enum dma_data_direction dir, unsigned long attrs)
{
}

static int iommu_map_sg(struct device *dev, struct scatterlist *sg, int nents,
			enum dma_data_direction dir, unsigned long attrs)
{
	struct scatterlist *each;
	int i;

	for_each_sg(sg, each, nents, i) {
		sg_dma_address(each) = iommu_map(dev, sg_virt(each));
		sg_dma_len(each) = each->length;
	}
	return nents;
}

static const struct dma_map_ops iommu_ops = {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
	.map_phys = iommu_map_phys,
	.unmap_phys = iommu_unmap,
#else
	.map_page = iommu_map_page,
	.unmap_page = iommu_unmap,
#endif
	.map_sg = iommu_map_sg,
};

/**
 * mls_iommu_attach() - put a NIC behind it
 * @dev: its platform device
 *
 * Return: 0 or -errno; a kernel need not have operations of a device's own.
 */
int mls_iommu_attach(struct device *dev)
{
	set_dma_ops(dev, &iommu_ops);
	if (get_dma_ops(dev) != &iommu_ops)
		return -EOPNOTSUPP;
	return dma_set_mask_and_coherent(dev, DMA_BIT_MASK(64));
}

/* What the device's addresses are more than those that rxe takes. */
u64 mls_iommu_offset(const struct ib_device *ibdev)
{
	return ibdev->dma_device ? offset_of(ibdev->dma_device) : 0;
}

/* The kernel's address of what was mapped for the device; 0: it was not. */
u64 mls_iommu_kva(const struct ib_device *ibdev, u64 addr)
{
	u64 kva = addr - mls_iommu_offset(ibdev);

	if (!ibdev->dma_device || virt_addr_valid((void *)(uintptr_t)kva))
		return kva;
	pr_warn_ratelimited("mlx5_soft: %s: no memory is mapped at %#llx\n",
			    dev_name(&ibdev->dev), addr);
	return 0;
}

/**
 * mls_iommu_sges() - the SGEs of a request as rxe takes them
 * @ibpd: the PD of the queue
 * @sge: the user's; changed into those for rxe
 * @num: how many there are
 * @copy: room for MLS_MAX_SGE of them
 *
 * Only those with the key for all memory have addresses of the device: MRs have their own.
 *
 * Return: 0 or -errno.
 */
int mls_iommu_sges(struct ib_pd *ibpd, struct ib_sge **sge, int num, struct ib_sge *copy)
{
	u32 lkey = to_mls_pd(ibpd)->lower->local_dma_lkey;
	int i;

	if (!ibpd->device->dma_device)
		return 0;
	if (num > MLS_MAX_SGE)
		return -EINVAL;
	for (i = 0; i < num; i++) {
		copy[i] = (*sge)[i];
		if (copy[i].lkey != lkey || !copy[i].length)
			continue;
		copy[i].addr = mls_iommu_kva(ibpd->device, copy[i].addr);
		if (!copy[i].addr)
			copy[i].lkey = MLS_BAD_KEY;
	}
	*sge = copy;
	return 0;
}

/* Any context.  A NIC would not find out before it uses the MR; here it is not mapped. */
int mls_iommu_map_mr_sg(struct ib_mr *lower, const struct ib_device *ibdev, struct scatterlist *sg,
			int nents, unsigned int *offset)
{
	u64 more = mls_iommu_offset(ibdev);
	struct scatterlist *each;
	int i, n;

	for_each_sg(sg, each, nents, i)
		if (more && !mls_iommu_kva(ibdev, sg_dma_address(each)))
			return 0;
	for_each_sg(sg, each, nents, i)
		sg_dma_address(each) -= more;
	n = lower->device->ops.map_mr_sg(lower, sg, nents, offset);
	for_each_sg(sg, each, nents, i)
		sg_dma_address(each) += more;
	return n;
}
