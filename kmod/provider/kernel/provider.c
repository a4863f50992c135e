// SPDX-License-Identifier: GPL-2.0
/*
 * The kind of QPs of users in the kernel, whatever their device: its rings are the module's own.
 * So far it has CQs only.
 */
#include "core/kernel_cq.h"
#include "core/provider.h"
#include "provider/provider.h"

static const struct shift_cq_ops kernel_cq_ops = {
	.room = shift_kernel_cq_room,
	.put = shift_kernel_cq_put,
};

const struct shift_provider shift_provider_kernel = {
	.cq = &kernel_cq_ops,
};
