// SPDX-License-Identifier: GPL-2.0
/* Which devices take each other's addresses. */
#include "pure/dma.h"

/* Are its addresses those of the memory itself? */
static bool is_plain(const struct shift_dma *dma)
{
	return !dma->translated && !dma->bounced && !dma->shifted && !dma->limited;
}

/**
 * shift_dma_same - may what was mapped for one device be given to the other one?
 * @a: a device.
 * @b: another one.
 *
 * Context: any.
 */
bool shift_dma_same(const struct shift_dma *a, const struct shift_dma *b)
{
	if (a->virt || b->virt)
		return a->virt && b->virt;
	return is_plain(a) && is_plain(b) && a->coherent == b->coherent;
}
