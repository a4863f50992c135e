// SPDX-License-Identifier: GPL-2.0
/* Writes the golden rings as inputs of fuzz_wq_mlx5: seeds_mlx5 FOLDER */
#include <stdlib.h>
#include "golden_mlx5.h"
#include "golden_mlx5.inc"

#define HEAD	12	/* as fuzz_wq_mlx5.c reads it */

static void put_half(u8 *p, u16 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static bool write_seed(const char *path, const struct golden_ring *g)
{
	u8 head[HEAD] = { __builtin_ctz(g->blocks), };
	FILE *f = fopen(path, "w");
	const char *p = g->bytes;
	unsigned int byte;

	if (!f)
		return false;
	if (g->kind == GOLDEN_SEND) {
		head[0] |= 0x40;
		put_half(head + 2, g->producer);
		put_half(head + 4, (u16)(g->producer - g->first));
		head[6] = g->qpn >> 16;
		put_half(head + 9, g->qpn);
	} else {
		head[0] |= 0x80;
		put_half(head + 2, g->first);
		head[10] = g->slot_size / SHIFT_MLX5_CHUNK - 1;
	}
	fwrite(head, 1, sizeof(head), f);
	for (; sscanf(p, "%2x", &byte) == 1; p += 2)
		fputc(byte, f);
	return !fclose(f);
}

int main(int argc, char **argv)
{
	char path[4096];
	u32 i;

	if (argc != 2)
		return 2;
	for (i = 0; i < ARRAY_SIZE(golden_rings); i++) {
		snprintf(path, sizeof(path), "%s/golden-%u", argv[1], i);
		if (!write_seed(path, &golden_rings[i])) {
			perror(path);
			return 1;
		}
	}
	return 0;
}
