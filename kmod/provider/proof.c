// SPDX-License-Identifier: GPL-2.0
/*
 * Devices prove what their provider assumes of them, before anything depends on it:
 * Documentation/internals/mlx5.md, "A NIC proves itself".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "core/event.h"
#include "core/object.h"
#include "core/pair.h"
#include "core/provider.h"
#include "provider/provider.h"

/* Tell operators of all pairs that have the device; shift_devices_lock. */
static void proof_notify(const struct shift_dev *sdev)
{
	struct shift_pair *pair;

	lockdep_assert_held(&shift_devices_lock);
	list_for_each_entry(pair, &shift_pairs, list)
		if (shift_pair_locked(pair->sdev) == pair &&
		    (pair->sdev == sdev || pair->backup == sdev))
			shift_notify_pair(pair, SHIFT_PAIR_CHANGED);
}

/* The device stays meanwhile: its removal waits for this. */
static void proof_work(struct work_struct *work)
{
	struct shift_dev *sdev = container_of(work, struct shift_dev, proof.work);
	DECLARE_BITMAP(numbers, 32);
	u32 held = 0, failed = 0;
	int err;

	err = sdev->provider->prove(sdev->ibdev, &held, &failed);
	if (err) {
		held = 0;
		failed = 0;
	}
	bitmap_from_arr32(numbers, &failed, 32);

	mutex_lock(&shift_devices_lock);
	if (err)
		pr_warn("%s could not be tried (%d): new QPs are not protected by it\n", sdev->name,
			err);
	else if (failed)
		pr_warn("%s does not do what is assumed of it: %*pbl of mlx5.md\n", sdev->name, 32,
			numbers);
	if (held != sdev->proof.held || failed != sdev->proof.failed) {
		WRITE_ONCE(sdev->proof.failed, failed);
		WRITE_ONCE(sdev->proof.held, held);
		proof_notify(sdev);
	}
	mutex_unlock(&shift_devices_lock);
}

void shift_proof_init(struct shift_dev *sdev)
{
	INIT_WORK(&sdev->proof.work, proof_work);
}

/**
 * shift_proof_begin - let a device prove what its provider assumes
 * @sdev: a device that was not removed.
 *
 * Context: process context, shift_devices_lock; shift_proof_wait() tells when it is over.
 */
void shift_proof_begin(struct shift_dev *sdev)
{
	lockdep_assert_held(&shift_devices_lock);
	if (!sdev->provider->prove)
		return;
	sdev->proof.wanted = true;
	queue_work(system_unbound_wq, &sdev->proof.work);
}

/* Wait until a device was tried, for seconds at most (scaled).  The caller holds a reference. */
void shift_proof_wait(struct shift_dev *sdev)
{
	flush_work(&sdev->proof.work);
}

/* The device is being removed.  Nobody lets it begin again, as nobody finds it by its name. */
void shift_proof_end(struct shift_dev *sdev)
{
	cancel_work_sync(&sdev->proof.work);
}

/* A device's port is up, or it has another address: try what could not be tried before. */
void shift_proof_again(struct shift_dev *sdev)
{
	mutex_lock(&shift_devices_lock);
	if (sdev->proof.wanted && !sdev->proof.held && !sdev->proof.failed)
		shift_proof_begin(sdev);
	mutex_unlock(&shift_devices_lock);
}

/* Does the device what a provider assumes?  @claims: SHIFT_CLAIM() of each; any context. */
bool shift_proof_holds(const struct shift_dev *sdev, u32 claims)
{
	return (READ_ONCE(sdev->proof.held) & claims) == claims;
}
