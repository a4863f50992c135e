// SPDX-License-Identifier: GPL-2.0
/*
 * What RDMA CM posts on the QP for general services (QP 1) of a device: its requests to disconnect
 * may need another path (link/dreq.c), and if it cannot make one it is made for it
 * (link/connection.c).
 */
#include <linux/dma-direct.h>
#include <linux/dma-map-ops.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_mad.h>
#include <rdma/ibta_vol1_c12.h>
#include "core/object.h"
#include "link/link.h"
#include "verbs/verbs.h"

/*
 * The kernel's address of memory that was mapped for a device, or NULL: it cannot be told.  Devices
 * with virtual DMA use the kernel's addresses themselves.
 */
static const void *gsi_memory(struct ib_device *dev, u64 addr)
{
	struct iommu_domain *domain;
	phys_addr_t phys = 0;

	if (ib_uses_virt_dma(dev))
		return (const void *)(uintptr_t)addr;
	domain = iommu_get_domain_for_dev(dev->dma_device);
	if (domain && domain->type != IOMMU_DOMAIN_IDENTITY)
		phys = iommu_iova_to_phys(domain, addr);
	else if (!get_dma_ops(dev->dma_device))		/* as Xen's, which has its own addresses */
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

/* Who asks for a connection with @mad (REQ), or accepts one (REP). */
static void gsi_connects(struct ib_device *dev, const union ib_gid *dgid, const void *mad, bool rep)
{
	struct shift_dev *sdev = shift_ops_dev(dev);
	struct shift_cm_said said = { .rep = rep };

	if (rep) {
		said.local_id = IBA_GET(CM_REP_LOCAL_COMM_ID, (struct cm_rep_msg *)mad);
		said.remote_id = IBA_GET(CM_REP_REMOTE_COMM_ID, (struct cm_rep_msg *)mad);
		said.qpn = IBA_GET(CM_REP_LOCAL_QPN, (struct cm_rep_msg *)mad);
	} else {
		said.local_id = IBA_GET(CM_REQ_LOCAL_COMM_ID, (struct cm_req_msg *)mad);
		said.qpn = IBA_GET(CM_REQ_LOCAL_QPN, (struct cm_req_msg *)mad);
	}
	if (sdev)
		shift_connection_note(dev, &sdev->qpn, dgid, &said);
}

/* The numbers are at the same place in RTU, DREQ and DREP. */
static struct shift_cm_said gsi_numbers(const void *mad)
{
	return (struct shift_cm_said) {
		.local_id = IBA_GET(CM_RTU_LOCAL_COMM_ID, (struct cm_rtu_msg *)mad),
		.remote_id = IBA_GET(CM_RTU_REMOTE_COMM_ID, (struct cm_rtu_msg *)mad),
	};
}

static void gsi_says(struct ib_device *dev, const union ib_gid *dgid, const void *mad)
{
	const struct ib_mad_hdr *hdr = mad;
	struct shift_cm_said said;

	if (hdr->attr_id == CM_REQ_ATTR_ID || hdr->attr_id == CM_REP_ATTR_ID) {
		gsi_connects(dev, dgid, mad, hdr->attr_id == CM_REP_ATTR_ID);
	} else if (hdr->attr_id == CM_RTU_ATTR_ID) {
		said = gsi_numbers(mad);
		shift_connection_made(dev, &said);
	} else if (hdr->attr_id == CM_DREQ_ATTR_ID || hdr->attr_id == CM_DREP_ATTR_ID) {
		said = gsi_numbers(mad);
		shift_connection_said(dev, &said);
		if (hdr->attr_id == CM_DREQ_ATTR_ID)
			shift_dreq_note(dev, dgid, mad);
	}
}

static bool gsi_is_cm(const u8 *mad)
{
	return ((const struct ib_mad_hdr *)mad)->mgmt_class == IB_MGMT_CLASS_CM;
}

/**
 * shift_gsi_posting - MADs are about to be posted on a device's QP 1
 * @qp: the QP; ib_mad's.
 * @wr: what is posted.
 *
 * Context: any; RCU; ib_mad holds a spinlock.
 */
void shift_gsi_posting(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	u8 mad[IB_MGMT_MAD_SIZE] __aligned(8);
	struct rdma_ah_attr attr;

	for (; wr; wr = wr->next) {
		if (wr->opcode != IB_WR_SEND || !gsi_copy(qp->device, wr, mad) ||
		    !gsi_is_cm(mad) || rdma_query_ah(ud_wr(wr)->ah, &attr))
			continue;
		if (rdma_ah_get_ah_flags(&attr) & IB_AH_GRH)
			gsi_says(qp->device, &rdma_ah_read_grh(&attr)->dgid, mad);
	}
}
