// SPDX-License-Identifier: GPL-2.0
/* Names of users of RDMA in the kernel. */
#include "pure/ulp.h"

static const char *const ulp_names[] = {
	[SHIFT_ULP_NONE]	= "none",
	[SHIFT_ULP_NVME]	= "nvme",
	[SHIFT_ULP_NFS]		= "nfs",
	[SHIFT_ULP_RDS]		= "rds",
	[SHIFT_ULP_ISER]	= "iser",
	[SHIFT_ULP_SRP]		= "srp",
};

static_assert(ARRAY_SIZE(ulp_names) == __SHIFT_ULP_MAX);

/*
 * SMC-R and rtrs are not here: they have paths of their own and leave one by themselves, at the
 * same time as the module would.
 */
static const struct {
	const char *module;
	enum shift_ulp ulp;
} ulp_modules[] = {
	{ "nvme_rdma", SHIFT_ULP_NVME },
	{ "nvmet_rdma", SHIFT_ULP_NVME },
	{ "rpcrdma", SHIFT_ULP_NFS },
	{ "rds_rdma", SHIFT_ULP_RDS },
	{ "ib_iser", SHIFT_ULP_ISER },
	{ "ib_isert", SHIFT_ULP_ISER },
	{ "ib_srp", SHIFT_ULP_SRP },
	{ "ib_srpt", SHIFT_ULP_SRP },
};

/**
 * shift_ulp_of_module() - whose module is it?
 * @module: as KBUILD_MODNAME has it; NULL: none.
 */
enum shift_ulp shift_ulp_of_module(const char *module)
{
	size_t i;

	for (i = 0; module && i < ARRAY_SIZE(ulp_modules); i++)
		if (!strcmp(module, ulp_modules[i].module))
			return ulp_modules[i].ulp;
	return SHIFT_ULP_NONE;
}

/**
 * shift_ulp_name() - the name for operators
 * @ulp: which.
 *
 * Return: a constant string in lower case.
 */
const char *shift_ulp_name(enum shift_ulp ulp)
{
	return ulp_names[ulp];
}

static enum shift_ulp ulp_by_name(const char *name, size_t length)
{
	int i;

	for (i = SHIFT_ULP_NONE + 1; i < __SHIFT_ULP_MAX; i++)
		if (strlen(ulp_names[i]) == length && !memcmp(ulp_names[i], name, length))
			return i;
	return SHIFT_ULP_NONE;
}

/**
 * shift_ulp_parse() - a list of names, with commas between them
 * @list: the list; a line end behind it does not matter.  Empty, or "none": no name.
 * @set: out, if there is no error: a bit (1 << enum shift_ulp) for each.
 *
 * Return: 0, or -EINVAL: there is a name that is not known.
 */
int shift_ulp_parse(const char *list, u32 *set)
{
	size_t left = strcspn(list, "\n");
	u32 found = 0;

	if (left == strlen(ulp_names[SHIFT_ULP_NONE]) &&
	    !memcmp(list, ulp_names[SHIFT_ULP_NONE], left))
		left = 0;
	while (left) {
		size_t length = strcspn(list, ",\n");
		enum shift_ulp ulp = ulp_by_name(list, length);

		if (ulp == SHIFT_ULP_NONE)
			return -EINVAL;
		found |= 1u << ulp;
		/* a comma has a name behind it */
		if (left == length + 1)
			return -EINVAL;
		if (left > length)
			length++;
		list += length;
		left -= length;
	}
	*set = found;
	return 0;
}
