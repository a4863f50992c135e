// SPDX-License-Identifier: GPL-2.0
/*
 * What RDMA CM posts on the QP for general services (QP 1) of a device: its requests to disconnect
 * may need another path (link/dreq.c).
 */
#include <linux/dma-direct.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <rdma/ib_mad.h>
#include "link/link.h"
#include "verbs/verbs.h"

#define CM_DREQ		0x0015	/* attribute id: InfiniBand specification, volume 1, 12.7 */

/*
 * The kernel's address of memory that was mapped for a device, or NULL: it cannot be told.  Devices
 * with virtual DMA use the kernel's addresses themselves.
 */
static const void *gsi_memory(struct ib_device *dev, u64 addr)
{
	struct iommu_domain *domain;
	phys_addr_t phys;

	if (ib_uses_virt_dma(dev))
		return (const void *)(uintptr_t)addr;
	domain = iommu_get_domain_for_dev(dev->dma_device);
	if (domain && domain->type != IOMMU_DOMAIN_IDENTITY)
		phys = iommu_iova_to_phys(domain, addr);
	else
		phys = dma_to_phys(dev->dma_device, addr);
	if (!phys || !pfn_valid(PHYS_PFN(phys)) || PageHighMem(pfn_to_page(PHYS_PFN(phys))))
		return NULL;
	return phys_to_virt(phys);
}

/* Copy a MAD, which may be in pieces; false: it is not one, or it cannot be read. */
static bool gsi_copy(struct ib_device *dev, const struct ib_send_wr *wr, u8 *mad)
{
	u32 done = 0;
	int i;

	for (i = 0; i < wr->num_sge && done < IB_MGMT_MAD_SIZE; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];
		u32 len = min_t(u32, sge->length, IB_MGMT_MAD_SIZE - done);
		const void *from = gsi_memory(dev, sge->addr);

		if (!from)
			return false;
		memcpy(mad + done, from, len);
		done += len;
	}
	return done == IB_MGMT_MAD_SIZE;
}

static bool gsi_is_dreq(const u8 *mad)
{
	const struct ib_mad_hdr *hdr = (const struct ib_mad_hdr *)mad;

	return hdr->mgmt_class == IB_MGMT_CLASS_CM && hdr->attr_id == cpu_to_be16(CM_DREQ);
}

/**
 * shift_gsi_posting - MADs are about to be posted on a device's QP 1
 * @qp: the QP; ib_mad's.
 * @wr: what is posted.
 *
 * Context: any; ib_mad holds a spinlock.
 */
void shift_gsi_posting(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	u8 mad[IB_MGMT_MAD_SIZE] __aligned(8);
	struct rdma_ah_attr attr;

	for (; wr; wr = wr->next) {
		if (wr->opcode != IB_WR_SEND || !gsi_copy(qp->device, wr, mad) ||
		    !gsi_is_dreq(mad) || rdma_query_ah(ud_wr(wr)->ah, &attr))
			continue;
		if (rdma_ah_get_ah_flags(&attr) & IB_AH_GRH)
			shift_dreq_note(qp->device, &rdma_ah_read_grh(&attr)->dgid, mad);
	}
}
