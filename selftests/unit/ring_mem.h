/* SPDX-License-Identifier: GPL-2.0 */
/* Rings of plain memory instead of pinned user memory: what kmod/ring.c does, for tests. */
#ifndef RING_MEM_H
#define RING_MEM_H

#include "core/ring.h"

/**
 * struct ring_mem - the ring that is looked at; only its geometry is in struct shift_ring
 * @bytes: slots of it.
 * @words: looks at a word ...
 * @copies: ... and copies of a slot, since somebody set them to 0.
 * @meanwhile: runs before each word that is read, as others may write at any time; NULL:
 *	nobody does.
 */
struct ring_mem {
	u8 *bytes;
	u32 words, copies;
	void (*meanwhile)(void);
};

extern struct ring_mem ring_mem;

#endif /* RING_MEM_H */
