// SPDX-License-Identifier: GPL-2.0
/* Memory of users in the kernel: rxe's regions, with the same keys. */
#include <linux/slab.h>
#include "mlx5_soft.h"

/* The key for all memory that rxe has made for its PD. */
struct ib_mr *mls_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct mls_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ibmr.pd = ibpd;
	mr->ibmr.lkey = to_mls_pd(ibpd)->lower->local_dma_lkey;
	return &mr->ibmr;
}

struct ib_mr *mls_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct mls_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->lower = ib_alloc_mr(to_mls_pd(ibpd)->lower, type, max_num_sg);
	if (IS_ERR(mr->lower)) {
		err = PTR_ERR(mr->lower);
		kfree(mr);
		return ERR_PTR(err);
	}
	mr->ibmr.pd = ibpd;
	mr->ibmr.lkey = mr->lower->lkey;
	mr->ibmr.rkey = mr->lower->rkey;
	return &mr->ibmr;
}

/* Memory that is signed: as far as a user comes who never registers it. */
bool mls_pi;

struct ib_mr *mls_alloc_mr_integrity(struct ib_pd *ibpd, u32 num_data, u32 num_meta)
{
	return mls_alloc_mr(ibpd, IB_MR_TYPE_MEM_REG, num_data + num_meta);
}

/* Any context. */
int mls_map_mr_sg_pi(struct ib_mr *ibmr, struct scatterlist *data, int num_data,
		     unsigned int *data_offset, struct scatterlist *meta, int num_meta,
		     unsigned int *meta_offset)
{
	return 0;
}

/* Any context. */
int mls_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset)
{
	struct ib_mr *lower = to_mls_mr(ibmr)->lower;
	int n;

	lower->page_size = ibmr->page_size;
	n = mls_iommu_map_mr_sg(lower, ibmr->device, sg, nents, offset);
	ibmr->iova = lower->iova + mls_iommu_offset(ibmr->device);
	ibmr->length = lower->length;
	return n;
}
