// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/shift: what patched providers register.  See uapi/rdma/shift-abi.h.
 *
 * A caller is trusted with nothing: fds and handles must name an object that
 * the same process made through the same uverbs file, addresses are pinned in
 * its own memory, ids are local to the open file.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include "compat/compat.h"
#include "provider.h"
#include "srq.h"
#include "sysfs.h"

#define SHIFT_SIDE_SHIFT	24	/* of an id in the mmap offset */
#define SHIFT_FILE_IDS		65535

/**
 * struct shift_file - one open of /dev/shift
 * @mm: who may use it; a forked child may not.
 * @lock: @objects, and that an object is not unregistered twice.
 * @objects: registered CQs, SRQs and QPs by id.
 */
struct shift_file {
	struct mm_struct *mm;
	struct mutex lock;
	struct xarray objects;
};

static int shift_open(struct inode *inode, struct file *filp)
{
	struct shift_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	mutex_init(&file->lock);
	xa_init_flags(&file->objects, XA_FLAGS_ALLOC1);
	file->mm = current->mm;
	mmgrab(file->mm);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static void file_drop(struct shift_obj *obj)
{
	if (obj->type == SHIFT_OBJ_CQ) {
		struct shift_cq *scq = container_of(obj, struct shift_cq, obj);

		shift_cq_unregister(scq);
		shift_cq_put(scq);
	} else if (obj->type == SHIFT_OBJ_SRQ) {
		struct shift_srq *ssrq = container_of(obj, struct shift_srq, obj);

		shift_srq_unregister(ssrq);
		shift_srq_put(ssrq);
	} else {
		struct shift_qp *sqp = container_of(obj, struct shift_qp, obj);

		shift_qp_unregister(sqp);
		shift_qp_put(sqp);
	}
}

static int shift_release(struct inode *inode, struct file *filp)
{
	struct shift_file *file = filp->private_data;
	struct shift_obj *obj;
	unsigned long index;

	xa_for_each(&file->objects, index, obj)
		file_drop(obj);
	xa_destroy(&file->objects);
	mmdrop(file->mm);
	kfree(file);
	return 0;
}

/* The uverbs file behind @fd, for comparison only: it may be gone right after. */
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

static bool owns(void *ufile, u32 handle, struct ib_uverbs_file *theirs,
		 u32 their_handle, struct mm_struct *mm)
{
	return ufile && ufile == theirs && handle == their_handle && mm == current->mm;
}

struct find {
	void *ufile;
	u32 handle;
	enum shift_obj_type type;
	struct shift_obj *found;	/* with a reference */
};

static int find_in(struct shift_dev *sdev, struct shift_dev *backup, void *arg)
{
	struct find *find = arg;
	struct shift_obj *obj;
	struct list_head *head;

	head = find->type == SHIFT_OBJ_CQ ? &sdev->cqs :
	       find->type == SHIFT_OBJ_SRQ ? &sdev->srqs : &sdev->qps;
	mutex_lock(&sdev->list_lock);
	list_for_each_entry(obj, head, list) {
		if (find->type == SHIFT_OBJ_CQ) {
			struct shift_cq *scq = container_of(obj, struct shift_cq, obj);

			if (!owns(find->ufile, find->handle, scq->ufile, scq->handle, scq->mm))
				continue;
			shift_cq_get(scq);
		} else if (find->type == SHIFT_OBJ_SRQ) {
			struct shift_srq *ssrq = container_of(obj, struct shift_srq, obj);

			if (!owns(find->ufile, find->handle, ssrq->ufile, ssrq->handle, ssrq->mm))
				continue;
			shift_srq_get(ssrq);
		} else {
			struct shift_qp *sqp = container_of(obj, struct shift_qp, obj);

			if (!owns(find->ufile, find->handle, sqp->ufile, sqp->handle, sqp->mm))
				continue;
			shift_qp_get(sqp);
		}
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
		shift_pair_walk(find_in, &find);
	return find.found;
}

static int file_add(struct shift_file *file, struct shift_obj *obj, u32 *id)
{
	return xa_alloc(&file->objects, id, obj, XA_LIMIT(1, SHIFT_FILE_IDS), GFP_KERNEL);
}

static long ioc_register_cq(struct shift_file *file, void __user *arg)
{
	struct shift_abi_reg_cq reg;
	struct shift_obj *obj;
	struct shift_cq *scq;
	int err;

	if (copy_from_user(&reg, arg, sizeof(reg)))
		return -EFAULT;
	if (reg.abi_version != SHIFT_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (reg.ring.reserved || reg.reserved)
		return -EINVAL;
	obj = file_find(reg.cmd_fd, reg.handle, SHIFT_OBJ_CQ);
	if (!obj)
		return -ENOENT;
	scq = container_of(obj, struct shift_cq, obj);
	err = shift_cq_register(scq, &reg);
	if (err)
		goto err_put;
	reg.side_len = scq->side_len;
	/* another thread may take it out again as soon as it is in */
	err = file_add(file, obj, &reg.id);
	if (err)
		goto err_unregister;
	reg.side_offset = (u64)reg.id << SHIFT_SIDE_SHIFT;
	/* on -EFAULT the object stays registered: close() takes it out */
	return copy_to_user(arg, &reg, sizeof(reg)) ? -EFAULT : 0;

err_unregister:
	shift_cq_unregister(scq);
err_put:
	shift_cq_put(scq);
	return err;
}

static long ioc_register_srq(struct shift_file *file, void __user *arg)
{
	struct shift_abi_reg_srq reg;
	struct shift_srq *ssrq;
	struct shift_obj *obj;
	int err;

	if (copy_from_user(&reg, arg, sizeof(reg)))
		return -EFAULT;
	if (reg.abi_version != SHIFT_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (reg.provider != SHIFT_PROVIDER_RXE || reg.ring.reserved)
		return -EINVAL;
	obj = file_find(reg.cmd_fd, reg.handle, SHIFT_OBJ_SRQ);
	if (!obj)
		return -ENOENT;
	ssrq = container_of(obj, struct shift_srq, obj);
	err = shift_srq_register(ssrq, &reg);
	if (err)
		goto err_put;
	reg.key = ssrq->key;
	reg.table_len = ssrq->table_len;
	reg.entries = ssrq->entries;
	reg.entry_size = ssrq->entry_size;
	reg.entry_offset = ssrq->entry_offset;
	err = file_add(file, obj, &reg.id);
	if (err)
		goto err_unregister;
	reg.table_offset = (u64)reg.id << SHIFT_SIDE_SHIFT;
	return copy_to_user(arg, &reg, sizeof(reg)) ? -EFAULT : 0;

err_unregister:
	shift_srq_unregister(ssrq);
err_put:
	shift_srq_put(ssrq);
	return err;
}

static long ioc_register_qp(struct shift_file *file, void __user *arg)
{
	struct shift_abi_reg_qp reg;
	struct shift_obj *obj;
	struct shift_qp *sqp;
	int err;

	if (copy_from_user(&reg, arg, sizeof(reg)))
		return -EFAULT;
	if (reg.abi_version != SHIFT_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (reg.sq.reserved || reg.rq.reserved)
		return -EINVAL;
	obj = file_find(reg.cmd_fd, reg.handle, SHIFT_OBJ_QP);
	if (!obj)
		return -ENOENT;
	sqp = container_of(obj, struct shift_qp, obj);
	err = shift_qp_register(sqp, &reg);
	if (err)
		goto err_put;
	err = file_add(file, obj, &reg.id);
	if (err)
		goto err_unregister;
	return copy_to_user(arg, &reg, sizeof(reg)) ? -EFAULT : 0;

err_unregister:
	shift_qp_unregister(sqp);
err_put:
	shift_qp_put(sqp);
	return err;
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

static long ioc_unregister(struct shift_file *file, void __user *arg)
{
	struct shift_abi_id id;
	struct shift_obj *obj;

	if (copy_from_user(&id, arg, sizeof(id)))
		return -EFAULT;
	mutex_lock(&file->lock);
	obj = xa_load(&file->objects, id.id);
	if (obj && obj->type == object_type(id.type))
		xa_erase(&file->objects, id.id);
	else
		obj = NULL;
	mutex_unlock(&file->lock);
	if (!obj)
		return -ENOENT;
	if (obj->type == SHIFT_OBJ_CQ)
		shift_tally_settle(container_of(obj, struct shift_cq, obj));
	file_drop(obj);
	return 0;
}

static struct shift_qp *file_qp(struct shift_file *file, u32 id)
{
	struct shift_obj *obj;
	struct shift_qp *sqp = NULL;

	mutex_lock(&file->lock);
	obj = xa_load(&file->objects, id);
	if (obj && obj->type == SHIFT_OBJ_QP) {
		sqp = container_of(obj, struct shift_qp, obj);
		shift_qp_get(sqp);
	}
	mutex_unlock(&file->lock);
	return sqp;
}

static long ioc_wait(struct shift_file *file, void __user *arg)
{
	struct shift_abi_id id;
	struct shift_qp *sqp;
	long left;

	if (copy_from_user(&id, arg, sizeof(id)))
		return -EFAULT;
	if (id.type != SHIFT_ABI_QP)
		return -EINVAL;
	sqp = file_qp(file, id.id);
	if (!sqp)
		return -ENOENT;
	left = wait_event_interruptible_timeout(sqp->gate_wait,
						!READ_ONCE(sqp->provider_held),
						HZ * max(READ_ONCE(shift_deadline_scale), 1u));
	shift_qp_put(sqp);
	return left > 0 ? 0 : left ? -EINTR : -ETIMEDOUT;
}

static long kick_srq(struct shift_file *file, u32 id)
{
	struct shift_srq *ssrq = NULL;
	struct shift_obj *obj;

	mutex_lock(&file->lock);
	obj = xa_load(&file->objects, id);
	if (obj && obj->type == SHIFT_OBJ_SRQ) {
		ssrq = container_of(obj, struct shift_srq, obj);
		shift_srq_get(ssrq);
	}
	mutex_unlock(&file->lock);
	if (!ssrq)
		return -ENOENT;
	shift_srq_doorbell(ssrq);
	shift_srq_put(ssrq);
	return 0;
}

/* The poster's thread: sleeps only while the QP is given back. */
static long ioc_kick(struct shift_file *file, void __user *arg)
{
	struct shift_abi_id id;
	struct shift_qp *sqp;
	long err = 0;

	if (copy_from_user(&id, arg, sizeof(id)))
		return -EFAULT;
	shift_stat_inc(SHIFT_STAT_KICKS);
	if (id.type == SHIFT_ABI_SRQ)
		return kick_srq(file, id.id);
	if (id.type != SHIFT_ABI_QP && id.type != SHIFT_ABI_RECV)
		return -EINVAL;
	sqp = file_qp(file, id.id);
	if (!sqp)
		return -ENOENT;
	if (READ_ONCE(sqp->registered) && sqp->provider->kick_sends && id.type == SHIFT_ABI_QP) {
		/* once more if it was held meanwhile: then it was perhaps not taken in */
		do {
			err = sqp->rebases ? shift_own_kick(sqp) : 0;
			if (!err)
				shift_replay_doorbell(sqp);
		} while (!err && READ_ONCE(sqp->own_hold));
		if (err > 0)
			err = 0;	/* with what is taken in when it runs */
	}
	if (!err)
		shift_recv_doorbell(sqp);
	shift_qp_put(sqp);
	return err;
}

/* The provider holds locks: nothing here sleeps. */
static long ioc_rebase(struct shift_file *file, void __user *arg)
{
	struct shift_abi_rebase base;
	struct shift_qp *sqp;
	long err;

	if (copy_from_user(&base, arg, sizeof(base)))
		return -EFAULT;
	sqp = file_qp(file, base.id);
	if (!sqp)
		return -ENOENT;
	err = READ_ONCE(sqp->rebases) ? shift_own_rebase(sqp, &base) : -EAGAIN;
	shift_qp_put(sqp);
	if (err)
		return err;
	return copy_to_user(arg, &base, sizeof(base)) ? -EFAULT : 0;
}

static long ioc_cqe(struct shift_file *file, void __user *arg)
{
	struct shift_abi_cqe cqe;
	struct shift_obj *obj;
	struct shift_cq *scq = NULL;
	struct shift_qp *sqp;

	if (copy_from_user(&cqe, arg, sizeof(cqe)))
		return -EFAULT;
	mutex_lock(&file->lock);
	obj = xa_load(&file->objects, cqe.cq_id);
	if (obj && obj->type == SHIFT_OBJ_CQ) {
		scq = container_of(obj, struct shift_cq, obj);
		shift_cq_get(scq);
	}
	mutex_unlock(&file->lock);
	if (!scq)
		return -ENOENT;

	cqe.verdict = SHIFT_CQE_DELIVER;
	sqp = shift_qp_find_qpn(scq->sdev, cqe.qp_num);
	if (sqp) {
		/* only of a QP that completes into this very CQ */
		if (sqp->scq == scq || sqp->rcq == scq)
			cqe.verdict = shift_switch_verdict(sqp, scq, cqe.status);
		shift_qp_put(sqp);
	}
	shift_cq_put(scq);
	return copy_to_user(arg, &cqe, sizeof(cqe)) ? -EFAULT : 0;
}

static long ioc_query(void __user *arg)
{
	struct shift_abi_query query;
	bool same;

	if (copy_from_user(&query, arg, sizeof(query)))
		return -EFAULT;
	if (query.reserved)
		return -EINVAL;
	same = query.abi_version == SHIFT_ABI_VERSION;
	query.abi_version = SHIFT_ABI_VERSION;
	if (copy_to_user(arg, &query, sizeof(query)))
		return -EFAULT;
	return same ? 0 : -EPROTONOSUPPORT;
}

static long shift_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct shift_file *file = filp->private_data;
	void __user *user = (void __user *)arg;

	if (file->mm != current->mm)
		return -EPERM;
	switch (cmd) {
	case SHIFT_IOC_QUERY:
		return ioc_query(user);
	case SHIFT_IOC_REGISTER_CQ:
		return ioc_register_cq(file, user);
	case SHIFT_IOC_REGISTER_QP:
		return ioc_register_qp(file, user);
	case SHIFT_IOC_REGISTER_SRQ:
		return ioc_register_srq(file, user);
	case SHIFT_IOC_UNREGISTER:
		return ioc_unregister(file, user);
	case SHIFT_IOC_WAIT:
		return ioc_wait(file, user);
	case SHIFT_IOC_CQE:
		return ioc_cqe(file, user);
	case SHIFT_IOC_KICK:
		return ioc_kick(file, user);
	case SHIFT_IOC_REBASE:
		return ioc_rebase(file, user);
	default:
		return -ENOTTY;
	}
}

static int map_pages(struct vm_area_struct *vma, void *pages, u32 len)
{
	if (vma->vm_end - vma->vm_start != len)
		return -EINVAL;
	shift_vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND);
	return remap_vmalloc_range(vma, pages, 0);
}

/* mmap_lock is held: no lock here may be held around a fault or a pin. */
static int shift_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct shift_file *file = filp->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct shift_srq *ssrq = NULL;
	struct shift_cq *scq = NULL;
	struct shift_obj *obj;
	int err = -EINVAL;

	if (file->mm != current->mm)
		return -EPERM;
	if (offset & ((1u << SHIFT_SIDE_SHIFT) - 1) || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	xa_lock(&file->objects);
	obj = xa_load(&file->objects, offset >> SHIFT_SIDE_SHIFT);
	if (obj && obj->type == SHIFT_OBJ_CQ) {
		scq = container_of(obj, struct shift_cq, obj);
		shift_cq_get(scq);
	} else if (obj && obj->type == SHIFT_OBJ_SRQ) {
		ssrq = container_of(obj, struct shift_srq, obj);
		shift_srq_get(ssrq);
	}
	xa_unlock(&file->objects);
	if (scq) {
		err = map_pages(vma, scq->side, scq->side_len);
		shift_cq_put(scq);
	} else if (ssrq) {
		err = map_pages(vma, ssrq->table, ssrq->table_len);
		shift_srq_put(ssrq);
	}
	return err;
}

static const struct file_operations shift_fops = {
	.owner = THIS_MODULE,
	.open = shift_open,
	.release = shift_release,
	.unlocked_ioctl = shift_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = shift_mmap,
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
