// SPDX-License-Identifier: GPL-2.0
/*
 * Objects on NICs that the module makes for a process count for the process's rdma cgroup:
 * Documentation/internals/charges.md.
 *
 * Only the thread that runs can be charged, so that what a work item makes later is charged in a
 * verb of the application.  The RDMA core charges the application's own object before the driver
 * is called.  So after each verb that has made one, charges are given up until there is room for
 * the next ones.
 */
#include <linux/cgroup_rdma.h>
#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "core/charge.h"
#include "core/object.h"
#include "core/pair.h"

#define ROOM		32u	/* objects that are left to the application */
#define ROOM_KNOWN	16u	/* of which so many may be used before the room is tried again */
#define CHARGE_MAX	4u	/* objects of one charge on one device */

/**
 * struct shift_purse - what is charged to one cgroup on one device
 * @node: in the table, by @group.
 * @group: the cgroup; each of its charges keeps it.
 * @sdev: the device.
 * @parts: the charges, the newest first; not empty.
 * @room: objects for which there was room when it was tried last, less those made since then.
 */
struct shift_purse {
	struct hlist_node node;
	struct rdma_cgroup *group;
	struct shift_dev *sdev;
	struct list_head parts;
	unsigned int room;
};

/* Protects the table, all purses and all charges.  Taken inside all mutexes of the module. */
static DEFINE_MUTEX(charges_lock);
static DEFINE_HASHTABLE(purses, 6);

/*
 * Work items of failovers wait for the lock, and memory may be reclaimed through what they move.
 * So no allocation under it waits for I/O.
 */
static unsigned int charges_begin(void)
{
	mutex_lock(&charges_lock);
	return memalloc_noio_save();
}

static void charges_end(unsigned int noio)
{
	memalloc_noio_restore(noio);
	mutex_unlock(&charges_lock);
}

/*
 * Most processes have no limit, and most objects no charge, so that the lock is rarely taken.  Say
 * where it may be: lockdep then sees its order on each path, and not only under a cgroup's limit.
 */
static void charges_may_be_locked(void)
{
	might_sleep();
	might_lock(&charges_lock);
}

#ifdef CONFIG_CGROUP_RDMA

/* The caller's cgroup, only to compare; NULL: it is the root, which has no limit. */
static struct rdma_cgroup *group_of_caller(void)
{
	struct cgroup_subsys_state *css;
	bool limited;

	rcu_read_lock();
	css = task_css(current, rdma_cgrp_id);
	limited = css->parent;
	rcu_read_unlock();
	return limited ? container_of(css, struct rdma_cgroup, css) : NULL;
}

static int object_charge(struct shift_dev *sdev, struct rdma_cgroup **group)
{
	return rdmacg_try_charge(group, &sdev->ibdev->cg_device, RDMACG_RESOURCE_HCA_OBJECT);
}

static void object_uncharge(struct shift_dev *sdev, struct rdma_cgroup *group)
{
	rdmacg_uncharge(group, &sdev->ibdev->cg_device, RDMACG_RESOURCE_HCA_OBJECT);
}

#else /* nothing is ever charged */

static struct rdma_cgroup *group_of_caller(void)
{
	return NULL;
}

static int object_charge(struct shift_dev *sdev, struct rdma_cgroup **group)
{
	return -EOPNOTSUPP;
}

static void object_uncharge(struct shift_dev *sdev, struct rdma_cgroup *group)
{
}

#endif /* CONFIG_CGROUP_RDMA */

/* Charge up to @num objects to the caller; the number of those that were.  @groups: to whom. */
static unsigned int objects_charge(struct shift_dev *sdev, struct rdma_cgroup **groups,
				   unsigned int num)
{
	unsigned int n = 0;

	while (n < num && !object_charge(sdev, &groups[n]))
		n++;
	return n;
}

static void objects_uncharge(struct shift_dev *sdev, struct rdma_cgroup **groups, unsigned int num)
{
	while (num--)
		object_uncharge(sdev, groups[num]);
}

static struct shift_purse *purse_find(const struct rdma_cgroup *group, const struct shift_dev *sdev)
{
	struct shift_purse *purse;

	lockdep_assert_held(&charges_lock);
	hash_for_each_possible(purses, purse, node, (unsigned long)group)
		if (purse->group == group && purse->sdev == sdev)
			return purse;
	return NULL;
}

/* The purse of a cgroup; the caller has charged it, so that it stays.  NULL: no memory. */
static struct shift_purse *purse_get(struct rdma_cgroup *group, struct shift_dev *sdev)
{
	struct shift_purse *purse = purse_find(group, sdev);

	if (purse)
		return purse;
	purse = kzalloc(sizeof(*purse), GFP_KERNEL_ACCOUNT);
	if (!purse)
		return NULL;
	purse->group = group;
	purse->sdev = sdev;
	INIT_LIST_HEAD(&purse->parts);
	hash_add(purses, &purse->node, (unsigned long)group);
	return purse;
}

/* It goes with its last charge. */
static void purse_put(struct shift_purse *purse)
{
	lockdep_assert_held(&charges_lock);
	if (!list_empty(&purse->parts))
		return;
	hash_del(&purse->node);
	kfree(purse);
}

/*
 * The caller has made @num objects: is there room for more?  That cannot be read, only tried.  If
 * there is no room, there is none for anybody else while it is being tried.
 */
static bool purse_has_room(struct shift_purse *purse, unsigned int num)
{
	struct rdma_cgroup *groups[ROOM];
	unsigned int n;

	lockdep_assert_held(&charges_lock);
	if (purse->room >= ROOM - ROOM_KNOWN + num) {
		purse->room -= num;
		return true;
	}
	n = objects_charge(purse->sdev, groups, ROOM);
	objects_uncharge(purse->sdev, groups, n);
	purse->room = n == ROOM ? ROOM : 0;
	return purse->room;
}

static bool part_take(struct shift_charge *charge, struct shift_charge_part *part,
		      struct shift_dev *sdev, unsigned int num)
{
	struct rdma_cgroup *groups[CHARGE_MAX];
	struct shift_purse *purse;
	unsigned int i, n;

	lockdep_assert_held(&charges_lock);
	if (WARN_ON_ONCE(num > CHARGE_MAX))
		return false;
	if (!num)
		return true;
	n = objects_charge(sdev, groups, num);
	if (n < num)
		goto undo;
	/* the process may be moved to another cgroup at this moment */
	for (i = 1; i < num; i++)
		if (groups[i] != groups[0])
			goto undo;
	purse = purse_get(groups[0], sdev);
	if (!purse)
		goto undo;
	if (!purse_has_room(purse, num)) {
		purse_put(purse);
		goto undo;
	}
	part->purse = purse;
	part->charge = charge;
	part->num = num;
	list_add(&part->node, &purse->parts);
	return true;

undo:
	objects_uncharge(sdev, groups, n);
	return false;
}

static void part_drop(struct shift_charge_part *part)
{
	struct shift_purse *purse = part->purse;

	lockdep_assert_held(&charges_lock);
	if (!purse)
		return;
	while (part->num) {
		object_uncharge(purse->sdev, purse->group);
		part->num--;
	}
	list_del(&part->node);
	part->purse = NULL;
	purse_put(purse);
}

static void parts_drop(struct shift_charge *charge)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(charge->part); i++)
		part_drop(&charge->part[i]);
}

/* The charge is lacking from now on.  Returns whether its owner is to be told. */
static bool charge_lacks(struct shift_charge *charge)
{
	lockdep_assert_held(&charges_lock);
	WRITE_ONCE(charge->lacking, true);
	return charge->ops->lacks(charge->owner);
}

/**
 * shift_charge_take - charge the calling process for what may be made for an object of its own
 * @charge: of the object; zeroed.
 * @ops: what is to be done if it is refused, or given up later.
 * @owner: for @ops.
 * @pair: of the object.
 * @backup: objects on the backup device.
 * @home: objects on the default device.
 *
 * If it is refused the charge is lacking, and the owner is told.
 *
 * Context: process context of the owner, before anything is made.
 * Return: true; false: it is refused, and nothing may be made.
 */
bool shift_charge_take(struct shift_charge *charge, const struct shift_charge_ops *ops, void *owner,
		       struct shift_pair *pair, unsigned int backup, unsigned int home)
{
	bool taken, tell = false;
	unsigned int noio;

	charges_may_be_locked();
	/* the devices stay until the end of the use, and whoever removes one uncharges then */
	if (!group_of_caller() || !shift_pair_use(pair))
		return true;
	noio = charges_begin();
	charge->ops = ops;
	charge->owner = owner;
	taken = part_take(charge, &charge->part[0], pair->backup, backup) &&
		part_take(charge, &charge->part[1], pair->sdev, home);
	if (!taken) {
		parts_drop(charge);
		tell = charge_lacks(charge);
	}
	charges_end(noio);
	shift_pair_unuse(pair);
	if (tell)
		ops->tell(owner);
	return taken;
}

/**
 * shift_charge_move - let an object have the charge of the one that it replaces
 * @charge: of the new object; zeroed.
 * @from: of the old one, which is of the same kind and pair.
 * @owner: of the new one.
 *
 * Context: process context.
 * Return: false if there is none to be had.
 */
bool shift_charge_move(struct shift_charge *charge, struct shift_charge *from, void *owner)
{
	bool moved = false;
	int i;

	mutex_lock(&charges_lock);
	for (i = 0; i < ARRAY_SIZE(charge->part); i++) {
		struct shift_charge_part *old = &from->part[i], *new = &charge->part[i];

		if (!old->purse)
			continue;
		*new = *old;
		new->charge = charge;
		list_replace(&old->node, &new->node);
		old->purse = NULL;
		old->num = 0;
		moved = true;
	}
	if (moved) {
		charge->ops = from->ops;
		charge->owner = owner;
	}
	mutex_unlock(&charges_lock);
	return moved;
}

/**
 * shift_charge_drop - what was charged was destroyed, or will not be made
 * @charge: zeroed, or of shift_charge_take(); afterwards as if it were zeroed.
 *
 * Context: process context of any process.
 */
void shift_charge_drop(struct shift_charge *charge)
{
	const struct shift_charge_ops *ops = charge->ops;
	void *owner = charge->owner;
	bool tell;

	charges_may_be_locked();
	if (!ops)
		return;
	mutex_lock(&charges_lock);
	parts_drop(charge);
	tell = charge->lacking && ops->lacks_no_more(owner);
	WRITE_ONCE(charge->lacking, false);
	charge->ops = NULL;
	charge->owner = NULL;
	mutex_unlock(&charges_lock);
	if (tell)
		ops->tell(owner);
}

/* Give up the newest charge of the caller's cgroup, unless there is room: false. */
static bool give_up_one(struct shift_dev *sdev, const struct rdma_cgroup *group)
{
	struct shift_charge_part *newest;
	const struct shift_charge_ops *ops;
	struct shift_charge *charge;
	struct shift_purse *purse;
	unsigned int noio;
	void *owner;
	bool tell;

	noio = charges_begin();
	purse = purse_find(group, sdev);
	if (!purse || purse_has_room(purse, 1)) {
		charges_end(noio);
		return false;
	}
	newest = list_first_entry(&purse->parts, struct shift_charge_part, node);
	charge = newest->charge;
	ops = charge->ops;
	owner = charge->owner;
	parts_drop(charge);
	tell = charge_lacks(charge);
	charges_end(noio);
	if (tell)
		ops->tell(owner);
	return true;
}

/**
 * shift_charge_make_room - the calling process has made an object: let it make the next ones
 * @sdev: the device.
 *
 * Context: process context, after the verb.
 */
void shift_charge_make_room(struct shift_dev *sdev)
{
	const struct rdma_cgroup *group = group_of_caller();

	charges_may_be_locked();
	if (!group)
		return;
	while (give_up_one(sdev, group))
		;
}

/**
 * shift_charge_device_gone - a device goes, and the accounts of all cgroups for it
 * @sdev: the device; its pairs are empty, and no verb is under way.
 *
 * Context: process context.
 */
void shift_charge_device_gone(struct shift_dev *sdev)
{
	struct shift_charge_part *part, *next;
	struct shift_purse *purse;
	struct hlist_node *tmp;
	int i;

	mutex_lock(&charges_lock);
	hash_for_each_safe(purses, i, tmp, purse, node) {
		if (purse->sdev != sdev)
			continue;
		list_for_each_entry_safe(part, next, &purse->parts, node) {
			/* the last one frees the purse, and ends the loop */
			bool last = list_is_singular(&purse->parts);

			part_drop(part);
			if (last)
				break;
		}
	}
	mutex_unlock(&charges_lock);
}
