/* SPDX-License-Identifier: GPL-2.0 */
/* Included by the compile probes only. */
#ifndef SHIFT_PROBE_H
#define SHIFT_PROBE_H

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/* Fails to compile unless a driver's operation has exactly this prototype, which kCFI compares. */
#define SHIFT_OP_IS(op, fn) \
	static_assert(__same_type(((struct ib_device_ops *)NULL)->op, (fn *)NULL))

#endif /* SHIFT_PROBE_H */
