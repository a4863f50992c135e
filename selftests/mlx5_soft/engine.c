// SPDX-License-Identifier: GPL-2.0
/*
 * The thread that is the hardware: it looks at all doorbell records, hands work to
 * rxe and writes what comes back.  It polls with growing pauses while nothing
 * happens, and sleeps while there is no queue.
 */
#include <linux/kthread.h>
#include <linux/sched.h>
#include "mlx5_soft.h"

#define PAUSE_MIN	(50 * NSEC_PER_USEC)
#define PAUSE_MAX	(1000 * NSEC_PER_USEC)

/* Any context. */
void mls_engine_kick(struct mls_dev *dev)
{
	atomic_set(&dev->kick, 1);
	wake_up(&dev->wait);
}

/* Receives first: what arrives meanwhile should find them. */
static bool engine_round(struct mls_dev *dev)
{
	struct mls_srq *srq;
	struct mls_cq *cq;
	struct mls_qp *qp;
	bool any = false;

	if (READ_ONCE(dev->faults.silent))
		return false;
	list_for_each_entry(srq, &dev->srqs, entry)
		any |= mls_srq_run(srq);
	list_for_each_entry(qp, &dev->qps, entry) {
		any |= mls_rq_run(qp);
		any |= mls_sq_run(qp);
	}
	list_for_each_entry(cq, &dev->cqs, entry) {
		any |= mls_cq_drain(cq);
		mls_cq_notify(cq);
	}
	return any;
}

static int engine_main(void *data)
{
	struct mls_dev *dev = data;
	u64 pause = PAUSE_MIN;
	bool any, idle;

	/* hardware does not wait for a processor that an application keeps */
	sched_set_fifo_low(current);
	while (!kthread_should_stop()) {
		atomic_set(&dev->kick, 0);
		mutex_lock(&dev->lock);
		any = engine_round(dev);
		idle = list_empty(&dev->cqs) && list_empty(&dev->srqs);
		mutex_unlock(&dev->lock);
		if (any) {
			pause = PAUSE_MIN;
			cond_resched();
			continue;
		}
		if (idle)
			wait_event_interruptible(dev->wait, atomic_read(&dev->kick) ||
						 kthread_should_stop());
		else
			wait_event_interruptible_hrtimeout(dev->wait, atomic_read(&dev->kick) ||
							   kthread_should_stop(),
							   ns_to_ktime(pause));
		pause = min_t(u64, 2 * pause, PAUSE_MAX);
	}
	return 0;
}

int mls_engine_start(struct mls_dev *dev)
{
	init_waitqueue_head(&dev->wait);
	dev->engine = kthread_run(engine_main, dev, "mls on %s",
				  dev_name(&dev->lower->dev));
	return PTR_ERR_OR_ZERO(dev->engine);
}

void mls_engine_stop(struct mls_dev *dev)
{
	kthread_stop(dev->engine);
}
