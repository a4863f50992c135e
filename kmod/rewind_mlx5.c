// SPDX-License-Identifier: GPL-2.0
/* From the anchor back to the oldest send without a completion: see rewind_mlx5.h. */
#include "psn.h"
#include "rewind_mlx5.h"

/**
 * struct way - a walk from one WQE to the producer
 * @packets: request PSNs of all of them.
 * @last: index of the last one.
 */
struct way {
	u64 packets;
	u16 last;
};

/*
 * 0; -EOPNOTSUPP: it leads there, but its packets cannot be counted; -EINVAL: it does
 * not.  Each step is at least one block, and none goes beyond the producer.
 */
static int walk(const struct shift_mlx5_view *v, u16 from, struct shift_mlx5_wqe *wqe,
		struct way *way)
{
	u16 index = from;
	int ret = 0;

	way->packets = 0;
	way->last = from;
	while (index != v->sq.producer) {
		enum shift_mlx5_refusal why = shift_mlx5_decode(&v->sq, index, wqe);

		if (!wqe->blocks)
			return -EINVAL;
		if (why || !shift_wr_movable(&wqe->wr))
			ret = -EOPNOTSUPP;
		if (!why)
			way->packets += shift_wr_packets(wqe->wr.opcode, wqe->wr.length, v->mtu);
		way->last = index;
		index += wqe->blocks;
	}
	return ret;
}

/*
 * The WQE behind one that is complete.  Where that one was overwritten the ring is full,
 * and the first place from which the WQEs lead to the producer is meant.
 */
static int behind(const struct shift_mlx5_view *v, u16 last, struct shift_mlx5_wqe *wqe,
		  u16 *next)
{
	struct way way;
	u16 n;

	shift_mlx5_decode(&v->sq, last, wqe);
	if (wqe->blocks) {
		*next = last + wqe->blocks;
		return 0;
	}
	for (n = 1; n <= SHIFT_MLX5_MAX_BLOCKS; n++) {
		*next = last + n;
		if (*next != v->sq.producer && walk(v, *next, wqe, &way) != -EINVAL)
			return 0;
	}
	return -ENODATA;
}

/* The WQE that was posted last: where all that the ring still has leads to. */
static int find_newest(const struct shift_mlx5_view *v, struct shift_mlx5_wqe *wqe, u16 *index)
{
	struct way way;
	u32 n;

	for (n = v->sq.blocks; n; n--) {
		if (walk(v, v->sq.producer - n, wqe, &way) == -EINVAL)
			continue;
		*index = way.last;
		return 0;
	}
	return -EINVAL;
}

static int rewind_from(const struct shift_mlx5_view *v, u16 first, struct shift_mlx5_wqe *wqe,
		       struct shift_mlx5_rewind *r)
{
	struct way way;
	int ret = walk(v, first, wqe, &way);

	if (ret == -EINVAL)
		return ret;
	r->first = first;
	if (ret)
		return ret;
	/* nothing before it: then it has to be all that there ever was */
	if (way.packets > v->packets ||
	    (!v->completed && !v->flushed && way.packets != v->packets))
		return -ENODATA;
	r->first_psn = (u32)(v->start_psn + v->packets - way.packets) & SHIFT_PSN_MASK;
	return 0;
}

/**
 * shift_mlx5_rewind() - which sends have no completion yet
 * @v: the queue pair.
 * @wqe: scratch.
 * @r: the result.
 *
 * Without a completion in the CQ nothing was completed since RESET, or it was long ago
 * and others' completions have taken its place.  The packets tell which.
 *
 * Return: 0, -ENODATA, -EOPNOTSUPP, -EINVAL: see rewind_mlx5.h.
 */
int shift_mlx5_rewind(const struct shift_mlx5_view *v, struct shift_mlx5_wqe *wqe,
		      struct shift_mlx5_rewind *r)
{
	u16 first = v->flushed ? v->first_flushed : 0;
	int ret = 0;

	memset(r, 0, sizeof(*r));
	if (!v->sq.ring || !v->sq.blocks || v->sq.blocks > SHIFT_MLX5_MAX_RING ||
	    (v->sq.blocks & (v->sq.blocks - 1)) || !v->mtu)
		return -EINVAL;
	if (v->completed)
		ret = behind(v, v->last, wqe, &first);
	if (!ret)
		ret = rewind_from(v, first, wqe, r);
	if (ret != -EINVAL && ret != -ENODATA)
		return ret;
	if (find_newest(v, wqe, &r->first))
		return -EINVAL;
	return -ENODATA;
}
