// SPDX-License-Identifier: GPL-2.0
/* This node: its identity, and the scale of time on slow machines. */
#include <linux/module.h>
#include "core/node.h"

char shift_node[SHIFT_NODE_MAX];
u8 shift_boot_id[16];
struct workqueue_struct *shift_wq;

unsigned int shift_deadline_scale = 1;
module_param_named(deadline_scale, shift_deadline_scale, uint, 0644);
MODULE_PARM_DESC(deadline_scale, "multiplies every deadline (for slow machines)");
