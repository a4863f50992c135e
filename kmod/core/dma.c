// SPDX-License-Identifier: GPL-2.0
/* Whether two devices take the same addresses, by what a module can know of them. */
#include <linux/cc_platform.h>
#include <linux/dma-direct.h>
#include <linux/dma-map-ops.h>
#include <linux/iommu.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/swiotlb.h>
#include <rdma/ib_verbs.h>
#include "core/dma.h"
#include "core/object.h"
#include "core/qp.h"
#include "pure/dma.h"
#include "pure/wr.h"

static bool is_translated(struct device *dev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	return (domain && domain->type != IOMMU_DOMAIN_IDENTITY) || get_dma_ops(dev);
}

static struct shift_dma dma_of(struct ib_device *ibdev)
{
	struct device *dev = ibdev->dma_device;

	if (ib_uses_virt_dma(ibdev))
		return (struct shift_dma) { .virt = true };
	return (struct shift_dma) {
		.translated = is_translated(dev),
		.bounced = is_swiotlb_force_bounce(dev) ||
			   cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT),
		.shifted = dev->dma_range_map,
		.limited = dma_get_required_mask(dev) >
			   min_not_zero(dma_get_mask(dev), dev->bus_dma_limit),
		.coherent = dev_is_dma_coherent(dev),
	};
}

/**
 * shift_dma_alike - may addresses that were mapped for one device be given to another one?
 * @a: a device.
 * @b: another one.
 *
 * Whether an IOMMU translates changes only while no driver has the device.  Memory that is added to
 * the host later is not known of.
 *
 * Context: process context.
 */
bool shift_dma_alike(struct ib_device *a, struct ib_device *b)
{
	struct shift_dma one = dma_of(a), other = dma_of(b);

	return shift_dma_same(&one, &other);
}

/**
 * shift_dma_is_memory - is an address one of the host's memory, and not of another device?
 * @ibdev: the device that it was mapped for; it takes plain addresses (shift_dma_alike()).
 * @addr: the address.
 *
 * One NIC may reach memory of a device (P2PDMA) that another one does not.
 *
 * Context: any.
 */
bool shift_dma_is_memory(struct ib_device *ibdev, u64 addr)
{
	unsigned long pfn;

	if (ib_uses_virt_dma(ibdev))
		return true;
	pfn = PHYS_PFN(dma_to_phys(ibdev->dma_device, addr));
	return pfn_valid(pfn) && !is_pci_p2pdma_page(pfn_to_page(pfn));
}

/**
 * shift_dma_of_memory - is all that a request of a kernel user names memory of the host?
 * @sqp: its QP.
 * @wr: the request.
 *
 * What is in MRs was looked at when it was mapped.
 *
 * Context: any.
 */
bool shift_dma_of_memory(const struct shift_qp *sqp, const struct shift_wr *wr)
{
	const struct ib_pd *pd = sqp->spd ? READ_ONCE(sqp->spd->pd) : NULL;
	u32 i;

	if (!pd || wr->inline_data || ib_uses_virt_dma(pd->device))
		return true;
	for (i = 0; i < wr->num_sge; i++)
		if (wr->sge[i].length && wr->sge[i].lkey == pd->local_dma_lkey &&
		    !shift_dma_is_memory(pd->device, wr->sge[i].addr))
			return false;
	return true;
}
