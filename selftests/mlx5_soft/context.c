// SPDX-License-Identifier: GPL-2.0
/*
 * A process' context and its UAR pages.  They are plain memory: the engine goes by
 * the doorbell records, and looks here only to tell how a doorbell was rung.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/task.h>
#include <rdma/mlx5-abi.h>
#include <rdma/uverbs_ioctl.h>
#include "mlx5_soft.h"

#define MLS_BF_OFFSET	0x800	/* of the first register in a UAR page */

/* Requests that libmlx5 of any age sends begin with the first two words. */
static int ucontext_request(struct mlx5_ib_alloc_ucontext_req_v2 *req, struct ib_udata *udata)
{
	int err;

	memset(req, 0, sizeof(*req));
	if (udata->inlen < sizeof(struct mlx5_ib_alloc_ucontext_req))
		return -EINVAL;
	err = ib_copy_from_udata(req, udata, min(udata->inlen, sizeof(*req)));
	if (err)
		return err;
	/* libmlx5 goes on without DEVX after this */
	if (req->flags & MLX5_IB_ALLOC_UCTX_DEVX)
		return -EPERM;
	if (req->flags || req->comp_mask || req->total_num_bfregs < 2 ||
	    req->num_low_latency_bfregs >= req->total_num_bfregs)
		return -EINVAL;
	return 0;
}

/*
 * uverbs' GET_CONTEXT frees a context that we refuse, and forgets whose process it
 * had noted in it (6.1, 6.12): each start of libmlx5 would leave a task behind.
 */
static void forget_task(struct ib_ucontext *ibuc)
{
	if (ibuc->res.task)
		put_task_struct(ibuc->res.task);
	ibuc->res.task = NULL;
}

int mls_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct mls_ucontext *uc = to_mls_ucontext(ibuc);
	struct mlx5_ib_alloc_ucontext_resp resp = {};
	struct mlx5_ib_alloc_ucontext_req_v2 req;
	unsigned int i;
	int err;

	err = ucontext_request(&req, udata);
	if (err)
		goto err_task;
	uc->bfregs = min_t(unsigned int, round_down(req.total_num_bfregs, 2), 2 * MLS_UARS);
	uc->shared = uc->bfregs - min(req.num_low_latency_bfregs, uc->bfregs - 1);
	uc->cqe_version = min_t(u8, req.max_cqe_version, 1);
	for (i = 0; i < uc->bfregs / 2; i++) {
		uc->uar[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!uc->uar[i]) {
			err = -ENOMEM;
			goto err_pages;
		}
	}

	resp.qp_tab_size = 1 << 18;
	resp.bf_reg_size = MLS_BF_REG_SIZE;
	resp.tot_bfregs = uc->bfregs;
	resp.cache_line_size = cache_line_size();
	resp.max_sq_desc_sz = MLS_WQE_MAX;
	resp.max_rq_desc_sz = MLS_MAX_RQ_DESC;
	resp.max_send_wqebb = MLS_MAX_WQ;
	resp.max_recv_wr = MLS_MAX_WQ;
	resp.max_srq_recv_wr = MLS_MAX_WQ;
	resp.num_ports = 1;
	resp.cqe_version = uc->cqe_version;
	resp.log_uar_size = PAGE_SHIFT;
	resp.num_uars_per_page = 1;
	resp.eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
	resp.response_length = min(udata->outlen, sizeof(resp));
	err = ib_copy_to_udata(udata, &resp, resp.response_length);
	if (!err)
		return 0;

err_pages:
	mls_dealloc_ucontext(ibuc);
err_task:
	forget_task(ibuc);
	return err;
}

void mls_dealloc_ucontext(struct ib_ucontext *ibuc)
{
	struct mls_ucontext *uc = to_mls_ucontext(ibuc);
	unsigned int i;

	/* those still mapped live on until they are unmapped */
	for (i = 0; i < MLS_UARS; i++)
		if (uc->uar[i])
			put_page(uc->uar[i]);
}

/* The pages are memory that nobody reads any more: they may stay mapped. */
void mls_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

int mls_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct mls_ucontext *uc = to_mls_ucontext(ibuc);
	unsigned long index = vma->vm_pgoff & 0xff;

	switch (vma->vm_pgoff >> 8) {
	case MLX5_IB_MMAP_REGULAR_PAGE:
	case MLX5_IB_MMAP_WC_PAGE:
	case MLX5_IB_MMAP_NC_PAGE:
		break;
	default:
		return -EINVAL;
	}
	if (index >= MLS_UARS || !uc->uar[index] ||
	    vma->vm_end - vma->vm_start != PAGE_SIZE || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	return vm_insert_page(vma, vma->vm_start, uc->uar[index]);
}

/**
 * mls_bfreg_get() - choose a doorbell register for a QP
 * @uc: the context
 * @uar: gets the page
 * @offset: gets the place in it
 *
 * Only of those that libmlx5 puts a lock around: QPs share them.  The first of all
 * has no BlueFlame.
 *
 * Return: its number in libmlx5's table, which counts four per UAR page.
 */
u32 mls_bfreg_get(struct mls_ucontext *uc, struct page **uar, unsigned int *offset)
{
	unsigned int n = 0;

	if (uc->shared > 1)
		n = 1 + (unsigned int)atomic_inc_return(&uc->next_bfreg) % (uc->shared - 1);
	*uar = uc->uar[n / 2];
	*offset = MLS_BF_OFFSET + n % 2 * MLS_BF_REG_SIZE;
	return n / 2 * 4 + n % 2;
}
