/* SPDX-License-Identifier: GPL-2.0 */
/* Does an address that memory was mapped to for one device mean the same to another one?  Pure. */
#ifndef SHIFT_PURE_DMA_H
#define SHIFT_PURE_DMA_H

#include "pure/pure.h"

/**
 * struct shift_dma - how a device sees the memory of the host
 * @virt: by the kernel's own addresses; the rest is of no interest then.
 * @translated: somebody translates: an IOMMU, or a hypervisor's operations.
 * @bounced: what is mapped may be copied to another place first.
 * @shifted: its addresses of memory are not those of the processor.
 * @limited: it does not reach all memory of the host, so that some of it is copied.
 * @coherent: it sees what is in the processor's caches.
 */
struct shift_dma {
	bool virt, translated, bounced, shifted, limited, coherent;
};

bool shift_dma_same(const struct shift_dma *a, const struct shift_dma *b);

#endif /* SHIFT_PURE_DMA_H */
