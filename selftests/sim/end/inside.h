/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of one end share: the module's code, and what stands in for the rest of it. */
#ifndef SIM_END_INSIDE_H
#define SIM_END_INSIDE_H

#include "end.h"
#include "core/event.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"

struct shift_link;
struct shift_link_ops;

extern int sim_this_end;
extern struct shift_dev *sim_own, *sim_backup;

/* core.c */
void sim_core_start(struct sim_dev *own, struct sim_dev *backup);
void sim_core_device(int net, bool there);
void sim_core_port(int net, bool down);

/* link.c */
struct shift_conn;
struct shift_msg;
void sim_links_start(const union ib_gid *peer, const union ib_gid *peer_backup);
bool sim_links_up(const struct shift_qp *sqp);

/* mail.c */
extern const struct shift_link_ops sim_mail_ops;
void sim_mail_start(void);
void sim_mail_wait(void);		/* until nothing is late */

/* liar.c */
void sim_liar_start(void);
void sim_lie(struct shift_link *link, const struct shift_msg *m,
	     void (*received)(struct shift_link *link, const struct shift_msg *m));

/* rules.c */
void sim_storm(u64 ns);
void sim_rules_print(void);

/* what the provider of its process has registered */
static inline struct sim_app_qp *sim_app_of(const struct shift_qp *sqp)
{
	return sqp->rings.priv;
}

/* provider.c */
void sim_take_over(struct shift_qp *sqp, u64 first, u64 received);
void sim_providers(void);

/* end.c */
struct ib_pd *sim_pd_get(void);
void sim_pd_put(void);

/* srq.c */
void end_srq_create(struct sim_app_srq *app, struct ib_srq_init_attr *init,
		    struct shift_abi_reg_srq *reg);
int end_srq_modify(struct sim_app_srq *app, enum ib_srq_attr_mask mask, u32 value);
void end_srq_kick(struct sim_app_srq *app);
bool end_srq_keeps(struct sim_app_srq *app, u64 addr);
void end_srq_destroy(struct sim_app_srq *app);

/* direct.c */
const struct shift_provider *sim_direct_provider(const struct shift_provider *base);

/* event.c */
extern const struct shift_event_ops sim_event_ops;

#endif /* SIM_END_INSIDE_H */
