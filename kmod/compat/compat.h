/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels that the module is built for.
 *
 * The source is written for the newest one.  SHIFT_HAVE_* come from compile
 * probes (probes.mk), never from a version, as distributions backport changes.  Each
 * probe is named after what it looks for, and is described here.
 */
#ifndef SHIFT_COMPAT_H
#define SHIFT_COMPAT_H

#ifndef SHIFT_PROBED
#error "the compile probes have not run: build with Kbuild"
#endif

#include <linux/file.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <rdma/ib_verbs.h>

/*
 * SHIFT_HAVE_CREATE_CQ_UDATA, SHIFT_HAVE_CREATE_CQ_ATTRS (one of them): type of
 * the third argument of ib_device_ops.create_cq.
 */
#ifdef SHIFT_HAVE_CREATE_CQ_ATTRS
#define SHIFT_CREATE_CQ_UDATA	struct uverbs_attr_bundle
#else
#define SHIFT_CREATE_CQ_UDATA	struct ib_udata
#endif

/*
 * SHIFT_HAVE_CREATE_USER_CQ: ib_device_ops.create_user_cq, which uverbs calls instead of
 * create_cq where a driver has it.  Both take the same arguments.
 */
static inline int shift_driver_create_cq(const struct ib_device_ops *ops, struct ib_cq *cq,
					 const struct ib_cq_init_attr *attr,
					 SHIFT_CREATE_CQ_UDATA *udata)
{
#ifdef SHIFT_HAVE_CREATE_USER_CQ
	if (udata && ops->create_user_cq)
		return ops->create_user_cq(cq, attr, udata);
#endif
	return ops->create_cq(cq, attr, udata);
}

/*
 * SHIFT_HAVE_RESIZE_CQ, SHIFT_HAVE_RESIZE_USER_CQ (one of them): the name of
 * ib_device_ops.resize_user_cq and the type of its number of entries.
 */
#ifdef SHIFT_HAVE_RESIZE_USER_CQ
#define SHIFT_RESIZE_CQE	unsigned int
#else
#define SHIFT_RESIZE_CQE	int
#define resize_user_cq		resize_cq
#endif

/*
 * SHIFT_HAVE_REG_USER_MR_PLAIN, SHIFT_HAVE_REG_USER_MR_DMAH (one of them):
 * whether ib_device_ops.reg_user_mr and .reg_user_mr_dmabuf take a DMA handle.
 * SHIFT_DMAH_PARAM, SHIFT_DMAH_ARG and SHIFT_DMAH_NONE (the argument for no handle)
 * bring their own comma; SHIFT_DMAH_USED is true if the application gave one.
 */
#ifdef SHIFT_HAVE_REG_USER_MR_DMAH
#define SHIFT_DMAH_PARAM	, struct ib_dmah *dmah
#define SHIFT_DMAH_ARG		, dmah
#define SHIFT_DMAH_NONE		, NULL
#define SHIFT_DMAH_USED		(dmah)
#else
#define SHIFT_DMAH_PARAM
#define SHIFT_DMAH_ARG
#define SHIFT_DMAH_NONE
#define SHIFT_DMAH_USED		false
#endif

/*
 * SHIFT_HAVE_REG_USER_MR_DMABUF_UDATA, _ATTRS, _DMAH (one of them): type of the
 * last argument of ib_device_ops.reg_user_mr_dmabuf; _DMAH is _ATTRS with a DMA
 * handle before it, and comes with SHIFT_HAVE_REG_USER_MR_DMAH.
 */
#ifdef SHIFT_HAVE_REG_USER_MR_DMABUF_UDATA
#define SHIFT_DMABUF_UDATA	struct ib_udata
#else
#define SHIFT_DMABUF_UDATA	struct uverbs_attr_bundle
#endif
#if defined(SHIFT_HAVE_REG_USER_MR_DMABUF_DMAH) != defined(SHIFT_HAVE_REG_USER_MR_DMAH)
#error "only one of reg_user_mr and reg_user_mr_dmabuf takes a DMA handle"
#endif

/*
 * SHIFT_HAVE_IB_UMEM_GET_VA: the name of what pins user memory by its address.
 */
#ifndef SHIFT_HAVE_IB_UMEM_GET_VA
#define ib_umem_get_va	ib_umem_get
#endif

/*
 * SHIFT_HAVE_SYNCHRONIZE_RCU_TASKS_RUDE: declared, and exported to modules.
 * Where it is not, the kernel has no tasks that synchronize_rcu_tasks() misses.
 */
static inline void shift_synchronize_rcu_tasks_rude(void)
{
#ifdef SHIFT_HAVE_SYNCHRONIZE_RCU_TASKS_RUDE
	synchronize_rcu_tasks_rude();
#endif
}

/*
 * SHIFT_HAVE_GET_MEM_CGROUP_FROM_MM: declared, and exported to modules.  Where it is not, nobody
 * can be charged for what is allocated outside of the process.
 */
static inline struct mem_cgroup *shift_memcg_get(struct mm_struct *mm)
{
#ifdef SHIFT_HAVE_GET_MEM_CGROUP_FROM_MM
	return get_mem_cgroup_from_mm(mm);
#else
	return NULL;
#endif
}

/*
 * SHIFT_HAVE_VM_FLAGS_SET: the flags of a mapping are changed by function.
 */
static inline void shift_vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
#ifdef SHIFT_HAVE_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

/* SHIFT_HAVE_RXE_FLUSH: rxe has FLUSH; used in provider/rxe/. */

/* the file of a struct fd; a macro where it exists, so it needs no probe */
#ifndef fd_file
#define fd_file(f)	((f).file)
#endif

#endif /* SHIFT_COMPAT_H */
