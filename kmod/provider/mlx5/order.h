/* SPDX-License-Identifier: GPL-2.0 */
/* Whether a NIC executes packets in order. */
#ifndef SHIFT_PROVIDER_MLX5_ORDER_H
#define SHIFT_PROVIDER_MLX5_ORDER_H

#include <rdma/ib_verbs.h>

bool shift_mlx5_in_order(struct ib_device *ibdev);

#endif /* SHIFT_PROVIDER_MLX5_ORDER_H */
