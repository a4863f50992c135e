/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What differs between releases of libmlx5: where a struct mlx5_buf has its address.
 * It is in a struct ibv_buf since there are buffers of DMA-buf heaps, whose header
 * mlx5.h then includes.
 */
#ifndef MLX5_SHIFT_BUF_H
#define MLX5_SHIFT_BUF_H

#ifdef INFINIBAND_DMABUF_HEAP_H
#define mlx5_buf_addr(b)	((b)->ibv_buf.addr)
#else
#define mlx5_buf_addr(b)	((b)->buf)
#endif

#endif /* MLX5_SHIFT_BUF_H */
