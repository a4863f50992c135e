// SPDX-License-Identifier: GPL-2.0
/* MRs of users in the kernel, as the engine sees them: core/kernel_mr.c and mw/kernel_mr.c. */
#include "core/kernel_mr.h"
#include "core/kernel_qp.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "mw/mw.h"
#include "provider/kernel/kernel.h"
#include "pure/ledger.h"
#include "pure/wr.h"

static bool mrs_local(u32 opcode)
{
	return shift_kernel_mr_local(opcode);
}

static int mrs_build(struct shift_qp *sqp, const struct shift_wr *wr, u8 path,
		     struct ib_reg_wr *to)
{
	struct shift_kernel_mr_op op = {
		.opcode = wr->opcode, .access = wr->access,
		.key = wr->opcode == SHIFT_WR_REG_MR ? wr->rkey : wr->imm,
	};
	struct ib_mr *mr;
	u32 key;

	lockdep_assert_held(&sqp->ledger_lock);
	mr = shift_kernel_mr_find(sqp, op.key, path, op.opcode == SHIFT_WR_REG_MR, &key);
	if (!mr)
		return -EACCES;
	if (op.opcode == SHIFT_WR_REG_MR) {
		to->mr = mr;
		to->key = key;
		to->access = op.access;
	} else {
		to->wr.ex.invalidate_rkey = key;
	}
	shift_kernel_mr_posted(sqp, op, path);
	return 0;
}

static void mrs_executed(struct shift_qp *sqp, u64 seq, u8 path)
{
	struct shift_kernel_mr_op op = shift_kernel_qp_op(sqp, seq);

	lockdep_assert_held(&sqp->ledger_lock);
	rcu_read_lock();
	shift_kernel_mr_executed(sqp, op, path);
	rcu_read_unlock();
	shift_ledger_at(&sqp->rec.ledger, seq)->flags |= SHIFT_ENTRY_APPLIED;
}

static u32 mrs_invalidated(struct shift_qp *sqp, u32 wire, u8 path)
{
	u32 key = shift_kernel_mr_shown(sqp, wire, path);

	lockdep_assert_held(&sqp->ledger_lock);
	rcu_read_lock();
	shift_kernel_mr_invalidated(sqp, key, path);
	rcu_read_unlock();
	return key;
}

const struct shift_mr_ops shift_kernel_mr_provider = {
	.local = mrs_local,
	.build = mrs_build,
	.executed = mrs_executed,
	.mute = shift_kernel_qp_mute,
	.invalidated = mrs_invalidated,
	.follow = shift_kernel_mrs_follow,
};
