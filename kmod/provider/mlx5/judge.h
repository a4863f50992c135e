/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Do the completions of a QP under trial, and the PSN that it expects, show what is assumed of a
 * device?  Pure.
 */
#ifndef SHIFT_PROVIDER_MLX5_JUDGE_H
#define SHIFT_PROVIDER_MLX5_JUDGE_H

#include "pure/pure.h"

#define SHIFT_TRIAL_MOST	32	/* completions of a queue in one part of a trial */

enum shift_trial_status {
	SHIFT_TRIAL_OK,
	SHIFT_TRIAL_FLUSHED,
	SHIFT_TRIAL_ERROR,		/* any other */
};

/**
 * struct shift_trial_log - completions of one queue, in their order
 * @n: their number; those beyond SHIFT_TRIAL_MOST are counted only.
 * @seen: each: number of the request, counted from 0 in this part, status, and length.
 */
struct shift_trial_log {
	u32 n;
	struct shift_trial_seen {
		u32 id;
		enum shift_trial_status status;
		u32 len;
	} seen[SHIFT_TRIAL_MOST];
};

/**
 * struct shift_trial_end - what became of the requests of a queue
 * @ok: this many of them, the first ones, were executed.
 * @broke: the first of the others ended in an error that is not a flush.
 */
struct shift_trial_end {
	u32 ok;
	bool broke;
};

bool shift_trial_judge(const struct shift_trial_log *log, u32 posted, u32 silent,
		       struct shift_trial_end *end);
bool shift_trial_judge_srq(const struct shift_trial_log *log, u32 first, u32 *ok, bool *flushed);
u32 shift_trial_packets(const u32 *len, u32 n, u32 mtu);
bool shift_trial_psn_fits(const u32 *len, u32 receives, u32 received, u32 mtu, u32 packets);

#endif /* SHIFT_PROVIDER_MLX5_JUDGE_H */
