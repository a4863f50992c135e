// SPDX-License-Identifier: GPL-2.0
/*
 * Does a NIC execute packets in order?  With adaptive routing and with selective repeat it does
 * not: Documentation/internals/mlx5.md, "Adaptive routing and selective repeat".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/mlx5/driver.h>
#include <linux/mlx5/device.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "provider/mlx5/order.h"

/*
 * The register ROCE_ACCL: kernel headers do not have it.  Its first word says which bits of the
 * second one are valid; both have the same numbers.
 */
#define ROCE_ACCL			0x402c
#define ROCE_ACCL_ADAPTIVE_ROUTING	BIT(5)
#define ROCE_ACCL_SELECTIVE_REPEAT	BIT(6)

struct roce_accl {
	__be32 valid, on;
	__be32 rest[30];
};

static_assert(sizeof(struct roce_accl) == 0x80);

/* The driver's handle of a NIC.  NULL: it is no PCI function of mlx5_core's, or a subfunction. */
static struct mlx5_core_dev *core_dev(const struct ib_device *ibdev)
{
	struct device *parent = ibdev->dev.parent;

	if (!parent || !parent->driver || strcmp(parent->driver->name, "mlx5_core"))
		return NULL;
	return dev_get_drvdata(parent);
}

/* The symbol is looked up, so that this module can be loaded without mlx5's driver. */
static int read_accl(struct mlx5_core_dev *mdev, u32 *on)
{
	typeof(mlx5_core_access_reg) *access_reg;
	struct roce_accl *reg;
	int err;

	access_reg = symbol_get(mlx5_core_access_reg);
	if (!access_reg)
		return -EOPNOTSUPP;
	/* one for what is asked, one for the answer */
	reg = kcalloc(2, sizeof(*reg), GFP_KERNEL);
	err = reg ? access_reg(mdev, &reg[0], sizeof(reg[0]), &reg[1], sizeof(reg[1]), ROCE_ACCL,
			       0, 0) : -ENOMEM;
	if (!err)
		*on = be32_to_cpu(reg[1].valid) & be32_to_cpu(reg[1].on);
	kfree(reg);
	symbol_put(mlx5_core_access_reg);
	return err;
}

/**
 * shift_mlx5_in_order - is nothing set that lets a device execute packets out of order?
 * @ibdev: the device; it stays meanwhile.
 *
 * What is forced on all QPs is asked for.  A NIC that does not tell counts as one that does it.
 *
 * Context: process context; sleeps, for one command of the device's.
 * Return: whether it is certain that neither is forced.
 */
bool shift_mlx5_in_order(struct ib_device *ibdev)
{
	struct mlx5_core_dev *mdev = core_dev(ibdev);
	const char *name = dev_name(&ibdev->dev);
	u32 on = 0;
	int err;

	if (mdev && !MLX5_CAP_GEN(mdev, roce_accl))
		return true;
	err = mdev ? read_accl(mdev, &on) : -ENODEV;
	if (err)
		pr_warn("%s does not tell whether packets land in order (ROCE_ACCL: %d)\n", name,
			err);
	if (on & ROCE_ACCL_ADAPTIVE_ROUTING)
		pr_warn("%s: adaptive routing is forced (ROCE_ACCL): packets land out of order\n",
			name);
	if (on & ROCE_ACCL_SELECTIVE_REPEAT)
		pr_warn("%s: selective repeat is forced (ROCE_ACCL): packets land out of order\n",
			name);
	return !err && !(on & (ROCE_ACCL_ADAPTIVE_ROUTING | ROCE_ACCL_SELECTIVE_REPEAT));
}
