// SPDX-License-Identifier: GPL-2.0
/*
 * An error that a process reports of a QP on its own NIC: does the QP have it?
 *
 * The NIC knows.  It is asked by a work item of its own, with no lock held, because a NIC that is
 * dead may take a minute to answer.  The QP waits for a moment, and then believes the process:
 * whether that may begin a failover without the NIC's word, its account has decided before.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "core/kick.h"
#include "core/node.h"
#include "core/qp.h"
#include "failover/failover.h"
#include "failover/internal.h"

#define FALSE_US	20000	/* until a QP that reports an error has to be in ERR; scaled */
#define PAUSE_US	50	/* between two looks; it doubles */
#define PAUSE_MAX_US	2000
#define ANSWER_MS	100	/* for the NIC to tell; scaled */

/* Apart from the QPs' work items, which would wait for their turn behind a mute NIC. */
static struct workqueue_struct *report_wq;

/**
 * shift_report_init - while the module is loaded
 *
 * Context: process context, before there are devices.
 * Return: 0 or -ENOMEM.
 */
int shift_report_init(void)
{
	report_wq = alloc_workqueue("shift_report", WQ_UNBOUND | WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	return report_wq ? 0 : -ENOMEM;
}

/* No QP is left.  Process context. */
void shift_report_uninit(void)
{
	destroy_workqueue(report_wq);
}

static bool qp_works(struct shift_qp *sqp, struct ib_qp *qp, struct ib_qp_attr *attr)
{
	struct ib_qp_init_attr init = {};

	return !sqp->sdev->saved.query_qp(qp, attr, IB_QP_STATE, &init) &&
	       (attr->qp_state == IB_QPS_RTR || attr->qp_state == IB_QPS_RTS);
}

/* The completion of an error may be seen a moment before the QP is in ERR. */
static bool error_is_false(struct shift_qp *sqp, struct ib_qp *qp)
{
	struct ib_qp_attr *attr = kzalloc(sizeof(*attr), GFP_NOIO);
	u64 end = shift_from_now_us(FALSE_US);
	unsigned int pause = PAUSE_US;
	bool works;

	if (!attr)
		return false;
	while ((works = qp_works(sqp, qp, attr)) && ktime_get_ns() < end) {
		usleep_range(pause, 2 * pause);
		pause = min_t(unsigned int, 2 * pause, PAUSE_MAX_US);
	}
	kfree(attr);
	return works;
}

/**
 * shift_report_work - ask the NIC about the QP
 * @work: of the QP's report.
 *
 * Context: process context, no lock held; as long as the driver takes.  Who destroys the QP waits
 * for it, before the driver destroys it.
 */
void shift_report_work(struct work_struct *work)
{
	struct shift_qp *sqp = container_of(work, struct shift_qp, report.work);
	unsigned int noio = memalloc_noio_save();
	u32 asked = READ_ONCE(sqp->report.asked);
	struct ib_qp *qp = READ_ONCE(sqp->qp);

	if (qp) {
		WRITE_ONCE(sqp->report.is_false, error_is_false(sqp, qp));
		/* the number comes last, because it says that the answer is there */
		smp_store_release(&sqp->report.answered, asked);
		shift_qp_kick(sqp, SHIFT_QPB_REPORT);
	}
	memalloc_noio_restore(noio);
}

static void report_ask(struct shift_qp *sqp)
{
	sqp->report.open = true;
	sqp->report.until_ns = shift_from_now(ANSWER_MS);
	spin_lock_bh(&sqp->inbox_lock);
	WRITE_ONCE(sqp->report.asked, sqp->report.asked + 1);
	if (!test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags))
		queue_work(report_wq, &sqp->report.work);
	spin_unlock_bh(&sqp->inbox_lock);
}

/**
 * shift_report_judge - is an error of the QP's, on its default NIC, to be believed?
 * @sqp: the QP, locked, in RUN.
 *
 * Asks the NIC, if nobody has.  While the answer is waited for, SHIFT_QPB_REPORT or the timer tell
 * when to call this again.  A port that is down speaks for the error.
 *
 * Context: process context.
 * Return: see enum shift_verdict.
 */
enum shift_verdict shift_report_judge(struct shift_qp *sqp)
{
	struct shift_qp_report *report = &sqp->report;
	u64 now = ktime_get_ns();

	lockdep_assert_held(&sqp->lock);
	if (READ_ONCE(sqp->sdev->port_down)) {
		report->open = false;
		return SHIFT_VERDICT_TRUE;
	}
	if (!report->open)
		report_ask(sqp);
	/* pairs with the release in shift_report_work() */
	if (smp_load_acquire(&report->answered) == report->asked) {
		report->open = false;
		return READ_ONCE(report->is_false) ? SHIFT_VERDICT_FALSE : SHIFT_VERDICT_TRUE;
	}
	if (now >= report->until_ns) {
		report->open = false;
		return SHIFT_VERDICT_TRUE;
	}
	shift_qp_arm(sqp, div_u64(report->until_ns - now, shift_scaled_ns(1)) + 1);
	return SHIFT_VERDICT_OPEN;
}
