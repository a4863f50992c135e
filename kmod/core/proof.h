/* SPDX-License-Identifier: GPL-2.0 */
/* What a device was seen to do, of what its provider assumes. */
#ifndef SHIFT_CORE_PROOF_H
#define SHIFT_CORE_PROOF_H

#include <linux/bits.h>
#include <linux/types.h>
#include <linux/workqueue.h>

/* An assumption, by its number in Documentation/internals/mlx5.md. */
#define SHIFT_CLAIM(number)	BIT(number)

/**
 * struct shift_proof - what a device was seen to do
 * @work: tries it, one at a time.
 * @wanted: the device is, or was, in a pair; shift_devices_lock.
 * @held: assumptions that held when they were tried last.
 * @failed: those that did not.  If both are 0, nothing could be tried yet.
 *
 * @held and @failed are written by @work only.
 */
struct shift_proof {
	struct work_struct work;
	bool wanted;
	u32 held, failed;
};

#endif /* SHIFT_CORE_PROOF_H */
