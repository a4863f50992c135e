// SPDX-License-Identifier: GPL-2.0
/* Work items, of which never two threads run one; their queues; and completions. */
#include "thread.h"

struct workqueue_struct { const char *name; };

void wait_for_completion(struct completion *c)
{
	sim_might_sleep(__func__);
	while (!c->done)
		sim_sleep(US(50));
}

struct workqueue_struct *alloc_workqueue(const char *name, int flags, int most)
{
	struct workqueue_struct *wq = sim_alloc(sizeof(*wq), GFP_KERNEL);

	if (wq)
		wq->name = name;
	return wq;
}

static bool is_used(const struct workqueue_struct *wq)
{
	u32 i;

	for (i = 0; i < sim_top; i++)
		if (sim_thread[i].state != FREE && sim_thread[i].wq == wq)
			return true;
	return false;
}

void destroy_workqueue(struct workqueue_struct *wq)
{
	sim_might_sleep(__func__);
	while (is_used(wq))
		sim_sleep(US(20));
	kfree(wq);
}

static struct sim_thread *worker_of(const struct work_struct *work)
{
	u32 i;

	for (i = 0; i < sim_top; i++)
		if (sim_thread[i].work == work)
			return &sim_thread[i];
	return NULL;
}

static void work_thread(void *arg)
{
	struct work_struct *work = arg;

	do {
		sim_self->again = false;
		work->pending = false;
		work->func(work);
		/* it may have freed itself, unless it was queued again */
	} while (sim_self->again);
	sim_self->work = NULL;
	sim_self->wq = NULL;
}

bool queue_work(struct workqueue_struct *wq, struct work_struct *work)
{
	struct sim_thread *t;

	if (work->pending)
		return false;
	work->pending = true;
	work->wq = wq;
	t = worker_of(work);
	if (t) {
		t->again = true;
		return true;
	}
	work->end = sim_end_now >= 0 ? sim_end_now : work->end;
	t = sim_thread_start(work->end, "work", work_thread, work, false);
	t->work = work;
	t->wq = wq;
	return true;
}

static bool work_steal(struct work_struct *work)
{
	struct sim_thread *t = worker_of(work);
	bool was = work->pending;

	work->pending = false;
	if (!t)
		return was;
	t->again = false;
	if (!t->begun) {
		t->dead = true;
		t->work = NULL;
		t->wq = NULL;
	}
	return was;
}

static void timer_work(struct sim_timer *t)
{
	struct delayed_work *work = container_of(t, struct delayed_work, timer);

	queue_work(work->work.wq, &work->work);
}

static void delayed_start(struct workqueue_struct *wq, struct delayed_work *work,
			  unsigned long delay)
{
	const u64 tick = NSEC_PER_SEC / HZ;

	work->work.end = sim_end_now >= 0 ? sim_end_now : work->work.end;
	work->work.wq = wq;
	work->timer.fn = timer_work;
	sim_timer_set(&work->timer, sim_now + delay * tick + sim_draw(tick));
}

bool delayed_work_pending(const struct delayed_work *work)
{
	return work->work.pending || sim_timer_armed(&work->timer);
}

bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *work, unsigned long delay)
{
	if (delayed_work_pending(work))
		return false;
	if (!delay)
		return queue_work(wq, &work->work);
	delayed_start(wq, work, delay);
	return true;
}

bool cancel_delayed_work(struct delayed_work *work)
{
	return work_steal(&work->work) | sim_timer_stop(&work->timer);
}

bool mod_delayed_work(struct workqueue_struct *wq, struct delayed_work *work, unsigned long delay)
{
	bool was = cancel_delayed_work(work);

	if (delay)
		delayed_start(wq, work, delay);
	else
		queue_work(wq, &work->work);
	return was;
}

static void work_wait(struct work_struct *work)
{
	struct sim_thread *t;

	sim_might_sleep(__func__);
	while ((t = worker_of(work))) {
		if (t == sim_self)
			sim_fail("a work item waits for itself");
		sim_sleep(US(20));
	}
}

bool cancel_work_sync(struct work_struct *work)
{
	bool was = work_steal(work);

	work_wait(work);
	return was;
}

bool cancel_delayed_work_sync(struct delayed_work *work)
{
	bool was = sim_timer_stop(&work->timer);

	return cancel_work_sync(&work->work) | was;
}

bool flush_delayed_work(struct delayed_work *work)
{
	bool was = sim_timer_stop(&work->timer);

	if (was)
		queue_work(work->work.wq, &work->work);
	work_wait(&work->work);
	return was;
}
