// SPDX-License-Identifier: GPL-2.0
/* Reasons why an entry of mlx5's rings is not decoded. */
#include "provider/mlx5/format.h"

static const char *const names[] = {
	[SHIFT_MLX5_DECODED]		= "decoded",
	[SHIFT_MLX5_GEOMETRY]		= "geometry",
	[SHIFT_MLX5_EMPTY]		= "empty",
	[SHIFT_MLX5_INDEX]		= "index",
	[SHIFT_MLX5_QPN]		= "qpn",
	[SHIFT_MLX5_SIZE]		= "size",
	[SHIFT_MLX5_SEGMENTS]		= "segments",
	[SHIFT_MLX5_INLINE_SIZE]	= "inline-size",
	[SHIFT_MLX5_LINK]		= "link",
	[SHIFT_MLX5_SIGNED]		= "signed",
	[SHIFT_MLX5_FLAGS]		= "flags",
	[SHIFT_MLX5_OPCODE]		= "opcode",
	[SHIFT_MLX5_OPMOD]		= "opmod",
	[SHIFT_MLX5_MIXED]		= "mixed",
	[SHIFT_MLX5_LENGTH]		= "length",
	[SHIFT_MLX5_SGES]		= "sges",
	[SHIFT_MLX5_UMR]		= "umr",
	[SHIFT_MLX5_COMPRESSED]		= "compressed",
	[SHIFT_MLX5_APP]		= "app",
};

static_assert(ARRAY_SIZE(names) == __SHIFT_MLX5_REFUSALS);

/**
 * shift_mlx5_refusal_errno() - a refusal as an error number
 * @why: the refusal.
 *
 * Return: 0 if it was decoded, -EINVAL if the entry is malformed, -EOPNOTSUPP
 * if it may be valid but is not covered.
 */
int shift_mlx5_refusal_errno(enum shift_mlx5_refusal why)
{
	if (why == SHIFT_MLX5_DECODED)
		return 0;
	return why < SHIFT_MLX5_SIGNED ? -EINVAL : -EOPNOTSUPP;
}

/**
 * shift_mlx5_refusal_name() - a refusal as a word
 * @why: the refusal.
 *
 * Return: the word, for logs and tests.
 */
const char *shift_mlx5_refusal_name(enum shift_mlx5_refusal why)
{
	return (unsigned int)why < ARRAY_SIZE(names) ? names[why] : "?";
}
