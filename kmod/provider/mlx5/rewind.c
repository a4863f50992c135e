// SPDX-License-Identifier: GPL-2.0
/* From the anchor back to the oldest send without a completion: see rewind.h. */
#include "provider/mlx5/format.h"
#include "provider/mlx5/rewind.h"
#include "provider/mlx5/wqe.h"
#include "pure/psn.h"
#include "pure/wr.h"

/**
 * struct search - a search in a view, and its limit
 * @v: the view.
 * @wqe: the WQE that was decoded last.
 * @left: number of WQEs that may yet be decoded; enough for any ring that a provider has written.
 */
struct search {
	const struct shift_mlx5_view *v;
	struct shift_mlx5_wqe *wqe;
	u32 left;
};

/**
 * struct walk - a walk from one WQE to the producer
 * @packets: request PSNs of all of them.
 * @last: index of the last one.
 */
struct walk {
	u64 packets;
	u16 last;
};

static enum shift_mlx5_refusal walk_decode(struct search *s, u16 index)
{
	if (!s->left) {
		s->wqe->blocks = 0;
		return SHIFT_MLX5_EMPTY;
	}
	s->left--;
	return shift_mlx5_decode(&s->v->sq, index, s->wqe);
}

/*
 * Walk over the WQEs from @from to the producer.  Return: 0; -EOPNOTSUPP: the WQEs lead there, but
 * the packets of one cannot be counted; -EINVAL: they do not lead there.  Each step is at least one
 * block, and none goes beyond the producer.
 */
static int ring_walk(struct search *s, u16 from, struct walk *walk)
{
	const struct shift_mlx5_view *v = s->v;
	u16 index = from;
	int ret = 0;

	walk->packets = 0;
	walk->last = from;
	while (index != v->sq.producer) {
		enum shift_mlx5_refusal why = walk_decode(s, index);

		if (!s->wqe->blocks)
			return -EINVAL;
		if (why || !shift_wr_movable(&s->wqe->wr))
			ret = -EOPNOTSUPP;
		if (!why)
			walk->packets += shift_wr_packets(s->wqe->wr.opcode, s->wqe->wr.length,
							 v->mtu);
		walk->last = index;
		index += s->wqe->blocks;
	}
	return ret;
}

/*
 * Find the WQE behind the newest that has a completion in the CQ.  If that one was overwritten, the
 * ring is full, and the WQE is at the first place from which the WQEs lead to the producer.
 */
static bool behind_completed(struct search *s, u16 *next)
{
	const struct shift_mlx5_view *v = s->v;
	struct walk walk;
	u16 n;

	walk_decode(s, v->last);
	if (s->wqe->blocks) {
		*next = v->last + s->wqe->blocks;
		return true;
	}
	for (n = 1; n <= SHIFT_MLX5_MAX_BLOCKS; n++) {
		*next = v->last + n;
		if (*next != v->sq.producer && ring_walk(s, *next, &walk) != -EINVAL)
			return true;
	}
	return false;
}

static u32 wqe_number(const struct shift_mlx5_view *v, u16 index)
{
	return v->heads[index & (v->sq.blocks - 1)];
}

/*
 * Do WQEs with consecutive numbers lead from there to the producer?  They do not from a number that
 * was left over from an earlier round of the ring, from before a RESET, or from a request that was
 * not posted.
 */
static bool wqe_is_numbered(struct search *s, u16 index)
{
	u32 n = wqe_number(s->v, index);

	for (; index != s->v->sq.producer; index += s->wqe->blocks, n++) {
		if (wqe_number(s->v, index) != n)
			return false;
		walk_decode(s, index);
		if (!s->wqe->blocks)
			return false;
	}
	return true;
}

/*
 * Find the WQE behind the newest that was polled.  Either of the two may be missing: the one behind
 * it may not be posted yet, and the polled one may be overwritten or never have existed.
 */
static bool behind_polled(struct search *s, u16 *next)
{
	const struct shift_mlx5_view *v = s->v;
	u32 i, ahead;
	u16 index;

	for (i = 1; v->heads && i <= v->sq.blocks; i++) {
		index = v->sq.producer - i;
		ahead = v->tail - wqe_number(v, index);
		if (ahead > 1 || !wqe_is_numbered(s, index))
			continue;
		if (ahead)
			walk_decode(s, index);
		*next = index + (ahead ? s->wqe->blocks : 0);
		return true;
	}
	return false;
}

/* Find the WQE that was posted last: the last one on the longest walk to the producer. */
static int find_newest(struct search *s, u16 *index)
{
	const struct shift_mlx5_view *v = s->v;
	struct walk walk;
	u32 n;

	for (n = v->sq.blocks; n; n--) {
		if (ring_walk(s, v->sq.producer - n, &walk) == -EINVAL)
			continue;
		*index = walk.last;
		return 0;
	}
	return -EINVAL;
}

/* @whole: @first is the first WQE since RESET, so that the packets must be all that were posted. */
static int rewind_from(struct search *s, u16 first, bool whole, struct shift_mlx5_rewind *r)
{
	const struct shift_mlx5_view *v = s->v;
	struct walk walk;
	int ret = ring_walk(s, first, &walk);

	if (ret == -EINVAL)
		return ret;
	r->first = first;
	if (ret)
		return ret;
	if (walk.packets > v->packets || (whole && walk.packets != v->packets))
		return -ENODATA;
	r->first_psn = (u32)(v->start_psn + v->packets - walk.packets) & SHIFT_PSN_MASK;
	return 0;
}

static int ring_oldest(struct search *s, struct shift_mlx5_rewind *r)
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
 * The CQ tells what was completed and not polled, and perhaps what was polled; the number of the
 * newest polled send is known from the provider.  The outstanding sends begin behind the later of
 * the two.  If neither is known, they begin with the oldest flushed one.  If nothing was flushed,
 * nothing was completed since RESET, provided that the packets of all sends in the ring are as many
 * as the anchor says.
 *
 * Return: 0, -ENODATA, -EOPNOTSUPP, -EINVAL: see rewind.h.
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
	ret = ring_oldest(&s, r);
	if (ret != -EINVAL && ret != -ENODATA)
		return ret;
	if (find_newest(&s, &r->first))
		return -EINVAL;
	return -ENODATA;
}
