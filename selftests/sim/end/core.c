// SPDX-License-Identifier: GPL-2.0
/* The RDMA core of one end: which devices there are, and their events. */
#include "core/object.h"
#include "end/inside.h"

const struct uverbs_obj_type_class uverbs_idr_class;
struct shift_dev *sim_own, *sim_backup;

static struct sim_dev *devices[SIM_NETS];
static void *shadow[SIM_NETS];
static struct ib_event_handler *handlers[SIM_NETS];
static struct ib_client *client;

static int net_of(struct ib_device *dev)
{
	return ((struct sim_dev *)dev)->net;
}

void ib_set_client_data(struct ib_device *dev, struct ib_client *c, void *data)
{
	shadow[net_of(dev)] = data;
}

void ib_register_event_handler(struct ib_event_handler *handler)
{
	handlers[net_of(handler->device)] = handler;
}

void ib_unregister_event_handler(struct ib_event_handler *handler)
{
	handlers[net_of(handler->device)] = NULL;
}

/* A device is added, or removed. */
void sim_core_device(int net, bool there)
{
	void *data = shadow[net];
	int err;

	if (there == !!data)
		return;
	if (there) {
		err = client->add(&devices[net]->ib);
		if (err)
			sim_fail("a device cannot be added (%d)", err);
	} else {
		client->remove(&devices[net]->ib, data);
		shadow[net] = NULL;
	}
	sim_own = shadow[0];
	sim_backup = shadow[1];
}

int ib_register_client(struct ib_client *c)
{
	client = c;
	sim_core_device(0, true);
	sim_core_device(1, true);
	return 0;
}

void ib_unregister_client(struct ib_client *c)
{
	sim_core_device(1, false);
	sim_core_device(0, false);
}

void sim_core_start(struct sim_dev *own, struct sim_dev *backup)
{
	devices[0] = own;
	devices[1] = backup;
}

void sim_core_port(int net, bool down)
{
	struct ib_event event = {
		.event = down ? IB_EVENT_PORT_ERR : IB_EVENT_PORT_ACTIVE, .element.port_num = 1,
	};

	if (handlers[net])
		handlers[net]->handler(handlers[net], &event);
}
