// SPDX-License-Identifier: GPL-2.0
/*
 * Another module that replaces an operation of a device, as rdma_shift does: modify_qp.
 *
 *	insmod interposer.ko dev=rxe0
 *
 * Nothing is replaced until 1 is written to the parameter "on".  Then every call is passed on to
 * what was there before.  Writing 0 is refused while somebody else's entry is over this one.  The
 * device has to stay as long as it is 1.
 */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/wait_bit.h>
#include <rdma/ib_verbs.h>

static char *dev = "rxe0";
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "the device");

static unsigned int calls;
module_param(calls, uint, 0444);
MODULE_PARM_DESC(calls, "calls passed on so far");

static bool held;
module_param(held, bool, 0444);
MODULE_PARM_DESC(held, "a call is being held");

static struct ib_device *device;
static int (*below)(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
static atomic_t inside;
static unsigned int hold;

static int hold_set(const char *text, const struct kernel_param *param)
{
	int err = param_set_uint(text, param);

	wake_up_var(&hold);
	return err;
}

#define HOLD_ENDS	~0u

/* Is it one of the calls that are to last? */
static bool is_held(const struct ib_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	unsigned int number = READ_ONCE(hold);

	return number == qp->qp_num ||
	       (number == HOLD_ENDS && !qp->uobject && mask & IB_QP_STATE &&
		attr->qp_state == IB_QPS_ERR);
}

static const struct kernel_param_ops hold_ops = { .set = hold_set, .get = param_get_uint };
module_param_cb(hold, &hold_ops, &hold, 0644);
MODULE_PARM_DESC(hold, "number of a QP: calls for it last until another number is written; 4294967295: those that bring a QP of the kernel to ERR");

static int pass_on(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	int err;

	atomic_inc(&inside);
	if (is_held(qp, attr, mask)) {
		WRITE_ONCE(held, true);
		wait_var_event(&hold, !is_held(qp, attr, mask));
		WRITE_ONCE(held, false);
	}
	WRITE_ONCE(calls, calls + 1);
	err = below(qp, attr, mask, udata);
	if (atomic_dec_and_test(&inside))
		wake_up_var(&inside);
	return err;
}

static bool on;

static int put_in(void)
{
	below = device->ops.modify_qp;
	if (cmpxchg(&device->ops.modify_qp, below, pass_on) != below)
		return -EBUSY;
	__module_get(THIS_MODULE);
	return 0;
}

static int take_out(void)
{
	if (cmpxchg(&device->ops.modify_qp, pass_on, below) != pass_on)
		return -EBUSY;
	WRITE_ONCE(hold, 0);
	wake_up_var(&hold);
	/* for threads that are about to enter, for those inside, and for those that return */
	synchronize_rcu_tasks();
	wait_var_event(&inside, !atomic_read(&inside));
	synchronize_rcu_tasks();
	module_put(THIS_MODULE);
	return 0;
}

/* The core serializes writes to parameters of a module. */
static int on_set(const char *text, const struct kernel_param *param)
{
	bool wanted;
	int err = kstrtobool(text, &wanted);

	if (err)
		return err;
	if (!device)
		return -ENODEV;
	if (wanted != on)
		err = wanted ? put_in() : take_out();
	if (!err)
		on = wanted;
	return err;
}

static const struct kernel_param_ops on_ops = { .set = on_set, .get = param_get_bool };
module_param_cb(on, &on_ops, &on, 0644);
MODULE_PARM_DESC(on, "the operation is replaced");

static int client_add(struct ib_device *ibdev)
{
	if (strcmp(dev_name(&ibdev->dev), dev))
		return -EOPNOTSUPP;
	device = ibdev;
	return 0;
}

static void client_remove(struct ib_device *ibdev, void *data)
{
	WARN_ON(on);
	device = NULL;
}

static struct ib_client client = {
	.name = "interposer",
	.add = client_add,
	.remove = client_remove,
};

static int __init interposer_init(void)
{
	return ib_register_client(&client);
}

static void __exit interposer_exit(void)
{
	ib_unregister_client(&client);
}

module_init(interposer_init);
module_exit(interposer_exit);
MODULE_DESCRIPTION("Replaces an operation of an RDMA device, for tests of rdma_shift");
MODULE_LICENSE("GPL");
