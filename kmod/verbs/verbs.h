/* SPDX-License-Identifier: GPL-2.0 */
/* Wrappers in the operations of a device, the client, pairs and registration. */
#ifndef SHIFT_VERBS_VERBS_H
#define SHIFT_VERBS_VERBS_H

#include "core/object.h"
#include "core/qp.h"
#include "core/srq.h"
#include "pure/ulp.h"

struct netlink_ext_ack;
struct shift_pair;

/* ops.c */
int shift_ops_attach(struct shift_dev *sdev);
int shift_ops_swap_out(struct shift_dev *sdev, struct netlink_ext_ack *extack);
void shift_ops_detached(struct shift_dev *sdev);
void shift_ops_device_gone(struct shift_dev *sdev, bool unloading);

/* client.c */
int shift_device_init(void);
void shift_device_uninit(void);

/* pair.c */
int shift_pair_add(const char *dev, const char *backup, enum shift_policy policy,
		   struct netlink_ext_ack *extack);
int shift_pair_set(const char *dev, enum shift_policy policy, struct netlink_ext_ack *extack);
int shift_pair_del(const char *dev, struct netlink_ext_ack *extack);
/* QPs of @dev (all, or the one of @qpn) to @path; @keep: and those to come */
int shift_pair_move(const char *dev, u32 qpn, u8 path, bool keep,
		    struct netlink_ext_ack *extack);
void shift_pair_device_gone(struct shift_dev *sdev);

/* register.c */
int shift_cq_register(struct shift_cq *scq, const struct shift_abi_reg_cq *reg);
void shift_cq_unregister(struct shift_cq *scq);	/* not in a fence */
int shift_qp_register(struct shift_qp *sqp, const struct shift_abi_reg_qp *reg);
void shift_qp_unregister(struct shift_qp *sqp);

/* charge.c */
bool shift_charge_pd(struct shift_charge *charge, struct shift_pd *spd, unsigned int backup,
		     unsigned int home);
bool shift_charge_qp(struct shift_qp *sqp, unsigned int num);

/* ah.c */
extern const struct ib_device_ops shift_ah_ops;

/* pd.c */
extern const struct ib_device_ops shift_pd_ops;
void shift_pd_pair_gone(struct shift_pair *pair);
u32 shift_pd_users(struct shift_dev *sdev);
void shift_pd_device_gone(struct shift_dev *sdev);

/* mr.c */
extern const struct ib_device_ops shift_mr_ops;
void shift_mr_pair_gone(struct shift_pair *pair);
void shift_mr_device_gone(struct shift_dev *sdev);

/* mw.c */
extern const struct ib_device_ops shift_mw_ops;
void shift_mw_device_gone(struct shift_dev *sdev);

/* cq.c */
extern const struct ib_device_ops shift_cq_ops;
struct shift_cq *shift_cq_track_kernel(struct shift_dev *sdev, struct ib_cq *cq,
				       const struct shift_provider *provider,
				       struct shift_kernel_cq *kernel);
void shift_cq_drop(struct shift_obj *obj);
void shift_cq_device_gone(struct shift_dev *sdev);

/* srq.c */
extern const struct ib_device_ops shift_srq_ops;
void shift_srq_pair_gone(struct shift_pair *pair);
void shift_srq_device_gone(struct shift_dev *sdev);

/* gsi.c */
void shift_gsi_posting(struct ib_qp *qp, const struct ib_send_wr *wr);	/* any context */

/* kernel.c */
extern const struct ib_device_ops shift_kernel_ops;
#define SHIFT_KERNEL_USERS_TEXT	64
int shift_users_text(u32 users, char *text, size_t size);
int shift_kernel_users_text(char *text, size_t size);
bool shift_kernel_users(const struct shift_dev *sdev);
enum shift_ulp shift_kernel_pd_user(const struct shift_dev *sdev, const struct ib_pd *pd);
bool shift_kernel_is_own(const struct ib_qp *qp);
enum shift_ulp shift_kernel_user(const struct shift_dev *sdev, const struct ib_qp *qp);
struct shift_cq *shift_kernel_cq_join(struct shift_dev *sdev, struct ib_cq *cq);
void shift_kernel_cq_leave(struct shift_cq *scq);
enum shift_reason shift_kernel_qp_register(struct shift_qp *sqp);
int shift_kernel_send(struct shift_qp *sqp, struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr);	/* any context */

/* unlisted.c */

/**
 * struct shift_unlisted - a QP of a user in the kernel that is not tracked
 * @rcu: for its end.
 * @qpn: its number.
 * @user: the name of the module that has allocated its PD.
 */
struct shift_unlisted {
	struct rcu_head rcu;
	u32 qpn;
	char user[TASK_COMM_LEN];
};

/**
 * struct shift_unlisted_cursor - a place in the lists of all devices
 * @dev: how many devices are behind it.
 * @qpn: the next number of the device to look at.
 * @name: of the device.
 */
struct shift_unlisted_cursor {
	unsigned int dev;
	unsigned long qpn;
	char name[IB_DEVICE_NAME_MAX];
};

void shift_unlisted_add(struct shift_dev *sdev, const struct ib_qp *qp);
void shift_unlisted_drop(struct shift_dev *sdev, u32 qpn);
void shift_unlisted_device_gone(struct shift_dev *sdev);
bool shift_unlisted_next(struct shift_unlisted_cursor *cursor, struct shift_unlisted *entry);

/* drain.c */
extern const struct ib_device_ops shift_drain_ops;

/* kernel_mr.c */
extern const struct ib_device_ops shift_kernel_mr_ops;

/* modify.c */
extern const struct ib_device_ops shift_modify_ops;

/* qp.c */
extern const struct ib_device_ops shift_qp_ops;
void shift_qp_pair_gone(struct shift_pair *pair);
void shift_qp_device_gone(struct shift_dev *sdev);

#endif /* SHIFT_VERBS_VERBS_H */
