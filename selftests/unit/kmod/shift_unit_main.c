// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the unit tests of the pure parts in the kernel: KTAP in the log.  The
 * module never stays: loading it gives -EAGAIN if all passed, -EINVAL if not.
 */
#include <linux/init.h>
#include <linux/module.h>
#include "ktap.h"

static bool stay;
module_param(stay, bool, 0444);
MODULE_PARM_DESC(stay, "stay loaded if all tests passed");

static int __init shift_unit_init(void)
{
	unsigned long checks;
	unsigned int bad;

	bad = ktap_run(NULL, &checks);
	pr_info("# shift_unit: %s, %lu expectations\n", bad ? "FAILED" : "passed",
		checks);
	if (bad)
		return -EINVAL;
	return stay ? 0 : -EAGAIN;
}

static void __exit shift_unit_exit(void)
{
}

module_init(shift_unit_init);
module_exit(shift_unit_exit);
MODULE_DESCRIPTION("Unit tests of rdma_shift's pure parts");
MODULE_LICENSE("GPL");
