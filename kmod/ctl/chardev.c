// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/shift: what patched providers register.  See uapi/rdma/shift-abi.h.
 *
 * Nothing that a caller passes is trusted: fds and handles must name an object that
 * the same process made through the same uverbs file, addresses are pinned in
 * its own memory, ids are local to the open file (file.c).
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include "compat/compat.h"
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/pair.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/srq.h"
#include "core/stat.h"
#include "ctl/ctl.h"
#include "ctl/file.h"
#include "failover/failover.h"
#include "proxy/proxy.h"
#include "srq/srq.h"
#include "verbs/verbs.h"

#define ABI_OLDEST		7	/* version of a provider that is served */
#define SHIFT_SIDE_SHIFT	24	/* of an id in the mmap offset */

static int file_open(struct inode *inode, struct file *filp)
{
	struct shift_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return -ENOMEM;
	file->account = shift_account_open();
	if (!file->account) {
		kfree(file);
		return -ENOMEM;
	}
	xa_init_flags(&file->objects, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	file->mm = current->mm;
	mmgrab(file->mm);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static int file_release(struct inode *inode, struct file *filp)
{
	struct shift_file *file = filp->private_data;
	struct shift_obj *obj;
	unsigned long index;

	xa_for_each(&file->objects, index, obj) {
		shift_obj_drop(obj);
		shift_account_objects(file->account, -1);
	}
	xa_destroy(&file->objects);
	shift_account_close(file->account);
	mmdrop(file->mm);
	kfree(file);
	return 0;
}

/* The uverbs file behind @fd, only to compare: it may be closed right after. */
static void *uverbs_file(int fd)
{
	struct fd f = fdget(fd);
	void *ufile;

	if (!fd_file(f))
		return NULL;
	ufile = fd_file(f)->private_data;
	fdput(f);
	return ufile;
}

struct find {
	void *ufile;
	u32 handle;
	enum shift_obj_type type;
	struct shift_obj *found;	/* with a reference */
};

static int obj_find_in(struct shift_pair *pair, void *arg)
{
	struct shift_dev *sdev = pair->sdev;
	struct find *find = arg;
	struct shift_obj *obj;
	struct list_head *head;

	head = find->type == SHIFT_OBJ_CQ ? &sdev->cqs :
	       find->type == SHIFT_OBJ_SRQ ? &sdev->srqs : &sdev->qps;
	mutex_lock(&sdev->list_lock);
	list_for_each_entry(obj, head, list) {
		if (obj->ufile != find->ufile || obj->handle != find->handle ||
		    obj->mm != current->mm)
			continue;
		shift_obj_get(obj);
		find->found = obj;
		break;
	}
	mutex_unlock(&sdev->list_lock);
	return find->found ? 1 : 0;
}

static struct shift_obj *file_find(int cmd_fd, u32 handle, enum shift_obj_type type)
{
	struct find find = {
		.ufile = uverbs_file(cmd_fd), .handle = handle, .type = type,
	};

	if (find.ufile)
		shift_pair_walk(obj_find_in, &find);
	return find.found;
}

/**
 * struct ioc - what a caller passes
 * @arg: its structure.
 * @size: its bytes, of which a provider that is older or newer than we has fewer or more.
 */
struct ioc {
	void __user *arg;
	size_t size;
};

/* What the caller does not have is 0 here; what is unknown here has to be 0 there. */
static int ioc_get(const struct ioc *ioc, void *to, size_t size)
{
	return copy_struct_from_user(to, size, ioc->arg, ioc->size);
}

static long ioc_put(const struct ioc *ioc, const void *from, size_t size)
{
	return copy_to_user(ioc->arg, from, min(size, ioc->size)) ? -EFAULT : 0;
}

static bool version_is_known(u32 version)
{
	return version >= ABI_OLDEST && version <= SHIFT_ABI_VERSION;
}

static long ioc_register_cq(struct shift_file *file, const struct ioc *ioc)
{
	struct shift_abi_reg_cq reg;
	struct shift_obj *obj;
	int err;

	err = ioc_get(ioc, &reg, sizeof(reg));
	if (err)
		return err;
	if (!version_is_known(reg.abi_version))
		return -EPROTONOSUPPORT;
	if (reg.ring.reserved || reg.reserved)
		return -EINVAL;
	obj = file_find(reg.cmd_fd, reg.handle, SHIFT_OBJ_CQ);
	if (!obj)
		return -ENOENT;
	err = shift_cq_register(to_cq(obj), &reg);
	if (err) {
		shift_obj_put(obj);
		return err;
	}
	reg.side_len = to_cq(obj)->side_len;
	err = shift_file_add(file, obj, &reg.id);
	if (err)
		return err;
	reg.side_offset = (u64)reg.id << SHIFT_SIDE_SHIFT;
	/* on -EFAULT the object stays registered until close() */
	return ioc_put(ioc, &reg, sizeof(reg));
}

static long ioc_register_srq(struct shift_file *file, const struct ioc *ioc)
{
	struct shift_abi_reg_srq reg;
	struct shift_srq *ssrq;
	struct shift_obj *obj;
	int err;

	err = ioc_get(ioc, &reg, sizeof(reg));
	if (err)
		return err;
	if (!version_is_known(reg.abi_version))
		return -EPROTONOSUPPORT;
	if (reg.ring.reserved)
		return -EINVAL;
	obj = file_find(reg.cmd_fd, reg.handle, SHIFT_OBJ_SRQ);
	if (!obj)
		return -ENOENT;
	ssrq = to_srq(obj);
	err = shift_srq_register(ssrq, &reg);
	if (err) {
		shift_obj_put(obj);
		return err;
	}
	reg.key = ssrq->rings.key;
	reg.table_len = ssrq->rings.table_len;
	reg.entries = ssrq->rings.entries;
	reg.entry_size = ssrq->rings.entry_size;
	reg.entry_offset = ssrq->rings.entry_offset;
	reg.wqe_offset = ssrq->rings.wqe_offset;
	err = shift_file_add(file, obj, &reg.id);
	if (err)
		return err;
	reg.table_offset = (u64)reg.id << SHIFT_SIDE_SHIFT;
	return ioc_put(ioc, &reg, sizeof(reg));
}

static long ioc_register_qp(struct shift_file *file, const struct ioc *ioc)
{
	struct shift_abi_reg_qp reg;
	struct shift_obj *obj;
	int err;

	err = ioc_get(ioc, &reg, sizeof(reg));
	if (err)
		return err;
	if (!version_is_known(reg.abi_version))
		return -EPROTONOSUPPORT;
	if (reg.sq.reserved || reg.rq.reserved)
		return -EINVAL;
	obj = file_find(reg.cmd_fd, reg.handle, SHIFT_OBJ_QP);
	if (!obj)
		return -ENOENT;
	err = shift_qp_register(to_qp(obj), &reg);
	if (err) {
		shift_obj_put(obj);
		return err;
	}
	err = shift_file_add(file, obj, &reg.id);
	if (err)
		return err;
	return ioc_put(ioc, &reg, sizeof(reg));
}

static enum shift_obj_type object_type(u32 type)
{
	switch (type) {
	case SHIFT_ABI_CQ:
		return SHIFT_OBJ_CQ;
	case SHIFT_ABI_SRQ:
		return SHIFT_OBJ_SRQ;
	case SHIFT_ABI_QP:
		return SHIFT_OBJ_QP;
	default:
		return 0;
	}
}

static long ioc_unregister(struct shift_file *file, const struct ioc *ioc)
{
	struct shift_abi_id id;
	struct shift_obj *obj;
	long err;

	err = ioc_get(ioc, &id, sizeof(id));
	if (err)
		return err;
	obj = shift_file_take(file, id.id, object_type(id.type));
	if (!obj)
		return -ENOENT;
	if (obj->type == SHIFT_OBJ_CQ && to_cq(obj)->provider->cq->leaves)
		to_cq(obj)->provider->cq->leaves(to_cq(obj));
	shift_obj_drop(obj);
	return 0;
}

static struct shift_qp *file_qp(struct shift_file *file, u32 id)
{
	struct shift_obj *obj = shift_file_get(file, id, SHIFT_OBJ_QP);

	return obj ? to_qp(obj) : NULL;
}

static long ioc_wait(struct shift_file *file, const struct ioc *ioc)
{
	struct shift_abi_id id;
	struct shift_qp *sqp;
	long left, err;

	err = ioc_get(ioc, &id, sizeof(id));
	if (err)
		return err;
	if (id.type != SHIFT_ABI_QP)
		return -EINVAL;
	sqp = file_qp(file, id.id);
	if (!sqp)
		return -ENOENT;
	/* a signal does not end it: the provider would post in the middle of a fence */
	left = wait_event_killable_timeout(sqp->rings.gate_wait, !READ_ONCE(sqp->rings.held),
					   shift_scaled_jiffies(MSEC_PER_SEC));
	/* the work item lets it through when it is in no fence; the provider waits again */
	if (!left)
		shift_qp_kick(sqp, SHIFT_QPB_TIRED);
	shift_qp_put(sqp);
	return left > 0 ? 0 : left ? -EINTR : -ETIMEDOUT;
}

static long kick_srq(struct shift_file *file, u32 id)
{
	struct shift_obj *obj = shift_file_get(file, id, SHIFT_OBJ_SRQ);

	if (!obj)
		return -ENOENT;
	shift_srq_doorbell(to_srq(obj));
	shift_obj_put(obj);
	return 0;
}

/* In the thread that posts; sleeps only while the QP is being handed back. */
static long ioc_kick(struct shift_file *file, const struct ioc *ioc)
{
	struct shift_abi_id id;
	struct shift_qp *sqp;
	long err;

	err = ioc_get(ioc, &id, sizeof(id));
	if (err)
		return err;
	shift_stat_inc(SHIFT_STAT_KICKS);
	if (id.type == SHIFT_ABI_SRQ)
		return kick_srq(file, id.id);
	if (id.type != SHIFT_ABI_QP && id.type != SHIFT_ABI_RECV)
		return -EINVAL;
	sqp = file_qp(file, id.id);
	if (!sqp)
		return -ENOENT;
	if (READ_ONCE(sqp->rings.usable) && id.type == SHIFT_ABI_QP &&
	    sqp->rings.provider->flags & SHIFT_PROVIDES_SEND_KICKS) {
		/* again if posts were held meanwhile, as the work may not have been taken in */
		do {
			err = sqp->rings.rebases ? shift_handback_kick(sqp) : 0;
			if (!err)
				shift_replay_doorbell(sqp);
		} while (!err && READ_ONCE(sqp->handback.hold));
		if (err > 0)
			err = 0;	/* the kernel takes it in when the QP runs */
	}
	if (!err)
		shift_recv_doorbell(sqp);
	shift_qp_put(sqp);
	return err;
}

/* Does not sleep, as the calling provider holds spinlocks of its own. */
static long ioc_rebase(struct shift_file *file, const struct ioc *ioc)
{
	struct shift_abi_rebase base;
	struct shift_qp *sqp;
	long err;

	err = ioc_get(ioc, &base, sizeof(base));
	if (err)
		return err;
	sqp = file_qp(file, base.id);
	if (!sqp)
		return -ENOENT;
	err = READ_ONCE(sqp->rings.rebases) ? shift_handback_rebase(sqp, &base) : -EAGAIN;
	shift_qp_put(sqp);
	if (err)
		return err;
	return ioc_put(ioc, &base, sizeof(base));
}

static long ioc_empty(struct shift_file *file, const struct ioc *ioc)
{
	struct shift_abi_empty empty;
	struct shift_qp *sqp;
	long err;

	err = ioc_get(ioc, &empty, sizeof(empty));
	if (err)
		return err;
	sqp = file_qp(file, empty.id);
	if (!sqp)
		return -ENOENT;
	err = shift_srq_empty(sqp, &empty);
	shift_qp_put(sqp);
	return err;
}

static long ioc_cqe(struct shift_file *file, const struct ioc *ioc)
{
	struct shift_abi_cqe cqe;
	struct shift_obj *obj;
	struct shift_cq *scq;
	struct shift_qp *sqp;
	long err;

	err = ioc_get(ioc, &cqe, sizeof(cqe));
	if (err)
		return err;
	obj = shift_file_get(file, cqe.cq_id, SHIFT_OBJ_CQ);
	if (!obj)
		return -ENOENT;
	scq = to_cq(obj);

	cqe.answer = SHIFT_CQE_DELIVER;
	sqp = shift_qp_find_qpn(scq->sdev, cqe.qp_num);
	if (sqp) {
		/* the QP must be one that uses this CQ */
		if (sqp->scq == scq || sqp->rcq == scq)
			cqe.answer = shift_cqe_filter(sqp, scq, cqe.status, file->account);
		shift_qp_put(sqp);
	}
	shift_cq_put(scq);
	return ioc_put(ioc, &cqe, sizeof(cqe));
}

static long ioc_query(const struct ioc *ioc)
{
	struct shift_abi_query query;
	bool known;
	long err;

	err = ioc_get(ioc, &query, sizeof(query));
	if (err)
		return err;
	if (query.reserved)
		return -EINVAL;
	known = version_is_known(query.abi_version);
	if (!known)
		query.abi_version = SHIFT_ABI_VERSION;
	err = ioc_put(ioc, &query, sizeof(query));
	if (err)
		return err;
	return known ? 0 : -EPROTONOSUPPORT;
}

/* By number and not by size, so that structures can grow. */
static long file_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct shift_file *file = filp->private_data;
	const struct ioc ioc = { .arg = (void __user *)arg, .size = _IOC_SIZE(cmd) };

	if (file->mm != current->mm)
		return -EPERM;
	if (_IOC_TYPE(cmd) != _IOC_TYPE(SHIFT_IOC_QUERY))
		return -ENOTTY;
	switch (_IOC_NR(cmd)) {
	case _IOC_NR(SHIFT_IOC_QUERY):
		return ioc_query(&ioc);
	case _IOC_NR(SHIFT_IOC_REGISTER_CQ):
		return ioc_register_cq(file, &ioc);
	case _IOC_NR(SHIFT_IOC_REGISTER_QP):
		return ioc_register_qp(file, &ioc);
	case _IOC_NR(SHIFT_IOC_REGISTER_SRQ):
		return ioc_register_srq(file, &ioc);
	case _IOC_NR(SHIFT_IOC_UNREGISTER):
		return ioc_unregister(file, &ioc);
	case _IOC_NR(SHIFT_IOC_WAIT):
		return ioc_wait(file, &ioc);
	case _IOC_NR(SHIFT_IOC_CQE):
		return ioc_cqe(file, &ioc);
	case _IOC_NR(SHIFT_IOC_KICK):
		return ioc_kick(file, &ioc);
	case _IOC_NR(SHIFT_IOC_REBASE):
		return ioc_rebase(file, &ioc);
	case _IOC_NR(SHIFT_IOC_EMPTY):
		return ioc_empty(file, &ioc);
	default:
		return -ENOTTY;
	}
}

/* remap_vmalloc_range() takes only memory that is charged to nobody. */
static int map_pages(struct vm_area_struct *vma, void *pages, u32 len)
{
	u32 offset;
	int err = 0;

	if (vma->vm_end - vma->vm_start != len)
		return -EINVAL;
	/* no VM_DONTCOPY: the provider of a forked child looks here, as in the driver's rings */
	shift_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	for (offset = 0; !err && offset < len; offset += PAGE_SIZE)
		err = vm_insert_page(vma, vma->vm_start + offset,
				     vmalloc_to_page(pages + offset));
	return err;
}

/* mmap_lock is held: take only locks that nobody holds during a page fault or a pin. */
static int file_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct shift_file *file = filp->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct shift_obj *obj;
	int err = -EINVAL;

	if (file->mm != current->mm)
		return -EPERM;
	if (offset & ((1u << SHIFT_SIDE_SHIFT) - 1) || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (offset >> SHIFT_SIDE_SHIFT > U32_MAX)
		return -EINVAL;
	obj = shift_file_get(file, offset >> SHIFT_SIDE_SHIFT, 0);
	if (!obj)
		return -EINVAL;
	if (obj->type == SHIFT_OBJ_CQ)
		err = map_pages(vma, to_cq(obj)->side, to_cq(obj)->side_len);
	else if (obj->type == SHIFT_OBJ_SRQ)
		err = map_pages(vma, to_srq(obj)->rings.table, to_srq(obj)->rings.table_len);
	shift_obj_put(obj);
	return err;
}

static const struct file_operations shift_fops = {
	.owner = THIS_MODULE,
	.open = file_open,
	.release = file_release,
	.unlocked_ioctl = file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = file_mmap,
	.llseek = noop_llseek,
};

static struct miscdevice shift_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "shift",
	.fops = &shift_fops,
	.mode = 0666,
	.groups = shift_misc_groups,
};

int shift_chardev_init(void)
{
	return misc_register(&shift_misc);
}

void shift_chardev_uninit(void)
{
	misc_deregister(&shift_misc);
}
