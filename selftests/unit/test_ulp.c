// SPDX-License-Identifier: GPL-2.0
/* Names of users of RDMA in the kernel: kmod/pure/ulp.c */
#include "ktap.h"
#include "pure/ulp.h"

static void modules(struct ktap *t)
{
	EXPECT_EQ(t, shift_ulp_of_module("nvme_rdma"), SHIFT_ULP_NVME);
	EXPECT_EQ(t, shift_ulp_of_module("nvmet_rdma"), SHIFT_ULP_NVME);
	EXPECT_EQ(t, shift_ulp_of_module("rpcrdma"), SHIFT_ULP_NFS);
	EXPECT_EQ(t, shift_ulp_of_module("rds_rdma"), SHIFT_ULP_RDS);
	EXPECT_EQ(t, shift_ulp_of_module("ib_isert"), SHIFT_ULP_ISER);
	EXPECT_EQ(t, shift_ulp_of_module("ib_srpt"), SHIFT_ULP_SRP);
	/* the core's own, those that move by themselves, and this module */
	EXPECT_EQ(t, shift_ulp_of_module("rdma_cm"), SHIFT_ULP_NONE);
	EXPECT_EQ(t, shift_ulp_of_module("smc"), SHIFT_ULP_NONE);
	EXPECT_EQ(t, shift_ulp_of_module("rtrs_client"), SHIFT_ULP_NONE);
	EXPECT_EQ(t, shift_ulp_of_module("rdma_shift"), SHIFT_ULP_NONE);
	EXPECT_EQ(t, shift_ulp_of_module("nvme"), SHIFT_ULP_NONE);
	EXPECT_EQ(t, shift_ulp_of_module(""), SHIFT_ULP_NONE);
	EXPECT_EQ(t, shift_ulp_of_module(NULL), SHIFT_ULP_NONE);
}

static void lists(struct ktap *t)
{
	static const struct {
		const char *list;
		int err;
		u32 set;
	} tries[] = {
		{ "", 0, 0 },
		{ "\n", 0, 0 },
		{ "nvme", 0, 1u << SHIFT_ULP_NVME },
		{ "nvme\n", 0, 1u << SHIFT_ULP_NVME },
		{ "srp,nfs,srp", 0, 1u << SHIFT_ULP_SRP | 1u << SHIFT_ULP_NFS },
		{ "nvme,nfs,rds,iser,srp\n", 0, (1u << __SHIFT_ULP_MAX) - 2 },
		{ "none", 0, 0 },
		{ "none\n", 0, 0 },
		{ "none,nvme", -EINVAL, 0 },
		{ "nvme,none", -EINVAL, 0 },
		{ "non", -EINVAL, 0 },
		{ "smc", -EINVAL, 0 },
		{ "nvm", -EINVAL, 0 },
		{ "nvmes", -EINVAL, 0 },
		{ "nvme nfs", -EINVAL, 0 },
		{ "nvme,", -EINVAL, 0 },
		{ "nvme,\n", -EINVAL, 0 },
		{ ",nvme", -EINVAL, 0 },
		{ ",", -EINVAL, 0 },
		{ "nvme,,nfs", -EINVAL, 0 },
	};
	u32 i, set;

	for (i = 0; i < ARRAY_SIZE(tries); i++) {
		set = 0x80000000;
		EXPECT_EQ(t, shift_ulp_parse(tries[i].list, &set), tries[i].err);
		/* what was set before stays after an error */
		EXPECT_EQ(t, set, tries[i].err ? 0x80000000 : tries[i].set);
	}
}

/* Each name that is shown can be written. */
static void names(struct ktap *t)
{
	u32 set;
	int i;

	for (i = SHIFT_ULP_NONE + 1; i < __SHIFT_ULP_MAX; i++) {
		EXPECT_EQ(t, shift_ulp_parse(shift_ulp_name(i), &set), 0);
		EXPECT_EQ(t, set, 1u << i);
	}
}

static const struct ktap_case cases[] = {
	KTAP_CASE(modules),
	KTAP_CASE(lists),
	KTAP_CASE(names),
};
KTAP_SUITE(ulp, cases);
