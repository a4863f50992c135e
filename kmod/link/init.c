// SPDX-License-Identifier: GPL-2.0
/* Begin and end of the layer: workqueues, the listener, and what is told of links. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/workqueue.h>
#include "link/link.h"
#include "link/link_priv.h"

unsigned short shift_link_port = 899;
module_param_named(port, shift_link_port, ushort, 0444);
MODULE_PARM_DESC(port, "RDMA CM port of links, below 1024, the same on all nodes");

/* Setup and teardown of connections wait for firmware and for peers. */
struct workqueue_struct *shift_link_cm_wq;
/* Heartbeats and the delivery do not wait. */
struct workqueue_struct *shift_link_beat_wq;
struct workqueue_struct *shift_link_wq;
const struct shift_link_ops *shift_link_ops;

/**
 * shift_link_init - get ready to make links and to be connected
 * @ops: called for what links receive, and when their states change.
 *
 * Context: process.
 * Return: 0, -ENOMEM, -EINVAL (a port that any user may use), or why the port cannot be listened on
 * (-EADDRINUSE).
 */
int shift_link_init(const struct shift_link_ops *ops)
{
	int err;

	/* any user may listen on other ports, and peers would take him for this kernel */
	if (!shift_port_is_privileged(shift_link_port)) {
		pr_err("port %u is not below 1024\n", shift_link_port);
		return -EINVAL;
	}
	shift_link_ops = ops;
	err = shift_auth_init();
	if (err)
		return err;
	err = -ENOMEM;
	shift_link_wq = alloc_workqueue("shift_link", WQ_MEM_RECLAIM | WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!shift_link_wq)
		goto err_auth;
	shift_link_beat_wq = alloc_workqueue("shift_link_beat",
					     WQ_MEM_RECLAIM | WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!shift_link_beat_wq)
		goto err_wq;
	shift_link_cm_wq = alloc_workqueue("shift_link_cm", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!shift_link_cm_wq)
		goto err_beat_wq;

	shift_links_allow(true);
	err = shift_listener_start();
	if (err) {
		pr_err("cannot listen on port %u (%d)\n", shift_link_port, err);
		goto err_cm_wq;
	}
	shift_neigh_init();
	shift_dreq_init();
	return 0;

err_cm_wq:
	shift_links_allow(false);
	destroy_workqueue(shift_link_cm_wq);
err_beat_wq:
	destroy_workqueue(shift_link_beat_wq);
err_wq:
	destroy_workqueue(shift_link_wq);
err_auth:
	shift_auth_uninit();
	return err;
}

/**
 * shift_link_uninit - end all links; afterwards no shift_link_ops are called any more
 *
 * References that are still held stay valid, and DOWN.  Forgets the peers, too.
 *
 * Context: process, sleeps; see shift_link_device_gone().
 */
void shift_link_uninit(void)
{
	shift_links_allow(false);
	shift_neigh_uninit();
	shift_dreq_uninit();
	shift_listener_stop();
	shift_link_device_gone(NULL, false);
	/* the ends of connections were waited for, but not the last steps of that work */
	destroy_workqueue(shift_link_cm_wq);
	destroy_workqueue(shift_link_beat_wq);
	destroy_workqueue(shift_link_wq);
	shift_auth_uninit();
	shift_peer_clear();
}
