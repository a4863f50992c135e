/* SPDX-License-Identifier: GPL-2.0 */
/* In place of kmod/compat: nothing depends on the version of a kernel here. */
#ifndef SIM_COMPAT_H
#define SIM_COMPAT_H

#include <rdma/ib_verbs.h>

#define SHIFT_CREATE_CQ_UDATA	struct ib_udata
#define SHIFT_RESIZE_CQE	int
#define SHIFT_DMAH_PARAM
#define SHIFT_DMAH_ARG
#define SHIFT_DMAH_NONE
#define SHIFT_DMAH_USED		false
#define SHIFT_DMABUF_UDATA	struct ib_udata
#define shift_driver_create_cq(ops, cq, attr, udata) (ops)->create_cq(cq, attr, udata)
#define shift_memcg_get(mm) NULL
#define shift_synchronize_rcu_tasks_rude() do { } while (0)

#endif /* SIM_COMPAT_H */
