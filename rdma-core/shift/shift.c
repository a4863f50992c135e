// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a context tells the rdma_shift module and hears from it: ioctls on /dev/shift. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <infiniband/driver.h>

#include "shift.h"

static_assert(SHIFT_SIDE_WC_SIZE == sizeof(struct ib_uverbs_wc),
	      "side ring entries are not laid out as struct ib_uverbs_wc");
static_assert(SHIFT_SIDE_WC_SIZE == sizeof(struct ibv_wc),
	      "side ring entries are not laid out as struct ibv_wc");

void shift_init(struct shift_context *ctx)
{
	pthread_mutex_init(&ctx->lock, NULL);
	ctx->fd = -1;
}

void shift_uninit(struct shift_context *ctx)
{
	if (ctx->fd >= 0)
		close(ctx->fd);
	pthread_mutex_destroy(&ctx->lock);
}

/* A module that does not know our newest version says which is its own newest one */
static int shift_open(uint32_t *version)
{
	struct shift_abi_query query = {
		.abi_version = SHIFT_ABI_VERSION,
	};
	int fd;

	fd = open(SHIFT_ABI_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;

	if ((ioctl(fd, SHIFT_IOC_QUERY, &query) && errno != EPROTONOSUPPORT) ||
	    query.abi_version < SHIFT_ABI_OLDEST ||
	    query.abi_version > SHIFT_ABI_VERSION) {
		close(fd);
		return -1;
	}
	*version = query.abi_version;

	return fd;
}

/* One try per context, by the first object that wants it */
static int shift_get_fd(struct shift_context *ctx)
{
	int fd;

	pthread_mutex_lock(&ctx->lock);
	if (!ctx->tried) {
		ctx->fd = shift_open(&ctx->version);
		ctx->tried = true;
	}
	fd = ctx->fd;
	pthread_mutex_unlock(&ctx->lock);

	return fd;
}

static int shift_ioctl_id(struct shift_context *ctx, unsigned long request,
			  enum shift_abi_type type, uint32_t id)
{
	struct shift_abi_id cmd = {
		.type = type,
		.id = id,
	};

	return ioctl(shift_get_fd(ctx), request, &cmd);
}

/*
 * shift_register_cq - register a CQ and map its side ring
 *
 * Must hold the CQ's lock, unless no one can be polling yet. Again after a
 * resize: the same side ring, with what lies in it.
 */
void shift_register_cq(struct shift_context *ctx, struct shift_cq *cq,
		       struct shift_abi_reg_cq *cmd)
{
	uint32_t *flag = (uint32_t *)(uintptr_t)cmd->flag_addr;
	void *side;
	int fd;

	fd = shift_get_fd(ctx);
	cmd->abi_version = ctx->version;
	if (fd < 0 || ioctl(fd, SHIFT_IOC_REGISTER_CQ, cmd))
		return;

	side = mmap(NULL, cmd->side_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    cmd->side_offset);
	if (side == MAP_FAILED)
		goto err_unregister;

	shift_free_cq(cq);
	if (!shift_side_attach(&cq->side, side, cmd->side_len))
		goto err_unmap;

	if (shift_side_pending(&cq->side))
		shift_side_store(flag, SHIFT_CQ_FLAG_SIDE, memory_order_relaxed);
	cq->side_len = cmd->side_len;
	cq->obj.id = cmd->id;
	cq->obj.registered = true;
	return;

err_unmap:
	munmap(side, cmd->side_len);
err_unregister:
	shift_ioctl_id(ctx, SHIFT_IOC_UNREGISTER, SHIFT_ABI_CQ, cmd->id);
}

/* Last in create_qp: its locks must be free, and stay where they are */
void shift_register_qp(struct shift_context *ctx, struct shift_object *qp,
		       struct shift_abi_reg_qp *cmd)
{
	int fd;

	fd = shift_get_fd(ctx);
	cmd->abi_version = ctx->version;
	if (fd < 0 || ioctl(fd, SHIFT_IOC_REGISTER_QP, cmd))
		return;

	qp->id = cmd->id;
	qp->registered = true;
}

/* Without a table, here and later, wr_ids are the application's own */
void shift_register_srq(struct shift_context *ctx, struct shift_srq *srq,
			struct shift_abi_reg_srq *cmd, uint32_t max_sge)
{
	void *map;
	int fd;

	fd = shift_get_fd(ctx);
	cmd->abi_version = ctx->version;
	if (fd < 0 || ioctl(fd, SHIFT_IOC_REGISTER_SRQ, cmd))
		return;

	map = mmap(NULL, cmd->table_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   cmd->table_offset);
	if (map == MAP_FAILED)
		goto err_unregister;
	if (!shift_srq_attach(&srq->table, map, cmd) ||
	    shift_srq_max_sge(&srq->table) < max_sge)
		goto err_unmap;

	srq->table_len = cmd->table_len;
	srq->obj.id = cmd->id;
	srq->obj.registered = true;
	return;

err_unmap:
	free(srq->table.free);
	memset(&srq->table, 0, sizeof(srq->table));
	munmap(map, cmd->table_len);
err_unregister:
	shift_ioctl_id(ctx, SHIFT_IOC_UNREGISTER, SHIFT_ABI_SRQ, cmd->id);
}

/*
 * Entries that are in the side ring by now stay there to be polled; receives that
 * have ids keep them.
 */
void shift_unregister(struct shift_context *ctx, struct shift_object *obj,
		      enum shift_abi_type type)
{
	if (!obj->registered)
		return;

	shift_ioctl_id(ctx, SHIFT_IOC_UNREGISTER, type, obj->id);
	obj->registered = false;
}

void shift_free_cq(struct shift_cq *cq)
{
	if (!cq->side.ring)
		return;

	munmap(cq->side.ring, cq->side_len);
	cq->side.ring = NULL;
}

void shift_free_srq(struct shift_srq *srq)
{
	if (!srq->table.map)
		return;

	munmap(srq->table.map, srq->table_len);
	free(srq->table.free);
	srq->table.map = NULL;
}

/*
 * Sleep until the gate opens, for a time that the kernel bounds. False: there is nothing to wait
 * for, as the kernel does not know the QP (any more).
 */
bool shift_wait(struct shift_context *ctx, const struct shift_object *qp)
{
	return !shift_ioctl_id(ctx, SHIFT_IOC_WAIT, SHIFT_ABI_QP, qp->id) ||
	       errno == ETIMEDOUT || errno == EINTR;
}

/* Something was posted to what is away from its device; false: not taken in, and errno */
bool shift_kick(struct shift_context *ctx, const struct shift_object *obj,
		enum shift_abi_type type)
{
	return !shift_ioctl_id(ctx, SHIFT_IOC_KICK, type, obj->id);
}

/* Its own QP is handed back: see SHIFT_IOC_REBASE. False: there is nothing to do */
bool shift_rebase(struct shift_context *ctx, const struct shift_object *qp,
		  enum shift_abi_step step, struct shift_abi_rebase *base)
{
	base->id = qp->id;
	base->step = step;
	return qp->registered && !ioctl(shift_get_fd(ctx), SHIFT_IOC_REBASE, base);
}

/* A QP in INIT empties its SRQ's ring: see SHIFT_IOC_EMPTY */
int shift_empty(struct shift_context *ctx, const struct shift_object *qp,
		struct shift_abi_empty *cmd)
{
	cmd->id = qp->id;
	return ioctl(shift_get_fd(ctx), SHIFT_IOC_EMPTY, cmd) ? errno : 0;
}

/* Is this error part of a switch, and not for the application to see? */
bool shift_swallow(struct shift_context *ctx, const struct shift_cq *cq, uint32_t qp_num,
		   uint32_t status)
{
	struct shift_abi_cqe cmd = {
		.cq_id = cq->obj.id,
		.qp_num = qp_num,
		.status = status,
	};

	return cq->obj.registered && !ioctl(shift_get_fd(ctx), SHIFT_IOC_CQE, &cmd) &&
	       cmd.answer == SHIFT_CQE_SWALLOW;
}
