// SPDX-License-Identifier: GPL-2.0
/*
 * What mlx5_core would be below the ib_device: a parent that is bound to a driver of that name, the
 * handle of the NIC behind it, and the one function of mlx5_core's that the module under test calls.
 * The bits that are forced by the register ROCE_ACCL are debugfs' "roce_accl".
 */
#include <linux/export.h>
#include <linux/mlx5/driver.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include "mlx5_soft.h"

#define ROCE_ACCL	0x402c

struct mls_nic {
	struct platform_device *pdev;
	struct mls_dev *dev;
	struct mlx5_hca_cap cap;
	struct mlx5_core_dev mdev;
};

static struct platform_driver driver = {
	.driver = { .name = "mlx5_core" },
};

/* As mlx5_core's: the answer is as long as the caller says. */
int mlx5_core_access_reg(struct mlx5_core_dev *mdev, void *data_in, int size_in, void *data_out,
			 int size_out, u16 reg_num, int arg, int write)
{
	struct mls_dev *dev = container_of(mdev, struct mls_nic, mdev)->dev;
	u32 on = READ_ONCE(dev->faults.roce_accl);
	__be32 *answer = data_out;

	if (reg_num != ROCE_ACCL || arg || write || size_in < 16 || size_out < 16)
		return -EINVAL;
	if (on & MLS_ACCL_MUTE)
		return -EIO;
	if (mls_breaks(&dev->ibdev, 20))
		on |= MLS_ACCL_ADAPTIVE_ROUTING;
	memset(answer, 0, size_out);
	answer[0] = cpu_to_be32(on & MLS_ACCL_INVALID ? 0 : 0x7f);
	answer[1] = cpu_to_be32(on & 0x7f);
	return 0;
}
EXPORT_SYMBOL_GPL(mlx5_core_access_reg);

/* The NIC has the register, or it says that it has none. */
void mls_nic_has_accl(struct mls_dev *dev, bool has)
{
	MLX5_SET(cmd_hca_cap, dev->nic->cap.cur, roce_accl, has);
}

/* The ib_device is not registered any more. */
void mls_nic_destroy(struct mls_nic *nic)
{
	platform_device_unregister(nic->pdev);
	kvfree(nic);
}

int mls_nic_create(struct mls_dev *dev)
{
	struct mls_nic *nic = kvzalloc(sizeof(*nic), GFP_KERNEL);
	int err;

	if (!nic)
		return -ENOMEM;
	nic->dev = dev;
	nic->mdev.caps.hca[MLX5_CAP_GENERAL] = &nic->cap;
	nic->pdev = platform_device_register_simple("mlx5_core", PLATFORM_DEVID_AUTO, NULL, 0);
	if (IS_ERR(nic->pdev)) {
		err = PTR_ERR(nic->pdev);
		kvfree(nic);
		return err;
	}
	err = mls_iommu ? mls_iommu_attach(&nic->pdev->dev) : 0;
	if (err) {
		mls_nic_destroy(nic);
		return err;
	}
	platform_set_drvdata(nic->pdev, &nic->mdev);
	dev->nic = nic;
	mls_nic_has_accl(dev, true);
	dev->ibdev.dev.parent = &nic->pdev->dev;
	return 0;
}

int mls_nic_init(void)
{
	return platform_driver_register(&driver);
}

void mls_nic_uninit(void)
{
	platform_driver_unregister(&driver);
}
