// SPDX-License-Identifier: GPL-2.0
#include <linux/types.h>
#include <rdma/rdma_user_rxe.h>

void probe(struct rxe_send_wr *wr);
void probe(struct rxe_send_wr *wr)
{
#ifndef SHIFT_MUST_FAIL
	wr->wr.flush.length = 0;
#else
	wr->wr.flush.none = 0;
#endif
}
