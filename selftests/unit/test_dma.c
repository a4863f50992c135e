// SPDX-License-Identifier: GPL-2.0
/* Which devices take each other's addresses: kmod/pure/dma.c */
#include "ktap.h"
#include "pure/dma.h"

static const struct shift_dma virtual = { .virt = true };
static const struct shift_dma plain = { .coherent = true };

static void same(struct ktap *t)
{
	static const struct shift_dma incoherent;

	EXPECT(t, shift_dma_same(&virtual, &virtual));
	EXPECT(t, shift_dma_same(&plain, &plain));
	EXPECT(t, shift_dma_same(&incoherent, &incoherent));
}

/* A pointer of the kernel is no address for a NIC, nor the other way round. */
static void mixed(struct ktap *t)
{
	EXPECT(t, !shift_dma_same(&virtual, &plain));
	EXPECT(t, !shift_dma_same(&plain, &virtual));
}

/* Whatever stands between one of two NICs and memory, whichever of them it is. */
static void hindered(struct ktap *t)
{
	static const struct shift_dma each[] = {
		{ .coherent = true, .translated = true },
		{ .coherent = true, .bounced = true },
		{ .coherent = true, .shifted = true },
		{ .coherent = true, .limited = true },
		{ .coherent = false },
		{ .virt = true, .coherent = true },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(each); i++) {
		EXPECT(t, !shift_dma_same(&each[i], &plain));
		EXPECT(t, !shift_dma_same(&plain, &each[i]));
	}
	/* two that are hindered in the same way have addresses of their own all the same */
	for (i = 0; i < 4; i++)
		EXPECT(t, !shift_dma_same(&each[i], &each[i]));
}

/* What else is said of a virtual device is of no interest. */
static void virtual_alone(struct ktap *t)
{
	static const struct shift_dma odd = {
		.virt = true, .translated = true, .bounced = true, .shifted = true, .limited = true,
	};

	EXPECT(t, shift_dma_same(&odd, &virtual));
	EXPECT(t, shift_dma_same(&virtual, &odd));
}

static const struct ktap_case cases[] = {
	KTAP_CASE(same),
	KTAP_CASE(mixed),
	KTAP_CASE(hindered),
	KTAP_CASE(virtual_alone),
};
KTAP_SUITE(dma, cases);
