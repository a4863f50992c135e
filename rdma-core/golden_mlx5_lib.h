/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* libmlx5's own structures, for the files that fill them in. */
#ifndef GOLDEN_MLX5_LIB_H
#define GOLDEN_MLX5_LIB_H

#include <config.h>
#include <mlx5.h>	/* the provider's */
#include "mlx5/mlx5_shift_buf.h"

#undef ARRAY_SIZE
#undef min
#undef max
#undef fallthrough
#undef static_assert
#include "golden_mlx5.h"

extern struct mlx5_context golden_ctx;
extern struct mlx5_qp golden_qp;
extern struct mlx5_bf golden_bf;	/* its registers: golden_uar */
extern uint8_t golden_uar[8192];
extern int (*golden_cq_fill_pfns)(struct mlx5_cq *cq, const struct ibv_cq_init_attr_ex *attr,
				  struct mlx5_context *ctx);

void *golden_function(const char *name);

#endif /* GOLDEN_MLX5_LIB_H */
