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
#include "shift.h"
#include "sysfs.h"

#define SHIFT_SIDE_MAX		4096u
#define SHIFT_SIDE_SHIFT	24	/* of an id in the mmap offset */
#define SHIFT_FILE_IDS		65535

/**
 * struct shift_file - one open of /dev/shift
 * @mm: who may use it; a forked child may not.
 * @lock: @objects, and that an object is not unregistered twice.
 * @objects: registered CQs and QPs by id.
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

	head = find->type == SHIFT_OBJ_CQ ? &sdev->cqs : &sdev->qps;
	mutex_lock(&sdev->list_lock);
	list_for_each_entry(obj, head, list) {
		if (find->type == SHIFT_OBJ_CQ) {
			struct shift_cq *scq = container_of(obj, struct shift_cq, obj);

			if (!owns(find->ufile, find->handle, scq->ufile, scq->handle, scq->mm))
				continue;
			shift_cq_get(scq);
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

static int cq_register(struct shift_cq *scq, const struct shift_abi_reg_cq *reg)
{
	struct shift_abi_side *side = NULL;
	struct shift_ring ring;
	struct shift_word flag;
	u32 entries, len;
	int err;

	err = shift_ring_pin_rxe(&ring, reg->ring.addr, reg->ring.len);
	if (err)
		return err;
	err = ring.slot_size < sizeof(struct ib_uverbs_wc) + sizeof(u64) ? -EINVAL : 0;
	if (!err)
		err = shift_word_pin(&flag, reg->flag_addr);
	if (err)
		goto err_ring;

	entries = clamp_t(u32, roundup_pow_of_two(scq->cqe + 1), 16, SHIFT_SIDE_MAX);
	len = PAGE_ALIGN(struct_size(side, wc, entries));
	side = vmalloc_user(len);
	if (!side) {
		err = -ENOMEM;
		goto err_flag;
	}
	side->entries = entries;

	spin_lock_bh(&scq->lock);
	if (scq->registered) {
		spin_unlock_bh(&scq->lock);
		vfree(side);
		err = -EEXIST;
		goto err_flag;
	}
	scq->ring = ring;
	scq->flag = flag;
	if (!scq->side) {
		scq->side = side;
		scq->side_len = len;
		scq->side_entries = entries;
		side = NULL;
	}
	scq->registered = true;
	if (scq->side_producer != READ_ONCE(scq->side->consumer))
		shift_word_write(&scq->flag, SHIFT_CQ_FLAG_SIDE);
	spin_unlock_bh(&scq->lock);
	vfree(side);	/* registered again after a resize: the old one goes on */
	return 0;

err_flag:
	shift_word_unpin(&flag);
err_ring:
	shift_ring_unpin(&ring);
	return err;
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
	if (reg.provider != SHIFT_PROVIDER_RXE || reg.ring.reserved)
		return -EINVAL;
	obj = file_find(reg.cmd_fd, reg.handle, SHIFT_OBJ_CQ);
	if (!obj)
		return -ENOENT;
	scq = container_of(obj, struct shift_cq, obj);
	err = cq_register(scq, &reg);
	if (err)
		goto err_put;
	err = file_add(file, obj, &reg.id);
	if (err)
		goto err_unregister;
	reg.side_len = scq->side_len;
	reg.side_offset = (u64)reg.id << SHIFT_SIDE_SHIFT;
	/* on -EFAULT the object stays registered: close() takes it out */
	return copy_to_user(arg, &reg, sizeof(reg)) ? -EFAULT : 0;

err_unregister:
	shift_cq_unregister(scq);
err_put:
	shift_cq_put(scq);
	return err;
}

struct qp_pins {
	struct shift_ring sq, rq;
	struct shift_word gate, sq_lock, rq_lock;
};

static void pins_drop(struct qp_pins *pins)
{
	shift_word_unpin(&pins->rq_lock);
	shift_word_unpin(&pins->sq_lock);
	shift_word_unpin(&pins->gate);
	shift_ring_unpin(&pins->rq);
	shift_ring_unpin(&pins->sq);
}

static int pins_take(struct qp_pins *pins, const struct shift_abi_reg_qp *reg)
{
	int err;

	memset(pins, 0, sizeof(*pins));
	err = shift_ring_pin_rxe(&pins->sq, reg->sq.addr, reg->sq.len);
	if (!err && reg->rq.addr)
		err = shift_ring_pin_rxe(&pins->rq, reg->rq.addr, reg->rq.len);
	if (!err)
		err = shift_word_pin(&pins->gate, reg->flag_addr);
	if (!err)
		err = shift_word_pin(&pins->sq_lock, reg->sq_lock_addr);
	if (!err && reg->rq.addr)
		err = shift_word_pin(&pins->rq_lock, reg->rq_lock_addr);
	if (!err && pins->sq.slot_size < shift_rxe_slot_min())
		err = -EINVAL;
	if (!err && pins->rq.npages && pins->rq.slot_size < shift_rxe_recv_slot_min())
		err = -EINVAL;
	if (err)
		pins_drop(pins);
	return err;
}

static int qp_register(struct shift_qp *sqp, const struct shift_abi_reg_qp *reg)
{
	struct shift_entry *entry = NULL;
	struct shift_recvs recvs = {};
	struct qp_pins pins;
	void *raw = NULL;
	int err;

	err = pins_take(&pins, reg);
	if (err)
		return err;
	entry = kvcalloc(pins.sq.slots, sizeof(*entry), GFP_KERNEL);
	raw = kvcalloc(pins.sq.slots, pins.sq.slot_size, GFP_KERNEL);
	err = shift_recv_init(&recvs, &pins.rq);
	if (!entry || !raw || err) {
		err = -ENOMEM;
		goto err_free;
	}

	mutex_lock(&sqp->lock);
	if (!sqp->qp || sqp->registered || sqp->ledger.entry) {
		err = sqp->qp ? -EEXIST : -ENOENT;
		goto err_unlock;
	}
	if (sqp->reason != SHIFT_REASON_NO_PROVIDER || sqp->app_state != IB_QPS_RESET) {
		err = -EOPNOTSUPP;	/* not one that could be protected */
		goto err_unlock;
	}
	if (!READ_ONCE(sqp->scq->registered) || !READ_ONCE(sqp->rcq->registered)) {
		err = -ENOENT;
		goto err_unlock;
	}
	sqp->sq = pins.sq;
	sqp->rq = pins.rq;
	sqp->gate = pins.gate;
	sqp->sq_lock = pins.sq_lock;
	sqp->rq_lock = pins.rq_lock;
	sqp->lock_free = reg->lock_free;
	shift_ledger_init(&sqp->ledger, entry, raw, pins.sq.slots, pins.sq.slot_size);
	sqp->recvs = recvs;
	sqp->registered = true;
	sqp->reason = SHIFT_REASON_NOT_RTS;
	mutex_unlock(&sqp->lock);
	return 0;

err_unlock:
	mutex_unlock(&sqp->lock);
err_free:
	shift_recv_free(&recvs);
	kvfree(raw);
	kvfree(entry);
	pins_drop(&pins);
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
	if (reg.provider != SHIFT_PROVIDER_RXE || reg.sq.reserved || reg.rq.reserved)
		return -EINVAL;
	obj = file_find(reg.cmd_fd, reg.handle, SHIFT_OBJ_QP);
	if (!obj)
		return -ENOENT;
	sqp = container_of(obj, struct shift_qp, obj);
	err = qp_register(sqp, &reg);
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

static long ioc_unregister(struct shift_file *file, void __user *arg)
{
	struct shift_abi_id id;
	struct shift_obj *obj;

	if (copy_from_user(&id, arg, sizeof(id)))
		return -EFAULT;
	mutex_lock(&file->lock);
	obj = xa_load(&file->objects, id.id);
	if (obj && obj->type == (id.type == SHIFT_ABI_CQ ? SHIFT_OBJ_CQ : SHIFT_OBJ_QP))
		xa_erase(&file->objects, id.id);
	else
		obj = NULL;
	mutex_unlock(&file->lock);
	if (!obj)
		return -ENOENT;
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

/* The poster's thread; takes spinlocks only. */
static long ioc_kick(struct shift_file *file, void __user *arg)
{
	struct shift_abi_id id;
	struct shift_qp *sqp;

	if (copy_from_user(&id, arg, sizeof(id)))
		return -EFAULT;
	if (id.type != SHIFT_ABI_QP)
		return -EINVAL;
	sqp = file_qp(file, id.id);
	if (!sqp)
		return -ENOENT;
	shift_recv_doorbell(sqp);
	shift_qp_put(sqp);
	return 0;
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
			cqe.verdict = shift_switch_verdict(sqp, cqe.status);
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
	case SHIFT_IOC_UNREGISTER:
		return ioc_unregister(file, user);
	case SHIFT_IOC_WAIT:
		return ioc_wait(file, user);
	case SHIFT_IOC_CQE:
		return ioc_cqe(file, user);
	case SHIFT_IOC_KICK:
		return ioc_kick(file, user);
	default:
		return -ENOTTY;
	}
}

/* mmap_lock is held: no lock here may be held around a fault or a pin. */
static int shift_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct shift_file *file = filp->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
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
	}
	xa_unlock(&file->objects);
	if (!scq)
		return -EINVAL;
	if (vma->vm_end - vma->vm_start == scq->side_len) {
		shift_vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND);
		err = remap_vmalloc_range(vma, scq->side, 0);
	}
	shift_cq_put(scq);
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
