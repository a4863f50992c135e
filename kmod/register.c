// SPDX-License-Identifier: GPL-2.0
/*
 * What a provider registers of CQs and QPs: memory of the caller's, pinned before
 * any lock is taken.  SRQs: srq_reg.c.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "mw.h"
#include "provider.h"
#include "srq.h"

#define SHIFT_SIDE_MAX		4096u

/* The kind of a device's rings, if the caller knows it, too. */
static const struct shift_provider *provider_of(struct shift_dev *sdev, u32 id)
{
	const struct shift_provider *provider = shift_provider_find(id);

	return provider && provider->driver == sdev->driver ? provider : NULL;
}

static void cq_pins_drop(struct shift_cq_pins *pins)
{
	shift_word_unpin(&pins->db);
	shift_word_unpin(&pins->flag);
	shift_ring_unpin(&pins->ring);
}

/*
 * Completions of a QP that is away need the CQ back after a resize, even if the new ring
 * is more than its owner may lock; if only it is not more than the driver has of it.
 */
static bool cq_again(struct shift_cq *scq, const struct shift_abi_reg_cq *reg)
{
	bool again;

	spin_lock_bh(&scq->lock);
	again = scq->side && scq->cq &&
		reg->ring.len <= ((u64)scq->cq->cqe + 1) * reg->stride;
	spin_unlock_bh(&scq->lock);
	return again;
}

/**
 * shift_cq_register - take a CQ's ring, and give it a side ring
 * @scq: the CQ, of the caller's process.
 * @reg: what its provider says.
 *
 * Context: process context of the owner.
 * Return: 0, -EINVAL, -EFAULT, -ENOMEM, -EEXIST.
 */
int shift_cq_register(struct shift_cq *scq, const struct shift_abi_reg_cq *reg)
{
	const struct shift_provider *provider = provider_of(scq->sdev, reg->provider);
	struct shift_abi_side *side = NULL;
	struct shift_cq_pins pins = { .again = cq_again(scq, reg) };
	u32 entries, len;
	int err;

	if (!provider)
		return -EINVAL;
	err = provider->pin_cq(&pins, reg);
	if (!err)
		err = shift_word_pin(&pins.flag, reg->flag_addr);
	if (err)
		goto err_pins;

	entries = clamp_t(u32, roundup_pow_of_two(scq->cqe + 1), 16, SHIFT_SIDE_MAX);
	len = PAGE_ALIGN(struct_size(side, wc, entries));
	side = vmalloc_user(len);
	if (!side) {
		err = -ENOMEM;
		goto err_pins;
	}
	side->entries = entries;

	spin_lock_bh(&scq->lock);
	if (scq->registered) {
		spin_unlock_bh(&scq->lock);
		vfree(side);
		err = -EEXIST;
		goto err_pins;
	}
	scq->provider = provider;
	scq->ring = pins.ring;
	scq->flag = pins.flag;
	scq->db = pins.db;
	if (!scq->side) {
		scq->side = side;
		scq->side_len = len;
		scq->side_entries = entries;
		side = NULL;
	}
	scq->registered = true;
	if (scq->side_producer != READ_ONCE(scq->side->consumer))
		shift_word_write(&scq->flag, SHIFT_CQ_FLAG_SIDE);
	spin_unlock_bh(&scq->lock);
	vfree(side);	/* registered again after a resize: the old one goes on */
	return 0;

err_pins:
	cq_pins_drop(&pins);
	return err;
}

/* The provider lets go (or its file was closed): user memory is not touched any more. */
void shift_cq_unregister(struct shift_cq *scq)
{
	struct shift_cq_pins pins;

	/* a fence may be looking into the ring */
	down_write(&scq->sdev->ring_sem);
	spin_lock_bh(&scq->lock);
	pins = (struct shift_cq_pins) {
		.ring = scq->ring, .flag = scq->flag, .db = scq->db,
	};
	memset(&scq->ring, 0, sizeof(scq->ring));
	scq->flag.page = NULL;
	scq->db.page = NULL;
	scq->registered = false;
	spin_unlock_bh(&scq->lock);
	up_write(&scq->sdev->ring_sem);
	cq_pins_drop(&pins);
}

static void pins_drop(struct shift_qp_pins *pins)
{
	shift_word_unpin(&pins->rq_tail);
	shift_word_unpin(&pins->sq_tail);
	shift_word_unpin(&pins->anchor);
	shift_word_unpin(&pins->rq_word);
	shift_word_unpin(&pins->sq_word);
	shift_word_unpin(&pins->gate);
	shift_ring_unpin(&pins->sq_heads);
	shift_ring_unpin(&pins->rq);
	shift_ring_unpin(&pins->sq);
}

static int pins_take(struct shift_qp_pins *pins, const struct shift_provider *provider,
		     const struct shift_abi_reg_qp *reg)
{
	int err;

	memset(pins, 0, sizeof(*pins));
	err = provider->pin_qp(pins, reg);
	if (!err)
		err = shift_word_pin(&pins->gate, reg->flag_addr);
	if (err) {
		kvfree(pins->mlx5);
		pins_drop(pins);
	}
	return err;
}

/* Its provider would, and says why not. */
static void not_covered(struct shift_qp *sqp)
{
	mutex_lock(&sqp->lock);
	if (sqp->reason == SHIFT_REASON_NO_PROVIDER)
		sqp->reason = sqp->ssrq ? SHIFT_REASON_SRQ : SHIFT_REASON_RINGS;
	mutex_unlock(&sqp->lock);
}

/**
 * shift_qp_register - take a QP's rings and what its ledger needs
 * @sqp: the QP, of the caller's process, in RESET.
 * @reg: what its provider says.
 *
 * Context: process context of the owner.
 * Return: 0, -EINVAL, -EFAULT, -ENOMEM, -EEXIST, -ENOENT (it or its CQs are gone),
 * -EOPNOTSUPP (it cannot be protected).
 */
int shift_qp_register(struct shift_qp *sqp, const struct shift_abi_reg_qp *reg)
{
	const struct shift_provider *provider = provider_of(sqp->sdev, reg->provider);
	struct shift_entry *entry = NULL;
	struct shift_notes *notes = NULL;
	struct shift_recvs recvs = {};
	struct shift_qp_pins pins;
	void *raw = NULL;
	int err;

	if (!provider)
		return -EINVAL;
	err = pins_take(&pins, provider, reg);
	if (err == -EOPNOTSUPP)
		not_covered(sqp);
	if (err)
		return err;
	entry = kvcalloc(pins.entries, sizeof(*entry), GFP_KERNEL);
	raw = kvcalloc(pins.sq.slots, pins.sq.slot_size, GFP_KERNEL);
	err = shift_recv_init(&recvs, &pins.rq);
	if (shift_windows_enabled(sqp->sdev))
		notes = shift_notes_new(&pins.sq);
	if (!entry || !raw || err) {
		err = -ENOMEM;
		goto err_free;
	}

	mutex_lock(&sqp->lock);
	if (!sqp->qp || sqp->registered || sqp->ledger.entry) {
		err = sqp->qp ? -EEXIST : -ENOENT;
		goto err_unlock;
	}
	if (sqp->reason != SHIFT_REASON_NO_PROVIDER || sqp->app_state != IB_QPS_RESET) {
		err = -EOPNOTSUPP;	/* not one that could be protected */
		goto err_unlock;
	}
	if (sqp->ssrq && !READ_ONCE(sqp->ssrq->registered)) {
		sqp->reason = SHIFT_REASON_SRQ;
		err = -EOPNOTSUPP;
		goto err_unlock;
	}
	if (!READ_ONCE(sqp->scq->registered) || !READ_ONCE(sqp->rcq->registered)) {
		err = -ENOENT;
		goto err_unlock;
	}
	if (sqp->ssrq && provider != &shift_provider_rxe) {
		sqp->reason = SHIFT_REASON_SRQ;
		err = -EOPNOTSUPP;
		goto err_unlock;
	}
	sqp->sq = pins.sq;
	sqp->rq = pins.rq;
	sqp->sq_heads = pins.sq_heads;
	sqp->gate = pins.gate;
	sqp->sq_word = pins.sq_word;
	sqp->rq_word = pins.rq_word;
	sqp->anchor = pins.anchor;
	sqp->sq_tail = pins.sq_tail;
	sqp->rq_tail = pins.rq_tail;
	sqp->lock_free = pins.lock_free;
	sqp->mlx5 = pins.mlx5;
	shift_ledger_init(&sqp->ledger, entry, raw, pins.entries, pins.sq.slot_size);
	sqp->recvs = recvs;
	sqp->provider = provider;
	WRITE_ONCE(sqp->notes, notes);
	sqp->rebases = reg->create_flags & SHIFT_QP_CREATE_REBASE && provider->rebase;
	/* of its first life here, which costs its first modify to RTS nothing */
	provider->starts(sqp);
	sqp->start_told = true;
	sqp->registered = true;
	sqp->reason = SHIFT_REASON_NOT_RTS;
	mutex_unlock(&sqp->lock);
	return 0;

err_unlock:
	mutex_unlock(&sqp->lock);
err_free:
	kvfree(pins.mlx5);
	shift_notes_free(notes);
	shift_recv_free(&recvs);
	kvfree(raw);
	kvfree(entry);
	pins_drop(&pins);
	return err;
}

/**
 * shift_qp_unregister - the provider lets go, or its file was closed
 * @sqp: the QP.
 *
 * User memory is not touched after this returns.  A QP on its default NIC goes
 * on unprotected; one that has moved cannot, its ring is gone.
 *
 * Context: process context, sqp->lock not held.
 */
void shift_qp_unregister(struct shift_qp *sqp)
{
	struct shift_qp_pins pins;

	mutex_lock(&sqp->lock);
	if (!sqp->registered) {
		mutex_unlock(&sqp->lock);
		return;
	}
	/* one that has moved is being destroyed, or is lost without its ring */
	if (shift_qp_is_away(sqp) && sqp->state != SHIFT_ST_FAIL)
		shift_switch_event(sqp, SHIFT_EV_APP_ERROR, NULL);
	else
		shift_switch_unprotect(sqp, SHIFT_REASON_NO_PROVIDER);
	spin_lock_bh(&sqp->ledger_lock);
	sqp->ledger_live = false;
	pins = (struct shift_qp_pins) {
		.sq = sqp->sq, .rq = sqp->rq, .gate = sqp->gate,
		.sq_word = sqp->sq_word, .rq_word = sqp->rq_word,
		.anchor = sqp->anchor, .sq_tail = sqp->sq_tail, .rq_tail = sqp->rq_tail,
		.sq_heads = sqp->sq_heads,
	};
	memset(&sqp->sq, 0, sizeof(sqp->sq));
	memset(&sqp->rq, 0, sizeof(sqp->rq));
	memset(&sqp->sq_heads, 0, sizeof(sqp->sq_heads));
	sqp->registered = false;
	sqp->gate.page = NULL;
	sqp->sq_word.page = NULL;
	sqp->rq_word.page = NULL;
	sqp->anchor.page = NULL;
	sqp->sq_tail.page = NULL;
	sqp->rq_tail.page = NULL;
	spin_unlock_bh(&sqp->ledger_lock);
	mutex_unlock(&sqp->lock);
	pins_drop(&pins);
}
