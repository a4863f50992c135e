/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB */
/*
 * The provider ABI of rdma_shift: what a patched rdma-core provider and the
 * kernel module say to each other over /dev/shift.
 *
 * Order of calls: QUERY, REGISTER_CQ for every CQ, REGISTER_QP for every RC QP
 * whose CQs are registered, UNREGISTER before the destroy verb.  Any error
 * leaves the object as it is without the module: the provider goes on as stock.
 *
 * Objects are named by (uverbs command fd, uverbs handle) once, at
 * registration, and by a small id local to the /dev/shift file afterwards.
 * A file belongs to the mm that opened it; a forked child gets -EPERM.
 *
 * Every address below is in the caller's memory.  The kernel pins what it
 * needs and treats its contents as untrusted.
 */
#ifndef SHIFT_ABI_H
#define SHIFT_ABI_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define SHIFT_ABI_VERSION	2
#define SHIFT_ABI_DEVICE	"/dev/shift"

enum shift_abi_provider {
	SHIFT_PROVIDER_RXE	= 1,
};

enum shift_abi_type {
	SHIFT_ABI_CQ	= 1,
	SHIFT_ABI_QP	= 2,
};

/*
 * Bits of a QP's flag word, to be looked at under the queue's lock before a post.
 * GATE: do not touch the rings, WAIT. KICK: the QP is away from its device; post
 * as ever, and after receives call KICK.
 */
#define SHIFT_QP_FLAG_GATE	(1u << 0)
#define SHIFT_QP_FLAG_KICK	(1u << 1)

/* Bits of a CQ's flag word: completions wait in the side ring. */
#define SHIFT_CQ_FLAG_SIDE	(1u << 0)

/**
 * struct shift_abi_query - SHIFT_IOC_QUERY
 * @abi_version: in: the caller's SHIFT_ABI_VERSION; out: the kernel's.
 * @reserved: must be zero.
 *
 * -EPROTONOSUPPORT if the two differ.
 */
struct shift_abi_query {
	__u32 abi_version;
	__u32 reserved;
};

/**
 * struct shift_abi_ring - one mmapped work or completion ring
 * @addr: first byte (struct rxe_queue_buf for rxe), page aligned; 0: none.
 * @len: bytes, as given by the driver's mminfo.
 * @reserved: must be zero.
 */
struct shift_abi_ring {
	__aligned_u64 addr;
	__u32 len;
	__u32 reserved;
};

/**
 * struct shift_abi_reg_cq - SHIFT_IOC_REGISTER_CQ
 * @abi_version: SHIFT_ABI_VERSION.
 * @provider: enum shift_abi_provider.
 * @cmd_fd: uverbs command fd of the context.
 * @handle: uverbs handle of the CQ.
 * @ring: the completion ring.
 * @flag_addr: 4-byte aligned word that the kernel sets and clears
 *	(SHIFT_CQ_FLAG_*); must stay valid until UNREGISTER or close.
 * @id: out: id for UNREGISTER and CQE.
 * @side_len: out: bytes to mmap (PROT_READ | PROT_WRITE, MAP_SHARED).
 * @side_offset: out: offset for mmap on the /dev/shift fd.
 */
struct shift_abi_reg_cq {
	__u32 abi_version;
	__u32 provider;
	__s32 cmd_fd;
	__u32 handle;
	struct shift_abi_ring ring;
	__aligned_u64 flag_addr;
	__u32 id;
	__u32 side_len;
	__aligned_u64 side_offset;
};

/**
 * struct shift_abi_reg_qp - SHIFT_IOC_REGISTER_QP
 * @abi_version: SHIFT_ABI_VERSION.
 * @provider: enum shift_abi_provider.
 * @cmd_fd: uverbs command fd of the context.
 * @handle: uverbs handle of the QP.
 * @sq: send ring.
 * @rq: receive ring, or zeros (SRQ).
 * @sq_lock_addr: the word that is not @lock_free while a thread is between
 *	its look at the flag word and the end of its post; 4-byte aligned.
 * @rq_lock_addr: the same for receives; 0 without @rq.
 * @flag_addr: 4-byte aligned word that the kernel sets and clears
 *	(SHIFT_QP_FLAG_*); must stay valid until UNREGISTER or close.
 * @lock_free: value of both lock words when free.
 * @id: out: id for UNREGISTER and WAIT.
 */
struct shift_abi_reg_qp {
	__u32 abi_version;
	__u32 provider;
	__s32 cmd_fd;
	__u32 handle;
	struct shift_abi_ring sq;
	struct shift_abi_ring rq;
	__aligned_u64 sq_lock_addr;
	__aligned_u64 rq_lock_addr;
	__aligned_u64 flag_addr;
	__u32 lock_free;
	__u32 id;
};

/**
 * struct shift_abi_id - SHIFT_IOC_UNREGISTER, SHIFT_IOC_WAIT, SHIFT_IOC_KICK
 * @type: enum shift_abi_type (WAIT, KICK: SHIFT_ABI_QP only).
 * @id: what REGISTER returned.
 *
 * WAIT sleeps until the QP's gate is open, at most one second; call it without
 * the queue lock.  It returns 0, or -EINTR, -ETIMEDOUT: the caller proceeds
 * with its post in every case.  KICK does not sleep on the network: the kernel
 * takes in what was posted.
 */
struct shift_abi_id {
	__u32 type;
	__u32 id;
};

enum shift_abi_verdict {
	SHIFT_CQE_DELIVER	= 0,
	SHIFT_CQE_SWALLOW	= 1,
};

/**
 * struct shift_abi_cqe - SHIFT_IOC_CQE: may the application see this error?
 * @cq_id: id of the CQ it was found in.
 * @qp_num: QP number in the completion.
 * @status: its status (enum ib_wc_status), not zero.
 * @verdict: out: enum shift_abi_verdict.
 *
 * Does not sleep: may be called under the CQ's lock.
 */
struct shift_abi_cqe {
	__u32 cq_id;
	__u32 qp_num;
	__u32 status;
	__u32 verdict;
};

#define SHIFT_IOC_QUERY		_IOWR(0xf5, 0x00, struct shift_abi_query)
#define SHIFT_IOC_REGISTER_CQ	_IOWR(0xf5, 0x01, struct shift_abi_reg_cq)
#define SHIFT_IOC_REGISTER_QP	_IOWR(0xf5, 0x02, struct shift_abi_reg_qp)
#define SHIFT_IOC_UNREGISTER	_IOW(0xf5, 0x03, struct shift_abi_id)
#define SHIFT_IOC_WAIT		_IOW(0xf5, 0x04, struct shift_abi_id)
#define SHIFT_IOC_CQE		_IOWR(0xf5, 0x05, struct shift_abi_cqe)
#define SHIFT_IOC_KICK		_IOW(0xf5, 0x06, struct shift_abi_id)

/**
 * struct shift_abi_wc - one completion in a side ring
 *
 * The first 48 bytes are laid out as struct ib_uverbs_wc and struct ibv_wc.
 */
struct shift_abi_wc {
	__aligned_u64 wr_id;
	__u32 status;
	__u32 opcode;
	__u32 vendor_err;
	__u32 byte_len;
	__u32 ex;
	__u32 qp_num;
	__u32 src_qp;
	__u32 wc_flags;
	__u16 pkey_index;
	__u16 slid;
	__u8 sl;
	__u8 dlid_path_bits;
	__u8 port_num;
	__u8 reserved;
	__aligned_u64 reserved2[2];
};

/**
 * struct shift_abi_side - head of a side ring; the entries follow at @wc
 * @producer: free-running, written by the kernel; release, so load-acquire it.
 * @entries: number of entries, a power of two.
 * @consumer: free-running, written by the provider with release.
 *
 * Empty: producer == consumer.  Entry i is wc[i & (entries - 1)].
 */
struct shift_abi_side {
	__u32 producer;
	__u32 entries;
	__u32 pad_1[14];
	__u32 consumer;
	__u32 pad_2[15];
	struct shift_abi_wc wc[];
};

#endif /* SHIFT_ABI_H */
