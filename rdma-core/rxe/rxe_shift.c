// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a rxe context tells the rdma_shift module and hears from it, by ioctls on
 * /dev/shift.  Whatever fails here leaves the object as stock: the module is
 * never the reason of an error that the application sees.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "rxe.h"
#include "rxe_queue.h"
#include "rxe_shift.h"

static_assert(RXE_SIDE_WC_SIZE == sizeof(struct ib_uverbs_wc),
	      "side ring entries are not laid out as struct ib_uverbs_wc");
static_assert(RXE_SIDE_WC_SIZE == sizeof(struct ibv_wc),
	      "side ring entries are not laid out as struct ibv_wc");
static_assert(sizeof(pthread_spinlock_t) == sizeof(uint32_t),
	      "the ABI wants the lock as one 32-bit word");

void rxe_shift_init(struct rxe_shift_context *shift)
{
	pthread_mutex_init(&shift->lock, NULL);
	shift->fd = -1;
}

void rxe_shift_uninit(struct rxe_shift_context *shift)
{
	if (shift->fd >= 0)
		close(shift->fd);
	pthread_mutex_destroy(&shift->lock);
}

static int shift_open(void)
{
	struct shift_abi_query query = {
		.abi_version = SHIFT_ABI_VERSION,
	};
	int fd;

	fd = open(SHIFT_ABI_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;

	if (ioctl(fd, SHIFT_IOC_QUERY, &query) ||
	    query.abi_version != SHIFT_ABI_VERSION) {
		close(fd);
		return -1;
	}

	return fd;
}

/* One try per context, by the first CQ or QP that wants it */
static int shift_get_fd(struct ibv_context *ibctx)
{
	struct rxe_shift_context *shift = &to_rctx(ibctx)->shift;
	int fd;

	pthread_mutex_lock(&shift->lock);
	if (!shift->tried) {
		shift->fd = shift_open();
		shift->tried = true;
	}
	fd = shift->fd;
	pthread_mutex_unlock(&shift->lock);

	return fd;
}

static void shift_unregister(int fd, enum shift_abi_type type, uint32_t id)
{
	struct shift_abi_id cmd = {
		.type = type,
		.id = id,
	};

	ioctl(fd, SHIFT_IOC_UNREGISTER, &cmd);
}

static struct shift_abi_ring shift_ring(void *queue, const struct mminfo *mi)
{
	struct shift_abi_ring ring = {
		.addr = (uintptr_t)queue,
		.len = mi->size,
	};

	return ring;
}

/* Must hold cq->lock, unless no one can be polling yet */
void rxe_shift_register_cq(struct rxe_cq *cq)
{
	struct rxe_shift_cq *shift = &cq->shift;
	struct ibv_context *ibctx = cq->vcq.cq.context;
	struct shift_abi_reg_cq cmd = {
		.abi_version = SHIFT_ABI_VERSION,
		.provider = SHIFT_PROVIDER_RXE,
		.cmd_fd = ibctx->cmd_fd,
		.handle = cq->vcq.cq.handle,
		.ring = shift_ring(cq->queue, &cq->mmap_info),
		.flag_addr = (uintptr_t)&shift->flag,
	};
	void *side;
	int fd;

	fd = shift_get_fd(ibctx);
	if (fd < 0 || ioctl(fd, SHIFT_IOC_REGISTER_CQ, &cmd))
		return;

	side = mmap(NULL, cmd.side_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    cmd.side_offset);
	if (side == MAP_FAILED)
		goto err_unregister;

	/* again, after a resize: the same side ring, with what lies in it */
	rxe_shift_free_cq(cq);
	if (!rxe_side_attach(&shift->side, side, cmd.side_len))
		goto err_unmap;

	if (rxe_side_pending(&shift->side))
		shift->flag = SHIFT_CQ_FLAG_SIDE;
	shift->side_len = cmd.side_len;
	shift->id = cmd.id;
	shift->registered = true;
	return;

err_unmap:
	munmap(side, cmd.side_len);
err_unregister:
	shift_unregister(fd, SHIFT_ABI_CQ, cmd.id);
}

/* Entries that are in the side ring by now stay there to be polled */
void rxe_shift_unregister_cq(struct rxe_cq *cq)
{
	if (!cq->shift.registered)
		return;

	shift_unregister(shift_get_fd(cq->vcq.cq.context), SHIFT_ABI_CQ,
			 cq->shift.id);
	cq->shift.registered = false;
}

void rxe_shift_free_cq(struct rxe_cq *cq)
{
	if (!cq->shift.side.ring)
		return;

	munmap(cq->shift.side.ring, cq->shift.side_len);
	cq->shift.side.ring = NULL;
	cq->shift.flag = 0;
}

/* Last in create_qp: the locks must be free, and stay where they are */
void rxe_shift_register_qp(struct rxe_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	struct shift_abi_reg_qp cmd = {
		.abi_version = SHIFT_ABI_VERSION,
		.provider = SHIFT_PROVIDER_RXE,
		.cmd_fd = ibqp->context->cmd_fd,
		.handle = ibqp->handle,
		.sq = shift_ring(qp->sq.queue, &qp->sq_mmap_info),
		.sq_lock_addr = (uintptr_t)&qp->sq.lock,
		.flag_addr = (uintptr_t)&qp->shift.flag,
		.lock_free = qp->sq.lock,
	};
	int fd;

	if (qp_type(qp) != IBV_QPT_RC || !ibqp->send_cq || !ibqp->recv_cq ||
	    !to_rcq(ibqp->send_cq)->shift.registered ||
	    !to_rcq(ibqp->recv_cq)->shift.registered)
		return;

	if (qp->rq.queue) {
		cmd.rq = shift_ring(qp->rq.queue, &qp->rq_mmap_info);
		cmd.rq_lock_addr = (uintptr_t)&qp->rq.lock;
	}

	fd = shift_get_fd(ibqp->context);
	if (fd < 0 || ioctl(fd, SHIFT_IOC_REGISTER_QP, &cmd))
		return;

	qp->shift.id = cmd.id;
	qp->shift.registered = true;
}

void rxe_shift_unregister_qp(struct rxe_qp *qp)
{
	if (!qp->shift.registered)
		return;

	shift_unregister(shift_get_fd(qp->vqp.qp.context), SHIFT_ABI_QP,
			 qp->shift.id);
	qp->shift.registered = false;
	qp->shift.flag = 0;
}

/* If the gate is shut: sleep until it opens, for a time that the kernel bounds */
static void shift_wait(struct rxe_qp *qp, pthread_spinlock_t *lock)
{
	struct shift_abi_id cmd = {
		.type = SHIFT_ABI_QP,
		.id = qp->shift.id,
	};

	if (!qp->shift.registered ||
	    !(rxe_side_load(&qp->shift.flag, memory_order_relaxed) &
	      SHIFT_QP_FLAG_GATE))
		return;

	pthread_spin_unlock(lock);
	ioctl(shift_get_fd(qp->vqp.qp.context), SHIFT_IOC_WAIT, &cmd);
	pthread_spin_lock(lock);
}

void rxe_shift_wait_sq(struct rxe_qp *qp)
{
	shift_wait(qp, &qp->sq.lock);
}

/* Whether to KICK after the post: while the QP is away nobody looks at the ring */
bool rxe_shift_wait_rq(struct rxe_qp *qp)
{
	shift_wait(qp, &qp->rq.lock);
	return qp->shift.registered &&
	       rxe_side_load(&qp->shift.flag, memory_order_relaxed);
}

void rxe_shift_kick(struct rxe_qp *qp)
{
	struct shift_abi_id cmd = {
		.type = SHIFT_ABI_QP,
		.id = qp->shift.id,
	};

	ioctl(shift_get_fd(qp->vqp.qp.context), SHIFT_IOC_KICK, &cmd);
}

/* Is this error part of a switch, and not for the application to see? */
static bool shift_swallow(struct rxe_cq *cq, const struct ib_uverbs_wc *wc)
{
	struct shift_abi_cqe cmd = {
		.cq_id = cq->shift.id,
		.qp_num = wc->qp_num,
		.status = wc->status,
	};

	if (!wc->status || !cq->shift.registered)
		return false;

	return !ioctl(shift_get_fd(cq->vcq.cq.context), SHIFT_IOC_CQE, &cmd) &&
	       cmd.verdict == SHIFT_CQE_SWALLOW;
}

static enum rxe_side_pick shift_pick(struct rxe_cq *cq, uint32_t cq_cons)
{
	struct rxe_queue_buf *q = cq->queue;

	return rxe_side_pick(&cq->shift.side, &q->producer_index, cq_cons,
			     q->index_mask);
}

/* rxe_poll_cq with all that a CQ of protected QPs may hold; holds cq->lock */
int rxe_shift_poll_cq(struct rxe_cq *cq, int ne, struct ibv_wc *wc)
{
	struct rxe_queue_buf *q = cq->queue;
	int npolled = 0;
	bool swallow;
	void *src;

	while (npolled < ne) {
		switch (shift_pick(cq, load_consumer_index(q))) {
		case RXE_PICK_CQ:
			src = consumer_addr(q);
			swallow = shift_swallow(cq, src);
			if (!swallow)
				memcpy(wc, src, sizeof(*wc));
			advance_consumer(q);
			if (swallow)
				continue;
			break;
		case RXE_PICK_SIDE:
			rxe_side_take(&cq->shift.side, wc);
			break;
		case RXE_PICK_NONE:
			goto out;
		}

		++npolled;
		++wc;
	}

out:
	rxe_side_settle(&cq->shift.side, &cq->shift.flag);
	return npolled;
}

/*
 * Show the next completion.  cur_index is the last one shown (or swallowed) of
 * the CQ ring, so that end_poll moves the consumer index rightly also while a
 * side entry is on show.
 */
static bool shift_show_next(struct rxe_cq *cq)
{
	struct rxe_queue_buf *q = cq->queue;
	struct ib_uverbs_wc *wc;
	uint32_t next;

	for (;;) {
		next = (cq->cur_index + 1) & q->index_mask;

		switch (shift_pick(cq, next)) {
		case RXE_PICK_CQ:
			cq->cur_index = next;
			wc = addr_from_index(q, next);
			if (shift_swallow(cq, wc))
				continue;
			break;
		case RXE_PICK_SIDE:
			wc = &cq->shift.wc;
			rxe_side_take(&cq->shift.side, wc);
			break;
		case RXE_PICK_NONE:
		default:
			rxe_side_settle(&cq->shift.side, &cq->shift.flag);
			return false;
		}

		cq->wc = wc;
		cq->vcq.cq_ex.status = wc->status;
		cq->vcq.cq_ex.wr_id = wc->wr_id;
		return true;
	}
}

/* Holds cq->lock, and gives it back if there is nothing to show */
int rxe_shift_start_poll(struct rxe_cq *cq)
{
	struct rxe_queue_buf *q = cq->queue;

	cq->cur_index = (load_consumer_index(q) - 1) & q->index_mask;

	if (shift_show_next(cq))
		return 0;

	/* some may have been swallowed */
	advance_cq_cur_index(cq);
	store_consumer_index(q, cq->cur_index);
	pthread_spin_unlock(&cq->lock);
	errno = ENOENT;
	return errno;
}

/* Holds cq->lock, and keeps it for end_poll */
int rxe_shift_next_poll(struct rxe_cq *cq)
{
	if (shift_show_next(cq))
		return 0;

	errno = ENOENT;
	return errno;
}
