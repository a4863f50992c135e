/* SPDX-License-Identifier: GPL-2.0 */
/* Pairs: a default device and its backups. */
#ifndef SHIFT_CORE_PAIR_H
#define SHIFT_CORE_PAIR_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/rcupdate.h>
#include <uapi/linux/shift.h>

struct shift_dev;

/**
 * struct shift_pair - a default device and its backups
 * @ref: held by sdev->pair, by each PD that was made under the pair, and by whoever looked it up.
 * @list: in shift_pairs until it is empty; shift_devices_lock.
 * @sdev: the default device.
 * @backup: the backup that is in use; it stays the same as long as the pair lasts.
 * @backups: all backups, @backup among them, the preferred one first; shift_devices_lock.
 * @num_backups: their number; shift_devices_lock.
 * @policy: enum shift_policy.
 * @drained: an operator keeps QPs off @sdev.
 * @mtu: of the interface of @backup, when it was looked at; shift_devices_lock.
 * @dying: nothing more is made on @backup.
 * @users: number of threads that make something on @backup; and one more until the pair is dying.
 * @unused: completed when @users is 0.
 * @mirrors: MRs and SRQs that are on @backup.
 * @empty: nothing of the pair is on @backup any more.
 *
 * When @backup is removed, or an operator deletes the pair, the pair is dying.  If another backup
 * takes over, that is a new pair.  Objects belong to the pair that they were made under until they
 * are destroyed.
 */
struct shift_pair {
	struct kref ref;
	struct list_head list;
	struct shift_dev *sdev, *backup;
	struct shift_dev *backups[SHIFT_PAIR_BACKUPS_MAX];
	unsigned int num_backups;
	u32 policy;
	bool drained;
	u32 mtu;
	bool dying;
	refcount_t users;
	struct completion unused;
	atomic_t mirrors;
	struct completion empty;
	struct rcu_head rcu;
};

extern struct list_head shift_pairs;	/* with dying pairs; shift_devices_lock */

struct shift_pair *shift_pair_new(struct shift_dev *sdev, struct shift_dev *const *backups,
				  unsigned int num);
void shift_pair_get(struct shift_pair *pair);
void shift_pair_put(struct shift_pair *pair);	/* process context; or NULL */
struct shift_pair *shift_pair_of(struct shift_dev *sdev);	/* with a reference, or NULL */
struct shift_pair *shift_pair_locked(struct shift_dev *sdev);	/* shift_devices_lock */
bool shift_pair_use(struct shift_pair *pair);
void shift_pair_unuse(struct shift_pair *pair);
void shift_pair_add_mirror(struct shift_pair *pair);	/* between use and unuse */
void shift_pair_drop_mirror(struct shift_pair *pair);
bool shift_pair_die(struct shift_pair *pair);
/* calls @fn for every pair that is not dying, under shift_devices_lock; stops at non-zero */
int shift_pair_walk(int (*fn)(struct shift_pair *pair, void *arg), void *arg);

#endif /* SHIFT_CORE_PAIR_H */
