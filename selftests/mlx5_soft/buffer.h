/* SPDX-License-Identifier: GPL-2.0 */
/* /dev/mlx5_soft_buffer: an exporter of dma-bufs, for tests. */
#ifndef MLX5_SOFT_BUFFER_H
#define MLX5_SOFT_BUFFER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct mls_buffer_new - a buffer of zeros; the ioctl returns a descriptor
 * @pages: its size.
 * @importers: so many devices may have it at once; 0: any number.
 */
struct mls_buffer_new {
	__u32 pages;
	__u32 importers;
};

#define MLS_BUFFER_NEW	_IOW('B', 1, struct mls_buffer_new)
/* Move a buffer (its descriptor) to other pages; returns when all importers have those. */
#define MLS_BUFFER_MOVE	_IOW('B', 2, __s32)

#endif /* MLX5_SOFT_BUFFER_H */
