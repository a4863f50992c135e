// SPDX-License-Identifier: GPL-2.0
/* A shared receive queue of an application, and what its provider registers of it. */
#include "core/srq.h"
#include "end/inside.h"
#include "srq/srq.h"
#include "verbs/verbs.h"

void end_srq_create(struct sim_app_srq *app, struct ib_srq_init_attr *init,
		    struct shift_abi_reg_srq *reg)
{
	struct ib_udata udata;
	struct shift_srq *ssrq;
	int err;

	app->srq = sim_srq_alloc((struct sim_dev *)sim_own->ibdev, sim_pd_get(), app->ring);
	app->srq->uobject = &app->uobject;
	err = app->srq->device->ops.create_srq(app->srq, init, &udata);
	ssrq = shift_srq_find(app->srq);
	if (err || !ssrq)
		sim_fail("an SRQ cannot be created (%d)", err);
	shift_srq_get(ssrq);
	app->ssrq = ssrq;
	reg->provider = sim_own->provider->id;
	reg->ring.addr = (u64)app->ring;
	reg->flag_addr = (u64)&app->flag;
	err = shift_srq_register(ssrq, reg);
	if (err)
		sim_fail("an SRQ cannot be registered (%d)", err);
	reg->key = ssrq->rings.key;
	reg->entries = ssrq->rings.entries;
	reg->entry_size = ssrq->rings.entry_size;
	reg->entry_offset = ssrq->rings.entry_offset;
	reg->table_len = ssrq->rings.table_len;
	app->table = ssrq->rings.table;
}

int end_srq_modify(struct sim_app_srq *app, enum ib_srq_attr_mask mask, u32 value)
{
	struct ib_srq_attr attr = { .max_wr = value, .srq_limit = value };

	return app->srq->device->ops.modify_srq(app->srq, &attr, mask, NULL);
}

void end_srq_kick(struct sim_app_srq *app)
{
	shift_srq_doorbell(app->ssrq);
}

bool end_srq_keeps(struct sim_app_srq *app, u64 addr)
{
	struct shift_srq *ssrq = app->ssrq;
	const struct shift_srq_recv *recv;

	list_for_each_entry(recv, &ssrq->rec.pending, node)
		if (ssrq->rec.sge[recv->recv_id & SHIFT_RECV_ID_INDEX].addr == addr)
			return true;
	return false;
}

void end_srq_destroy(struct sim_app_srq *app)
{
	app->srq->device->ops.destroy_srq(app->srq, NULL);
	sim_srq_free(app->srq);
	shift_srq_unregister(app->ssrq);
	shift_srq_put(app->ssrq);
	sim_pd_put();
}
