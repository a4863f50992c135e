// SPDX-License-Identifier: GPL-2.0
/* The lifetime of pairs, and how they are found. */
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include "core/object.h"
#include "core/pair.h"

LIST_HEAD(shift_pairs);

/**
 * shift_pair_new - make a pair; the caller adds it to shift_pairs and sets sdev->pair
 * @sdev: the default device.
 * @backups: at least one; the first is used.
 * @num: their number.
 *
 * Context: process context.
 * Return: the pair, or NULL: no memory.
 */
struct shift_pair *shift_pair_new(struct shift_dev *sdev, struct shift_dev *const *backups,
				  unsigned int num)
{
	struct shift_pair *pair = kzalloc(sizeof(*pair), GFP_NOIO);
	unsigned int i;

	if (!pair)
		return NULL;
	kref_init(&pair->ref);
	INIT_LIST_HEAD(&pair->list);
	pair->sdev = shift_dev_get(sdev);
	pair->backup = shift_dev_get(backups[0]);
	for (i = 0; i < num; i++)
		pair->backups[i] = shift_dev_get(backups[i]);
	pair->num_backups = num;
	refcount_set(&pair->users, 1);
	init_completion(&pair->unused);
	init_completion(&pair->empty);
	return pair;
}

void shift_pair_get(struct shift_pair *pair)
{
	kref_get(&pair->ref);
}

static void pair_release(struct kref *ref)
{
	struct shift_pair *pair = container_of(ref, struct shift_pair, ref);
	unsigned int i;

	WARN_ON_ONCE(atomic_read(&pair->mirrors));
	for (i = 0; i < pair->num_backups; i++)
		shift_dev_put(pair->backups[i]);
	shift_dev_put(pair->backup);
	shift_dev_put(pair->sdev);
	kfree_rcu(pair, rcu);
}

void shift_pair_put(struct shift_pair *pair)
{
	if (pair)
		kref_put(&pair->ref, pair_release);
}

/* The pair that objects of @sdev made from now on belong to; any context. */
struct shift_pair *shift_pair_of(struct shift_dev *sdev)
{
	struct shift_pair *pair;

	rcu_read_lock();
	pair = rcu_dereference(sdev->pair);
	if (pair && !kref_get_unless_zero(&pair->ref))
		pair = NULL;
	rcu_read_unlock();
	return pair;
}

struct shift_pair *shift_pair_locked(struct shift_dev *sdev)
{
	return rcu_dereference_protected(sdev->pair, lockdep_is_held(&shift_devices_lock));
}

/**
 * shift_pair_use - begin to make something on the backup
 * @pair: the pair of an object that the caller holds; or NULL.
 *
 * The backup device stays until shift_pair_unuse().  When the pair dies, what was made on the
 * backup by then is found and dropped.  The caller may sleep for as long as a process likes: only
 * the end of the pair waits for it.
 *
 * Context: any.
 * Return: false if the pair is dying.
 */
bool shift_pair_use(struct shift_pair *pair)
{
	return pair && !READ_ONCE(pair->dying) && refcount_inc_not_zero(&pair->users);
}

void shift_pair_unuse(struct shift_pair *pair)
{
	if (refcount_dec_and_test(&pair->users))
		complete_all(&pair->unused);
}

/* An MR or SRQ was made on the backup; shift_pair_drop_mirror() when it is destroyed. */
void shift_pair_add_mirror(struct shift_pair *pair)
{
	WARN_ON_ONCE(!refcount_read(&pair->users));
	atomic_inc(&pair->mirrors);
}

/* An MR or SRQ on the backup was destroyed; the caller holds an object of the pair. */
void shift_pair_drop_mirror(struct shift_pair *pair)
{
	if (atomic_dec_and_test(&pair->mirrors))
		wake_up_var(&pair->mirrors);
}

/**
 * shift_pair_die - allow nothing more to be made on the backup
 * @pair: the pair, which is to end.
 *
 * Context: process context; waits for all users of shift_pair_use().
 * Return: true for the one caller that is then to destroy what the pair has on the backup.
 */
bool shift_pair_die(struct shift_pair *pair)
{
	if (xchg(&pair->dying, true))
		return false;
	shift_pair_unuse(pair);
	wait_for_completion(&pair->unused);
	return true;
}

int shift_pair_walk(int (*fn)(struct shift_pair *pair, void *arg), void *arg)
{
	struct shift_pair *pair;
	int err = 0;

	mutex_lock(&shift_devices_lock);
	list_for_each_entry(pair, &shift_pairs, list) {
		if (shift_pair_locked(pair->sdev) != pair)
			continue;
		err = fn(pair, arg);
		if (err)
			break;
	}
	mutex_unlock(&shift_devices_lock);
	return err;
}
