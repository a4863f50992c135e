/* SPDX-License-Identifier: GPL-2.0 */
/* A ring that rxe made: its geometry and both indices are in its head. */
#ifndef SHIFT_PROVIDER_RXE_RING_H
#define SHIFT_PROVIDER_RXE_RING_H

#include "core/ring.h"

int shift_rxe_ring_pin(struct shift_ring *ring, u64 addr, u32 len, u32 entries, u32 size);
u32 shift_rxe_producer(const struct shift_ring *ring);	/* masked, acquire */
u32 shift_rxe_consumer(const struct shift_ring *ring);	/* masked, acquire */
void shift_rxe_set_producer(const struct shift_ring *ring, u32 index);	/* release */
void shift_rxe_set_consumer(const struct shift_ring *ring, u32 index);	/* release */

#endif /* SHIFT_PROVIDER_RXE_RING_H */
