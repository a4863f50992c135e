/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses that users in the kernel have mapped for a device: internals/kernel-users.md. */
#ifndef SHIFT_CORE_DMA_H
#define SHIFT_CORE_DMA_H

#include <linux/types.h>

struct ib_device;
struct scatterlist;
struct shift_qp;
struct shift_wr;

bool shift_dma_alike(struct ib_device *a, struct ib_device *b);
bool shift_dma_is_memory(struct ib_device *ibdev, u64 addr);
bool shift_dma_of_memory(const struct shift_qp *sqp, const struct shift_wr *wr);

#endif /* SHIFT_CORE_DMA_H */
