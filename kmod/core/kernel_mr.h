/* SPDX-License-Identifier: GPL-2.0 */
/*
 * MRs of users in the kernel, which are registered and invalidated by work requests:
 * Documentation/internals/kernel-users.md.
 */
#ifndef SHIFT_CORE_KERNEL_MR_H
#define SHIFT_CORE_KERNEL_MR_H

#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include "pure/wr.h"

struct ib_mr;
struct shift_mr;
struct shift_pd;
struct shift_qp;
struct shift_sge;

/**
 * struct shift_kernel_mr_on - what a device may have of an MR
 * @valid: it may be registered there: as long as nobody knows that it was invalidated.
 * @sure: it is.
 * @key: with this key, by the numbers that the user knows.
 * @also: or with the key @older: neither the end of that registration nor this one was seen.
 * @older: the key of the registration before.
 */
struct shift_kernel_mr_on {
	bool valid, sure, also;
	u32 key, older;
};

/* Lists of so many pieces are kept; longer ones are mapped for the mirror at once. */
#define SHIFT_KERNEL_SG_KEPT	4

/**
 * struct shift_kernel_map - what an MR was mapped to, and its mirror not yet
 * @sg: the pieces: only their DMA addresses and lengths.
 * @nents: how many; 0: nothing is left to be mapped.
 * @offset: as the op map_mr_sg has it.
 * @page_size: of the MR.
 * @mapped: what the op has returned for the MR.
 */
struct shift_kernel_map {
	struct scatterlist sg[SHIFT_KERNEL_SG_KEPT];
	unsigned int nents, offset, page_size;
	int mapped;
};

/**
 * struct shift_kernel_mr - what only the shadow of a kernel user's MR has
 * @node: in the table of kernel_mr.c, by @index, until dereg.
 * @smr: the shadow.
 * @index: of its keys.
 * @lock: protects the rest.  Innermost, any context.
 * @owner: the QP that has registered it last; only compared.
 * @live: it is registered, by what was executed.
 * @key: the key of the last registration.
 * @access: of that registration.
 * @gone: if @any_gone, a key that the peer has invalidated before its registration has left the
 *	record.
 * @map: the last mapping, if it is for the mirror to follow.
 * @mapping: somebody gives the mirror its pages; @clash: and somebody else wanted to, meanwhile.
 * @unmapped: the mirror could not be mapped as the MR was.
 * @on: by device: the default device, the backup.
 *
 * An MR is used by one QP at a time, whose sends and receives may complete into two CQs: then two
 * CPUs may poll that it was registered, and that the peer has invalidated it.
 */
struct shift_kernel_mr {
	struct hlist_node node;
	struct shift_mr *smr;
	u32 index;
	spinlock_t lock;
	const struct shift_qp *owner;
	bool live, any_gone, mapping, clash, unmapped;
	u32 key, gone;
	int access;
	struct shift_kernel_mr_on on[2];
	struct shift_kernel_map map;
};

/**
 * struct shift_kernel_mr_op - an operation on an MR, which no packet is sent for
 * @opcode: SHIFT_WR_REG_MR or SHIFT_WR_LOCAL_INV; others are of no interest.
 * @key: the key, as the user knows it.
 * @access: rights of a registration.
 */
struct shift_kernel_mr_op {
	u32 opcode;
	u32 key;
	int access;
};

/* The device of a path, in @on. */
static inline unsigned int shift_path_device(u8 path)
{
	return path == 1;	/* SHIFT_PATH_BACKUP */
}

struct shift_kernel_mr *shift_kernel_mr_new(struct shift_mr *smr, u32 lkey);
void shift_kernel_mr_add(struct shift_kernel_mr *kernel);
void shift_kernel_mr_del(struct shift_kernel_mr *kernel);
struct shift_mr *shift_kernel_mr_shadow(const struct ib_mr *mr);	/* RCU */
void shift_kernel_mr_mapped(struct shift_mr *smr, struct scatterlist *sg, int nents,
			    unsigned int offset, int mapped);
void shift_kernel_mr_posted(struct shift_qp *sqp, struct shift_kernel_mr_op op, u8 path);
void shift_kernel_mr_executed(struct shift_qp *sqp, struct shift_kernel_mr_op op, u8 path);
void shift_kernel_mr_invalidated(struct shift_qp *sqp, u32 key, u8 path);
u32 shift_kernel_mr_shown(const struct shift_qp *sqp, u32 wire, u8 path);
struct ib_mr *shift_kernel_mr_of(const struct shift_mr *smr, u8 path);
struct ib_mr *shift_kernel_mr_find(const struct shift_qp *sqp, u32 key, u8 path, bool pages,
				   u32 *wire);
bool shift_kernel_mr_is_there(const struct shift_qp *sqp, u32 key, const struct ib_mr *mr);
int shift_kernel_lkey(const struct shift_pd *spd, u32 lkey, u8 path, u32 *key);
bool shift_kernel_rkey(const struct shift_pd *spd, const struct shift_mr *smr, u32 rkey, u32 *key);

/* Is a request an operation on an MR? */
static inline bool shift_kernel_mr_local(u32 opcode)
{
	return opcode == SHIFT_WR_REG_MR || opcode == SHIFT_WR_LOCAL_INV;
}

/* The key of the same MR with another index. */
static inline u32 shift_kernel_key(u32 index_of, u32 byte_of)
{
	return (index_of & ~0xffu) | (byte_of & 0xff);
}

#endif /* SHIFT_CORE_KERNEL_MR_H */
