// SPDX-License-Identifier: GPL-2.0
/* From the anchor back to the oldest send without a completion: see rewind_mlx5.h. */
#include "psn.h"
#include "rewind_mlx5.h"

/**
 * struct search - a look at a view, and what it may cost
 * @v: the view.
 * @wqe: the WQE that was decoded last.
 * @left: so many more may be decoded: more than any ring needs that a provider wrote.
 */
struct search {
	const struct shift_mlx5_view *v;
	struct shift_mlx5_wqe *wqe;
	u32 left;
};

/**
 * struct way - a walk from one WQE to the producer
 * @packets: request PSNs of all of them.
 * @last: index of the last one.
 */
struct way {
	u64 packets;
	u16 last;
};

static enum shift_mlx5_refusal decode(struct search *s, u16 index)
{
	if (!s->left) {
		s->wqe->blocks = 0;
		return SHIFT_MLX5_EMPTY;
	}
	s->left--;
	return shift_mlx5_decode(&s->v->sq, index, s->wqe);
}

/*
 * 0; -EOPNOTSUPP: it leads there, but its packets cannot be counted; -EINVAL: it does
 * not.  Each step is at least one block, and none goes beyond the producer.
 */
static int walk(struct search *s, u16 from, struct way *way)
{
	const struct shift_mlx5_view *v = s->v;
	u16 index = from;
	int ret = 0;

	way->packets = 0;
	way->last = from;
	while (index != v->sq.producer) {
		enum shift_mlx5_refusal why = decode(s, index);

		if (!s->wqe->blocks)
			return -EINVAL;
		if (why || !shift_wr_movable(&s->wqe->wr))
			ret = -EOPNOTSUPP;
		if (!why)
			way->packets += shift_wr_packets(s->wqe->wr.opcode, s->wqe->wr.length,
							 v->mtu);
		way->last = index;
		index += s->wqe->blocks;
	}
	return ret;
}

/*
 * The WQE behind one that is complete.  Where that one was overwritten the ring is full,
 * and the first place from which the WQEs lead to the producer is meant.
 */
static bool behind_completed(struct search *s, u16 *next)
{
	const struct shift_mlx5_view *v = s->v;
	struct way way;
	u16 n;

	decode(s, v->last);
	if (s->wqe->blocks) {
		*next = v->last + s->wqe->blocks;
		return true;
	}
	for (n = 1; n <= SHIFT_MLX5_MAX_BLOCKS; n++) {
		*next = v->last + n;
		if (*next != v->sq.producer && walk(s, *next, &way) != -EINVAL)
			return true;
	}
	return false;
}

static u32 number(const struct shift_mlx5_view *v, u16 index)
{
	return v->heads[index & (v->sq.blocks - 1)];
}

/*
 * Do WQEs without a gap in their numbers lead from there to the producer?  A number that
 * was left over, from a lap, a life or a request that was not posted, has none behind it.
 */
static bool numbered(struct search *s, u16 index)
{
	u32 n = number(s->v, index);

	for (; index != s->v->sq.producer; index += s->wqe->blocks, n++) {
		if (number(s->v, index) != n)
			return false;
		decode(s, index);
		if (!s->wqe->blocks)
			return false;
	}
	return true;
}

/*
 * The WQE behind the newest that was polled.  Either of the two may be missing: there
 * is none behind it (yet), or it was overwritten (or there was none).
 */
static bool behind_polled(struct search *s, u16 *next)
{
	const struct shift_mlx5_view *v = s->v;
	u32 i, ahead;
	u16 index;

	for (i = 1; v->heads && i <= v->sq.blocks; i++) {
		index = v->sq.producer - i;
		ahead = v->tail - number(v, index);
		if (ahead > 1 || !numbered(s, index))
			continue;
		if (ahead)
			decode(s, index);
		*next = index + (ahead ? s->wqe->blocks : 0);
		return true;
	}
	return false;
}

/* The WQE that was posted last: where all that the ring still has leads to. */
static int find_newest(struct search *s, u16 *index)
{
	const struct shift_mlx5_view *v = s->v;
	struct way way;
	u32 n;

	for (n = v->sq.blocks; n; n--) {
		if (walk(s, v->sq.producer - n, &way) == -EINVAL)
			continue;
		*index = way.last;
		return 0;
	}
	return -EINVAL;
}

/* @whole: nothing was before it, so that it has to be all that there ever was. */
static int rewind_from(struct search *s, u16 first, bool whole, struct shift_mlx5_rewind *r)
{
	const struct shift_mlx5_view *v = s->v;
	struct way way;
	int ret = walk(s, first, &way);

	if (ret == -EINVAL)
		return ret;
	r->first = first;
	if (ret)
		return ret;
	if (way.packets > v->packets || (whole && way.packets != v->packets))
		return -ENODATA;
	r->first_psn = (u32)(v->start_psn + v->packets - way.packets) & SHIFT_PSN_MASK;
	return 0;
}

static int oldest(struct search *s, struct shift_mlx5_rewind *r)
{
	const struct shift_mlx5_view *v = s->v;
	u16 completed, polled;
	bool told = v->completed && behind_completed(s, &completed);

	if (behind_polled(s, &polled))
		return rewind_from(s, told ? shift_mlx5_later(completed, polled, v->sq.producer) :
					     polled, false, r);
	if (told)
		return rewind_from(s, completed, false, r);
	if (v->completed)
		return -ENODATA;
	return rewind_from(s, v->flushed ? v->first_flushed : 0, !v->flushed, r);
}

/**
 * shift_mlx5_rewind() - which sends have no completion yet
 * @v: the queue pair.
 * @wqe: scratch.
 * @r: the result.
 *
 * What was completed and not polled is in the CQ; what was polled may be there still, and
 * the provider has its number: they begin behind the later of the two.  If neither
 * tells, those that were flushed do; or nothing was completed since RESET, if the packets
 * of all that the ring has are as many as the anchor says.
 *
 * Return: 0, -ENODATA, -EOPNOTSUPP, -EINVAL: see rewind_mlx5.h.
 */
int shift_mlx5_rewind(const struct shift_mlx5_view *v, struct shift_mlx5_wqe *wqe,
		      struct shift_mlx5_rewind *r)
{
	struct search s = { .v = v, .wqe = wqe };
	int ret;

	memset(r, 0, sizeof(*r));
	if (!v->sq.ring || !v->sq.blocks || v->sq.blocks > SHIFT_MLX5_MAX_RING ||
	    (v->sq.blocks & (v->sq.blocks - 1)) || !v->mtu)
		return -EINVAL;
	s.left = 8 * (v->sq.blocks + SHIFT_MLX5_MAX_BLOCKS);
	ret = oldest(&s, r);
	if (ret != -EINVAL && ret != -ENODATA)
		return ret;
	if (find_newest(&s, &r->first))
		return -EINVAL;
	return -ENODATA;
}
