/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A make-believe /dev/shift: what the provider asked it, and what it answers. */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <stdint.h>
#include <rdma/shift-abi.h>

#define SIDE_ENTRIES	8
#define SIDE_LEN	4096
#define SIDE_OFFSET	0x10000
#define CQ_ID		77
#define QP_ID		78
#define SRQ_ID		79
#define SRQ_ENTRIES	4
#define SRQ_OFFSET	0x20000
#define SRQ_KEY		0xabcdef01u
#define SRQ_ENTRY_SIZE	(sizeof(struct shift_abi_srq_entry) + 4 * sizeof(struct shift_abi_sge))

struct fake_kernel {
	int		fd;		/* of /dev/shift; 0: not open */
	int		absent;
	uint32_t	oldest, version;	/* that it knows */
	int		opens, queries, waits, kicks, cqes;
	int		cq_regs, cq_unregs, qp_regs, qp_unregs;
	unsigned int	refused;	/* flags of the last QP that was */
	int		reg_cq_error, kick_result;
	int		wait_error, wait_errors;	/* so many WAITs end with it */
	int		srq_regs, srq_unregs, srq_kicks;
	uint32_t	srq_entries;	/* of the next table; 0: SRQ_ENTRIES */
	int		rebase_wanted;
	int		rebases[3];	/* by step */
	struct shift_abi_rebase rebase;
	uint32_t	answer;
	int		empties;
	struct shift_abi_empty empty;
	int		(*empty_ring)(void);	/* an errno */
	struct shift_abi_reg_cq	cq;
	struct shift_abi_reg_qp	qp;
	struct shift_abi_cqe	cqe;
	struct shift_abi_side	*side;
	struct shift_abi_reg_srq srq;
	struct shift_abi_srq_table *table;
};

extern struct fake_kernel kern;

/* a completion in the side ring, and then the flag that tells of it */
void kern_put(const struct shift_abi_wc *wc);
void kern_complete(uint64_t wr_id, uint32_t len);
void kern_raise(void);
uint32_t cq_flag(void);

#endif /* FAKE_KERNEL_H */
