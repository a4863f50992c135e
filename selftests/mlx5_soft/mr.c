// SPDX-License-Identifier: GPL-2.0
/*
 * Protection domains and memory regions: those of rxe, with the same keys, so that
 * what a WQE names and what a peer names needs no translation.
 */
#include <linux/slab.h>
#include <rdma/mlx5-abi.h>
#include <rdma/uverbs_ioctl.h>
#include "mlx5_soft.h"

int mls_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct mls_dev *dev = to_mls_dev(ibpd->device);
	struct mls_pd *pd = to_mls_pd(ibpd);
	struct mlx5_ib_alloc_pd_resp resp = {};
	int err;

	mutex_init(&pd->reg_lock);
	pd->lower = ib_alloc_pd(dev->lower, 0);
	if (IS_ERR(pd->lower))
		return PTR_ERR(pd->lower);
	if (!udata)
		return 0;
	mutex_lock(&dev->lock);
	resp.pdn = ++dev->next_number & 0xffffff;
	mutex_unlock(&dev->lock);
	err = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
	if (err)
		ib_dealloc_pd(pd->lower);
	return err;
}

int mls_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct mls_pd *pd = to_mls_pd(ibpd);

	mls_registrar_free(pd);
	ib_dealloc_pd(pd->lower);
	return 0;
}

/*
 * rxe may give a region the key that ends a scatter list:
 * then the next one is taken.
 */
static struct ib_mr *register_lower(struct ib_pd *lower, u64 start, u64 length, u64 virt_addr,
				    int access)
{
	struct ib_mr *first, *mr;

	first = ib_reg_user_mr(lower, start, length, virt_addr, access);
	if (IS_ERR(first) || first->lkey != MLS_END_KEY)
		return first;
	mr = ib_reg_user_mr(lower, start, length, virt_addr, access);
	ib_dereg_mr(first);
	return mr;
}

/* Give a region its keys, and let requests name it.  It goes if that fails. */
static struct ib_mr *mr_show(struct mls_mr *mr, struct ib_pd *ibpd)
{
	struct mls_dev *dev = to_mls_dev(ibpd->device);
	int err;

	mr->ibmr.pd = ibpd;
	mr->ibmr.lkey = mr->lower->lkey;
	err = xa_err(xa_store(&dev->mrs, mr->ibmr.lkey >> 8, mr, GFP_KERNEL));
	if (!err)
		return &mr->ibmr;
	if (mr->buf)
		mls_dmabuf_dereg(mr);
	ib_dereg_mr(mr->lower);
	kfree(mr);
	return ERR_PTR(err);
}

struct ib_mr *mls_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
			      int access, struct ib_udata *udata)
{
	struct mls_mr *mr;
	int err;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->lower = register_lower(to_mls_pd(ibpd)->lower, start, length, virt_addr, access);
	if (IS_ERR(mr->lower)) {
		err = PTR_ERR(mr->lower);
		kfree(mr);
		return ERR_PTR(err);
	}
	mr->access = access;
	mr->ibmr.rkey = mr->lower->rkey;
	return mr_show(mr, ibpd);
}

struct ib_mr *mls_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				     int fd, int access)
{
	struct mls_mr *mr;
	int err;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = mls_reg_dmabuf(mr, to_mls_pd(ibpd), offset, length, virt_addr, fd, access);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	mr->access = access;
	if (access & (IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC))
		mr->ibmr.rkey = mr->lower->lkey;
	return mr_show(mr, ibpd);
}

/* rxe changes rights and PD of its region in place, if it can (not on 6.1). */
static int rereg_lower(struct mls_mr *mr, int flags, int access, struct ib_pd *pd)
{
	const struct ib_device_ops *ops = &mr->lower->device->ops;
	struct ib_pd *was = mr->lower->pd;
	struct ib_mr *ret;

	if (!ops->rereg_user_mr || mr->buf)
		return -EOPNOTSUPP;
	ret = ops->rereg_user_mr(mr->lower, flags, 0, 0, 0, access, pd, NULL);
	if (IS_ERR(ret))
		return PTR_ERR(ret);
	if (WARN_ON_ONCE(ret))
		return -EIO;
	atomic_inc(&pd->usecnt);
	mr->lower->pd = pd;
	atomic_dec(&was->usecnt);
	mr->access = access;
	return 0;
}

/* Other memory is a new region, and the core ends the old one, as with mlx5. */
struct ib_mr *mls_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				u64 virt_addr, int access, struct ib_pd *ibpd,
				struct ib_udata *udata)
{
	struct mls_mr *mr = to_mls_mr(ibmr);
	int err;

	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if (!(flags & IB_MR_REREG_TRANS)) {
		err = rereg_lower(mr, flags, access, to_mls_pd(ibpd)->lower);
		return err ? ERR_PTR(err) : NULL;
	}
	return mls_reg_user_mr(ibpd, start, length, virt_addr, access, udata);
}

int mls_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct mls_dev *dev = to_mls_dev(ibmr->device);
	struct mls_mr *mr = to_mls_mr(ibmr);

	if (!mr->lower) {
		kfree(mr);	/* mls_get_dma_mr() */
		return 0;
	}
	/* mls_lower_key() looks under the same lock */
	mutex_lock(&dev->lock);
	xa_erase(&dev->mrs, ibmr->lkey >> 8);
	mutex_unlock(&dev->lock);
	if (mr->buf)
		mls_dmabuf_dereg(mr);
	ib_dereg_mr(mr->lower);
	kfree(mr);
	return 0;
}

/*
 * The key to give to rxe for one in a WQE.  One that is not a region's of this PD
 * must not reach rxe, where the PD has a key for all memory.
 */
u32 mls_lower_key(struct mls_dev *dev, struct ib_pd *ibpd, u32 key)
{
	struct mls_mr *mr;

	lockdep_assert_held(&dev->lock);
	mr = xa_load(&dev->mrs, key >> 8);
	if (!mr || mr->ibmr.pd != ibpd || mr->ibmr.lkey != key)
		return MLS_BAD_KEY;
	return key;
}
