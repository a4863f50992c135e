// SPDX-License-Identifier: GPL-2.0
/*
 * What a provider registers of CQs and QPs.  The caller's memory is pinned before any lock is
 * taken.  SRQs: srq/reg.c.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/ring.h"
#include "failover/failover.h"
#include "provider/provider.h"
#include "pure/fsm.h"
#include "pure/ledger.h"
#include "verbs/verbs.h"

#define SHIFT_SIDE_MAX		4096u
#define PROXY_OBJECTS		2u	/* a proxy QP and its CQ, on each device */

static void cq_pins_drop(struct shift_cq_pins *pins)
{
	shift_word_unpin(&pins->word);
	shift_word_unpin(&pins->flag);
	shift_ring_unpin(&pins->ring);
}

/*
 * Is a CQ registered again after a resize?  The completions of a QP that is away need it, even if
 * its new ring is more memory than the process may lock.  The ring may not be larger than the one
 * that the driver has.
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
	const struct shift_provider *provider = shift_dev_provider(scq->sdev, reg->provider);
	struct shift_abi_side *side = NULL;
	struct shift_new_cq new = { .again = cq_again(scq, reg) };
	u32 entries, len;
	int err;

	if (!provider || !provider->cq)
		return -EINVAL;
	err = provider->cq->pin(scq, &new, reg);
	if (!err)
		err = shift_word_pin(&new.pins.flag, reg->flag_addr);
	if (err)
		goto err_new;

	entries = clamp_t(u32, roundup_pow_of_two(scq->cqe + 1), 16, SHIFT_SIDE_MAX);
	len = PAGE_ALIGN(struct_size(side, wc, entries));
	side = __vmalloc(len, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!side) {
		err = -ENOMEM;
		goto err_new;
	}
	side->entries = entries;

	spin_lock_bh(&scq->lock);
	if (scq->registered) {
		spin_unlock_bh(&scq->lock);
		vfree(side);
		err = -EEXIST;
		goto err_new;
	}
	scq->provider = provider;
	scq->pins = new.pins;
	if (!scq->side) {
		scq->priv = new.priv;
		new.priv = NULL;
		scq->side = side;
		scq->side_len = len;
		scq->side_entries = entries;
		side = NULL;
	}
	scq->registered = true;
	if (scq->side_producer != READ_ONCE(scq->side->consumer))
		shift_word_write(&scq->pins.flag, SHIFT_CQ_FLAG_SIDE);
	spin_unlock_bh(&scq->lock);
	/* after a resize the first ones go on, and these are not needed */
	vfree(side);
	kfree(new.priv);
	return 0;

err_new:
	kfree(new.priv);
	cq_pins_drop(&new.pins);
	return err;
}

/*
 * The provider has unregistered the CQ, or its file was closed.  User memory is not touched after
 * this returns.
 */
void shift_cq_unregister(struct shift_cq *scq)
{
	struct shift_cq_pins pins;

	/* a fence may be looking into the ring */
	down_write(&scq->sdev->ring_sem);
	spin_lock_bh(&scq->lock);
	pins = scq->pins;
	memset(&scq->pins, 0, sizeof(scq->pins));
	scq->registered = false;
	spin_unlock_bh(&scq->lock);
	up_write(&scq->sdev->ring_sem);
	cq_pins_drop(&pins);
}

static void qp_pins_drop(struct shift_qp_pins *pins)
{
	int i;

	for (i = 0; i < SHIFT_PIN_WORDS; i++)
		shift_word_unpin(&pins->word[i]);
	shift_word_unpin(&pins->gate);
	shift_ring_unpin(&pins->more);
	shift_ring_unpin(&pins->rq);
	shift_ring_unpin(&pins->sq);
}

static void new_qp_drop(struct shift_new_qp *new, const struct shift_provider *provider)
{
	if (new->priv)
		provider->release(new->priv);
	qp_pins_drop(&new->pins);
}

/* Note why the QP cannot be protected, although it has a provider. */
static void qp_note_refusal(struct shift_qp *sqp, enum shift_reason reason)
{
	mutex_lock(&sqp->lock);
	if (sqp->fo.reason == SHIFT_REASON_NO_PROVIDER)
		sqp->fo.reason = reason;
	mutex_unlock(&sqp->lock);
}

/* What its devices have to do. */
static u32 qp_claims(const struct shift_qp *sqp, const struct shift_provider *provider)
{
	u32 claims = provider->protects_if;

	return sqp->srqm.ssrq && provider->srq ? claims | provider->srq->protects_if : claims;
}

/* Have both devices of the QP shown that they do what is assumed of them? */
static bool qp_is_proven(const struct shift_qp *sqp, u32 claims)
{
	const struct shift_pair *pair = sqp->spd ? sqp->spd->pair : NULL;

	return shift_proof_holds(sqp->sdev, claims) &&
	       (!pair || shift_proof_holds(pair->backup, claims));
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
	const struct shift_provider *provider = shift_dev_provider(sqp->sdev, reg->provider);
	struct shift_entry *entry = NULL;
	struct shift_recvs recvs = {};
	struct shift_new_qp new = {};
	void *raw = NULL;
	int err;

	if (!provider || !provider->pin_qp)
		return -EINVAL;
	if (!qp_is_proven(sqp, qp_claims(sqp, provider))) {
		qp_note_refusal(sqp, SHIFT_REASON_UNPROVEN);
		return -EOPNOTSUPP;
	}
	err = provider->pin_qp(sqp, &new, reg);
	if (err == -EOPNOTSUPP)
		qp_note_refusal(sqp, sqp->srqm.ssrq ? SHIFT_REASON_SRQ : SHIFT_REASON_RINGS);
	if (!err)
		err = shift_word_pin(&new.pins.gate, reg->flag_addr);
	if (err)
		goto err_new;
	entry = kvcalloc(new.entries, sizeof(*entry), GFP_KERNEL_ACCOUNT);
	raw = kvcalloc(new.pins.sq.slots, new.pins.sq.slot_size, GFP_KERNEL_ACCOUNT);
	err = shift_recv_init(&recvs, &new.pins.rq);
	if (!entry || !raw || err) {
		err = -ENOMEM;
		goto err_free;
	}

	mutex_lock(&sqp->lock);
	if (!sqp->qp || sqp->rings.registered || sqp->rec.ledger.entry) {
		err = sqp->qp ? -EEXIST : -ENOENT;
		goto err_unlock;
	}
	if (sqp->fo.reason != SHIFT_REASON_NO_PROVIDER || sqp->app.state != IB_QPS_RESET) {
		err = -EOPNOTSUPP;
		goto err_unlock;
	}
	if (sqp->srqm.ssrq && !READ_ONCE(sqp->srqm.ssrq->rings.registered)) {
		sqp->fo.reason = SHIFT_REASON_SRQ;
		err = -EOPNOTSUPP;
		goto err_unlock;
	}
	if (!shift_qp_cqs_registered(sqp)) {
		err = -ENOENT;
		goto err_unlock;
	}
	/* once in its life: the ledger stays, and so does the reason */
	if (!shift_charge_qp(sqp, PROXY_OBJECTS)) {
		sqp->fo.reason = SHIFT_REASON_CGROUP;
		err = -EOPNOTSUPP;
		goto err_unlock;
	}
	sqp->rings.pins = new.pins;
	sqp->rings.priv = new.priv;
	shift_ledger_init(&sqp->rec.ledger, entry, raw, new.entries,
			  new.pins.sq.slot_size);
	sqp->rec.recvs = recvs;
	sqp->rings.provider = provider;
	WRITE_ONCE(sqp->rings.tracks_mws, new.tracks_mws);
	sqp->rings.rebases = reg->create_flags & SHIFT_QP_CREATE_REBASE && provider->rebase &&
			     !sqp->srqm.ssrq &&
			     shift_proof_holds(sqp->sdev, provider->hands_back_if);
	/* done here, so that the first modify to RTS need not do it */
	provider->starts(sqp);
	sqp->rings.start_told = true;
	sqp->rings.registered = true;
	sqp->rings.usable = true;
	sqp->fo.reason = SHIFT_REASON_NOT_RTS;
	mutex_unlock(&sqp->lock);
	return 0;

err_unlock:
	mutex_unlock(&sqp->lock);
err_free:
	shift_recv_free(&recvs);
	kvfree(raw);
	kvfree(entry);
err_new:
	new_qp_drop(&new, provider);
	return err;
}

/**
 * shift_qp_unregister - the provider has unregistered the QP, or its file was closed
 * @sqp: the QP.
 *
 * User memory is not touched after this returns.  A QP on its default NIC goes on unprotected.  One
 * that is away cannot go on without its ring.
 *
 * Context: process context, sqp->lock not held.
 */
void shift_qp_unregister(struct shift_qp *sqp)
{
	struct shift_qp_pins pins;

	mutex_lock(&sqp->lock);
	if (!sqp->rings.usable) {
		mutex_unlock(&sqp->lock);
		return;
	}
	/* one that is away is being destroyed, or cannot go on without its ring */
	if (shift_qp_is_away(sqp) && sqp->fo.state != SHIFT_ST_FAIL)
		shift_failover_event(sqp, SHIFT_EV_APP_ERROR, NULL);
	else
		shift_failover_unprotect(sqp, SHIFT_REASON_NO_PROVIDER);
	spin_lock_bh(&sqp->ledger_lock);
	sqp->rec.live = false;
	pins = sqp->rings.pins;
	memset(&sqp->rings.pins, 0, sizeof(sqp->rings.pins));
	sqp->rings.registered = false;
	sqp->rings.usable = false;
	spin_unlock_bh(&sqp->ledger_lock);
	mutex_unlock(&sqp->lock);
	qp_pins_drop(&pins);
}
