// SPDX-License-Identifier: GPL-2.0
/* CQs: both ways to poll, sleeping for events, resizing under traffic. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "ops.h"

#define RESIZE_EVERY	64
#define OWED_SECONDS	2.0
#define WC_FIELDS	(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM)

struct queue *queue_open(struct rig *rig, unsigned int entries, bool only_solicited)
{
	struct queue *queue = &rig->queue[rig->queues++];
	struct ibv_cq_init_attr_ex attr = {
		.cqe = entries, .cq_context = queue, .channel = rig->side.channel,
		.wc_flags = WC_FIELDS,
	};

	queue->entries = entries;
	queue->only_solicited = only_solicited;
	if (rig->side.opt.poll_ex) {
		queue->ex = ibv_create_cq_ex(rig->side.context, &attr);
		queue->cq = queue->ex ? ibv_cq_ex_to_cq(queue->ex) : NULL;
	} else {
		queue->cq = ibv_create_cq(rig->side.context, entries, queue,
					  rig->side.channel, 0);
	}
	if (!queue->cq)
		die(EXIT_SETUP, "a CQ of %u: %s", entries, strerror(errno));
	return queue;
}

void queue_arm(struct queue *queue)
{
	if (ibv_req_notify_cq(queue->cq, queue->only_solicited))
		die(EXIT_VIOLATION, "ibv_req_notify_cq");
}

static void read_wc(struct ibv_cq_ex *ex, struct ibv_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = ex->wr_id;
	wc->status = ex->status;
	wc->qp_num = ibv_wc_read_qp_num(ex);
	if (wc->status != IBV_WC_SUCCESS)
		return;
	wc->opcode = ibv_wc_read_opcode(ex);
	wc->byte_len = ibv_wc_read_byte_len(ex);
	wc->wc_flags = ibv_wc_read_wc_flags(ex);
	if (wc->wc_flags & WC_INVALIDATED)
		wc->invalidated_rkey = ibv_wc_read_invalidated_rkey(ex);
	else if (wc->wc_flags & IBV_WC_WITH_IMM)
		wc->imm_data = ibv_wc_read_imm_data(ex);
}

static int take_ex(struct ibv_cq_ex *ex, struct ibv_wc *wc, int most)
{
	struct ibv_poll_cq_attr attr = { };
	int n = 0, ret = ibv_start_poll(ex, &attr);

	if (ret)
		return ret == ENOENT ? 0 : -ret;
	do {
		read_wc(ex, &wc[n++]);
		ret = n < most ? ibv_next_poll(ex) : ENOENT;
	} while (!ret);
	ibv_end_poll(ex);
	return ret == ENOENT ? n : -ret;
}

/* Larger and back again, with completions in it. */
static void resize(struct queue *queue)
{
	int ret;

	queue->taken = 0;
	queue->resized++;
	ret = ibv_resize_cq(queue->cq, queue->entries * (1 + queue->resized % 2));
	if (ret)
		die(EXIT_VIOLATION, "ibv_resize_cq: %s", strerror(ret));
}

static int take(struct rig *rig, struct queue *queue, struct ibv_wc *wc)
{
	int n = queue->ex ? take_ex(queue->ex, wc, WC_BATCH) :
			    ibv_poll_cq(queue->cq, WC_BATCH, wc);

	if (n < 0)
		die(EXIT_VIOLATION, "polling failed: %d", n);
	queue->taken += n;
	if (rig->side.opt.resize_cq && queue->taken >= RESIZE_EVERY)
		resize(queue);
	return n;
}

struct lane *find_lane(struct rig *rig, uint32_t qpn)
{
	unsigned int i;

	for (i = 0; i < rig->side.opt.qps; i++)
		if (rig->lane[i].qp->qp_num == qpn)
			return &rig->lane[i];
	die(EXIT_VIOLATION, "completion for an unknown QP %u", qpn);
}

static bool drain(struct rig *rig, struct queue *queue)
{
	struct ibv_wc wc[WC_BATCH];
	bool any = false;
	int i, n;

	while ((n = take(rig, queue, wc))) {
		for (i = 0; i < n; i++) {
			struct lane *lane = find_lane(rig, wc[i].qp_num);

			if (wc[i].wr_id & RECEIVE_BIT)
				target_receive(rig, lane, &wc[i]);
			else
				sendq_complete(rig, lane, &wc[i]);
		}
		any = true;
	}
	return any;
}

/* A receive is overdue: it may have come without being solicited. */
static bool overdue(const struct rig *rig, const struct queue *queue)
{
	unsigned int i;

	for (i = 0; i < rig->side.opt.qps; i++)
		if (rig->lane[i].receives == queue && rig->lane[i].waiting)
			return true;
	return false;
}

static bool after_event(struct rig *rig, struct queue *queue)
{
	bool any = drain(rig, queue);

	if (queue->only_solicited && !queue->solicited && !rig->side.opt.more_events)
		die(EXIT_VIOLATION, "an event without a solicited completion");
	queue->solicited = 0;
	queue->owed = 0;
	queue_arm(queue);
	any |= drain(rig, queue);
	return any;
}

/* The textbook use of a channel: the CQ is only looked at after an event. */
static bool by_event(struct rig *rig, struct queue *queue)
{
	unsigned int before;
	bool any;

	if (atomic_exchange(&queue->fired, 0))
		return after_event(rig, queue);
	if (queue->owed && rig->clock - queue->owed > OWED_SECONDS)
		die(EXIT_VIOLATION, "no event for a solicited completion");
	if (!queue->only_solicited || !overdue(rig, queue))
		return false;
	before = queue->solicited;
	any = drain(rig, queue);
	if (queue->solicited != before && !queue->owed)
		queue->owed = rig->clock;
	return any;
}

bool queues_work(struct rig *rig)
{
	bool any = false;
	unsigned int i;

	for (i = 0; i < rig->queues; i++)
		any |= rig->side.channel ? by_event(rig, &rig->queue[i]) :
					   drain(rig, &rig->queue[i]);
	return any;
}

/* All is done: whether there is a completion nobody expects. */
bool queues_left(struct rig *rig)
{
	struct ibv_wc wc[WC_BATCH];
	unsigned int i;
	int j, n;

	for (i = 0; i < rig->queues; i++)
		while ((n = take(rig, &rig->queue[i], wc)))
			for (j = 0; j < n; j++)
				if (wc[j].status == IBV_WC_SUCCESS ||
				    !find_lane(rig, wc[j].qp_num)->failed)
					return true;
	return false;
}

static void *sleeper(void *arg)
{
	struct rig *rig = arg;
	struct ibv_cq *cq;
	void *context;

	while (!atomic_load(&rig->sleep_over)) {
		struct queue *queue;

		if (ibv_get_cq_event(rig->side.channel, &cq, &context)) {
			if (errno == EINTR)
				continue;
			die(EXIT_VIOLATION, "ibv_get_cq_event: %s", strerror(errno));
		}
		queue = context;

		if (queue->cq != cq)
			die(EXIT_VIOLATION, "an event of another CQ");
		ibv_ack_cq_events(cq, 1);
		atomic_store(&queue->fired, 1);
	}
	return NULL;
}

static void woken(int signal)
{
	(void)signal;
}

void sleeper_start(struct rig *rig)
{
	struct sigaction action = { .sa_handler = woken };
	unsigned int i;

	if (!rig->side.channel)
		return;
	sigaction(SIGUSR1, &action, NULL);
	if (pthread_create(&rig->sleeper, NULL, sleeper, rig))
		die(EXIT_SETUP, "cannot start a thread");
	for (i = 0; i < rig->queues; i++)
		queue_arm(&rig->queue[i]);
}

void sleeper_stop(struct rig *rig)
{
	if (!rig->side.channel)
		return;
	atomic_store(&rig->sleep_over, true);
	/* It may be about to sleep when the signal comes. */
	while (!pthread_kill(rig->sleeper, SIGUSR1) &&
	       pthread_tryjoin_np(rig->sleeper, NULL))
		usleep(1000);
}
