// SPDX-License-Identifier: GPL-2.0
#include "probe.h"
#include <rdma/ib_umem.h>

struct ib_umem *probe(struct ib_device *ibdev);
struct ib_umem *probe(struct ib_device *ibdev)
{
#ifndef SHIFT_MUST_FAIL
	return ib_umem_get_va(ibdev, 0, PAGE_SIZE, 0);
#else
	return ib_umem_get_va(ibdev, 0, PAGE_SIZE);
#endif
}
