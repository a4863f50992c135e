/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB */
/*
 * The provider ABI of rdma_shift: what a patched rdma-core provider and the
 * kernel module say to each other over /dev/shift.
 *
 * Order of calls: QUERY, REGISTER_CQ for every CQ, REGISTER_SRQ for every SRQ,
 * REGISTER_QP for every RC QP whose CQs are registered, UNREGISTER before the
 * destroy verb (of an SRQ: after it).  If a call fails, the provider uses the object
 * as an unpatched provider would.
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

/*
 * The newest version.  A module knows the versions from an oldest one to this, and so does a
 * provider; they use the newest that both know.  A structure may grow at its end without a new
 * version: what its caller does not have is 0 for the kernel, and -E2BIG tells a caller that what
 * it has set there is not known to the kernel.
 */
#define SHIFT_ABI_VERSION	7
#define SHIFT_ABI_DEVICE	"/dev/shift"

enum shift_abi_provider {
	SHIFT_PROVIDER_RXE	= 1,
	SHIFT_PROVIDER_MLX5	= 2,
};

enum shift_abi_type {
	SHIFT_ABI_CQ	= 1,
	SHIFT_ABI_QP	= 2,
	SHIFT_ABI_SRQ	= 3,
	SHIFT_ABI_RECV	= 4,	/* KICK only: the receives of a QP whose sends KICK, too */
};

/*
 * Bits of a QP's flag word, to be looked at under the queue's lock before a post.
 * GATE: do not touch the rings, WAIT. KICK: a proxy QP carries the traffic; post
 * as usual, and after receives call KICK.
 *
 * mlx5 has no GATE. It looks after it has written the doorbell record, of sends and
 * of receives. KICK: do not ring the doorbell, call KICK. The kernel sets the flag, runs
 * a barrier on each CPU, and then reads the record: either it sees the post
 * there, or the poster sees the flag.
 */
#define SHIFT_QP_FLAG_GATE	(1u << 0)
#define SHIFT_QP_FLAG_KICK	(1u << 1)

/*
 * Bits of an SRQ's flag word, to be looked at before and after each post, under the
 * SRQ's lock. AWAY: fill in the table as usual, leave the ring alone, in which the
 * kernel posts from now on, and KICK. Who finds AWAY after the post only, and has
 * posted in the ring, empties that first.
 *
 * mlx5: once the flag is set it stays, and the provider posts in the ring no more. Who finds
 * it after the post only leaves the ring as it is, and calls KICK. What the device has by then
 * it keeps, until EMPTY.
 */
#define SHIFT_SRQ_FLAG_AWAY	(1u << 0)

/* Bits of a CQ's flag word: completions wait in the side ring. */
#define SHIFT_CQ_FLAG_SIDE	(1u << 0)

/**
 * struct shift_abi_query - SHIFT_IOC_QUERY
 * @abi_version: in: the newest version that the caller knows; out: the version to be used.
 * @reserved: must be zero.
 *
 * -EPROTONOSUPPORT if the kernel does not know that version.  @abi_version is the newest that the
 * kernel knows then, and a caller that knows it, too, uses it.
 */
struct shift_abi_query {
	__u32 abi_version;
	__u32 reserved;
};

/**
 * struct shift_abi_ring - one mmapped work or completion ring
 * @addr: first byte; 0: none. rxe: struct rxe_queue_buf, page aligned; mlx5: the
 *	first block, slot or entry, 64-byte aligned.
 * @len: bytes. rxe: as given by the driver's mminfo; mlx5: blocks * 64, slots *
 *	@rq_slot or entries * @stride.
 * @reserved: must be zero.
 */
struct shift_abi_ring {
	__aligned_u64 addr;
	__u32 len;
	__u32 reserved;
};

/**
 * struct shift_abi_reg_cq - SHIFT_IOC_REGISTER_CQ
 * @abi_version: that of SHIFT_IOC_QUERY.
 * @provider: enum shift_abi_provider.
 * @cmd_fd: uverbs command fd of the context.
 * @handle: uverbs handle of the CQ.
 * @ring: the completion ring.
 * @flag_addr: 4-byte aligned word that the kernel sets and clears
 *	(SHIFT_CQ_FLAG_*); must stay valid until UNREGISTER or close.
 * @id: out: id for UNREGISTER and CQE.
 * @side_len: out: bytes to mmap (PROT_READ | PROT_WRITE, MAP_SHARED).
 * @side_offset: out: offset for mmap on the /dev/shift fd.
 * @stride: mlx5: bytes of an entry, 64 or 128; rxe: 0.
 * @reserved: must be zero.
 * @db_addr: mlx5: the CQ's doorbell record (consumer index, arm word), 8-byte
 *	aligned; rxe: 0.
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
	__u32 stride;
	__u32 reserved;
	__aligned_u64 db_addr;
};

/* What a decoder has to know of a QP's creation: @create_flags */
#define SHIFT_QP_CREATE_SIGNATURE	(1u << 0)	/* WQEs and CQEs are signed */
#define SHIFT_QP_CREATE_SCATTER_CQE	(1u << 1)	/* received data may be in the CQE */
/*
 * The kernel cannot read its rings, as the application itself writes to them, or as the format is
 * not supported.  REGISTER_QP fails, and operators see the reason.
 */
#define SHIFT_QP_CREATE_FOREIGN		(1u << 2)
/* the provider can REBASE, in any thread, as its queues have real locks */
#define SHIFT_QP_CREATE_REBASE		(1u << 3)
#define SHIFT_QP_CREATE_FLAGS_ALL	((1u << 4) - 1)

/**
 * struct shift_abi_reg_qp - SHIFT_IOC_REGISTER_QP
 * @abi_version: that of SHIFT_IOC_QUERY.
 * @provider: enum shift_abi_provider.
 * @cmd_fd: uverbs command fd of the context.
 * @handle: uverbs handle of the QP.
 * @sq: send ring.
 * @rq: receive ring, or zeros (SRQ).
 * @sq_lock_addr: the word that is not @lock_free while a thread is between
 *	its look at the flag word and the end of its post; 4-byte aligned. mlx5: 0.
 * @rq_lock_addr: the same for receives; 0 without @rq. mlx5: 0.
 * @flag_addr: 4-byte aligned word that the kernel sets and clears
 *	(SHIFT_QP_FLAG_*); must stay valid until UNREGISTER or close.
 * @lock_free: value of both lock words when free. mlx5: 0.
 * @id: out: id for UNREGISTER, WAIT and KICK.
 * @db_addr: mlx5: the QP's doorbell record ([0] receive, [1] send counter, big
 *	endian), 8-byte aligned; rxe: 0.
 * @rq_slot: mlx5: bytes of a slot of @rq, 0 without it; rxe: 0.
 * @create_flags: mlx5: SHIFT_QP_CREATE_*; rxe: 0.
 * @anchor_addr: mlx5: a 64-bit word, 8-byte aligned, that the provider stores at each
 *	post behind the WQEs and before the doorbell record: packets << 16 | low
 *	16 bits of the send counter. Packets: request PSNs of all WQEs since the
 *	indices were 0 (SEND, WRITE, READ: their bytes in path MTUs, one at
 *	least; atomics: one; NOP, bind, invalidate: none), 48 bits. rxe: 0.
 * @sq_tail_addr: mlx5: a 4-byte aligned word: how many sends there are up to the newest
 *	whose completion was shown to the application, since the indices were 0;
 *	stored before the poll returns. rxe: 0.
 * @sq_heads_addr: mlx5: 4-byte aligned words, one for each block of @sq: for the first
 *	block of a WQE how many sends were posted before it, else anything. rxe: 0.
 * @rq_tail_addr: mlx5: as @sq_tail_addr, of receives; 0 without @rq. rxe: 0.
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
	__aligned_u64 db_addr;
	__u32 rq_slot;
	__u32 create_flags;
	__aligned_u64 anchor_addr;
	__aligned_u64 sq_tail_addr;
	__aligned_u64 sq_heads_addr;
	__aligned_u64 rq_tail_addr;
};

/**
 * struct shift_abi_reg_srq - SHIFT_IOC_REGISTER_SRQ
 * @abi_version: that of SHIFT_IOC_QUERY.
 * @provider: enum shift_abi_provider.
 * @cmd_fd: uverbs command fd of the context.
 * @handle: uverbs handle of the SRQ.
 * @ring: its ring.
 * @flag_addr: 4-byte aligned word that the kernel sets (SHIFT_SRQ_FLAG_*); must
 *	stay valid until UNREGISTER or close.
 * @id: out: id for UNREGISTER and KICK.
 * @key: out: high half of the wr_ids in the ring, never 0.
 * @table_len: out: bytes to mmap, as the side ring of a CQ.
 * @entries: out: entries in the table, a power of two not above 65536.
 * @table_offset: out: offset for mmap.
 * @entry_size: out: bytes of an entry, a multiple of 8.
 * @entry_offset: out: first entry, from the start of the table.
 * @db_addr: mlx5: its doorbell record, 4-byte aligned; rxe: 0.
 * @slot: mlx5: bytes of a WQE; rxe: 0.
 * @wqe_offset: out: mlx5: ids by WQE, from the start of the table; rxe: 0.
 *
 * See struct shift_abi_srq_table.
 */
struct shift_abi_reg_srq {
	__u32 abi_version;
	__u32 provider;
	__s32 cmd_fd;
	__u32 handle;
	struct shift_abi_ring ring;
	__aligned_u64 flag_addr;
	__u32 id;
	__u32 key;
	__u32 table_len;
	__u32 entries;
	__aligned_u64 table_offset;
	__u32 entry_size;
	__u32 entry_offset;
	__aligned_u64 db_addr;
	__u32 slot;
	__u32 wqe_offset;
};

/**
 * struct shift_abi_id - SHIFT_IOC_UNREGISTER, SHIFT_IOC_WAIT, SHIFT_IOC_KICK
 * @type: enum shift_abi_type (WAIT: SHIFT_ABI_QP only; KICK: not SHIFT_ABI_CQ; the others:
 *	not SHIFT_ABI_RECV).
 * @id: what REGISTER returned.
 *
 * WAIT sleeps until the QP's gate is open, at most one second; call it without
 * the queue lock.  It returns 0, or -EINTR, -ETIMEDOUT: the caller takes the
 * lock, looks at GATE, and calls WAIT again if it is set: the gate may have shut
 * again, for a fence that would lose the post.  KICK does not sleep on the network: the kernel
 * takes in what was posted.
 *
 * KICK of sends, if the provider can REBASE: may sleep, at most one second, while the QP is
 * being handed back.  -EAGAIN: REBASE if possible, and call KICK again;
 * -ENOTCONN: the QP was handed back, or was about to be: ring the doorbell.
 */
struct shift_abi_id {
	__u32 type;
	__u32 id;
};

enum shift_abi_cqe_answer {
	SHIFT_CQE_DELIVER	= 0,
	SHIFT_CQE_SWALLOW	= 1,
};

/**
 * struct shift_abi_cqe - SHIFT_IOC_CQE: may the application see this error?
 * @cq_id: id of the CQ it was found in.
 * @qp_num: QP number in the completion.
 * @status: its status (enum ib_wc_status), not zero.
 * @answer: out: enum shift_abi_cqe_answer.
 *
 * Does not sleep: may be called under the CQ's lock.
 */
struct shift_abi_cqe {
	__u32 cq_id;
	__u32 qp_num;
	__u32 status;
	__u32 answer;
};

enum shift_abi_step {
	SHIFT_REBASE_BEGIN	= 0,
	SHIFT_REBASE_DONE	= 1,
	SHIFT_REBASE_LATER	= 2,	/* a lock is taken: ask again */
};

/**
 * struct shift_abi_rebase - SHIFT_IOC_REBASE: a QP is handed back, with indices from 0
 * @id: of the QP.
 * @step: enum shift_abi_step.
 * @sq_base: out of BEGIN: index of the first send that the kernel has not taken in: it gets
 *	index 0, and those behind it follow; those before it are at the end of the ring then.
 * @rq_base: out of BEGIN: the same of the first receive without a completion.
 * @packets: out of BEGIN: packets << 16 in the anchor up to @sq_base.
 * @sq_number: into DONE: sends that were posted before @sq_base, as @sq_heads_addr counts.
 * @reserved: must be zero.
 *
 * BEGIN after an entry of a side ring that has SHIFT_WC_REBASE, or after a KICK that says
 * -EAGAIN; with all locks of the QP's queues and CQs held.  -EAGAIN: nothing is to be done.
 * Else the provider moves what is in its rings, and the indices in completions
 * that were not shown, and says DONE before it lets go of any lock.  Does not sleep.
 */
struct shift_abi_rebase {
	__u32 id;
	__u32 step;
	__u32 sq_base;
	__u32 rq_base;
	__aligned_u64 packets;
	__u32 sq_number;
	__u32 reserved;
};

/**
 * struct shift_abi_empty - SHIFT_IOC_EMPTY: a QP in INIT empties the ring of its SRQ, mlx5 only
 * @id: of the QP.
 * @handed: 1: the provider has seen SHIFT_SRQ_FLAG_AWAY under the SRQ's lock, so that it posts in
 *	the ring no more: the kernel does.
 * @head: if @handed: the WQE that would be posted next.
 * @counter: if @handed: what the doorbell record says.
 *
 * After a modify to RTR that says -EBUSY. 0: the modify is to be tried again. -EAGAIN: the same
 * call is. Until the provider has dropped all completions of the QP, after each call, it shows
 * none. Sleeps, for seconds at most (scaled), with no lock of the provider's held.
 */
struct shift_abi_empty {
	__u32 id;
	__u32 handed;
	__u32 head;
	__u32 counter;
};

#define SHIFT_IOC_QUERY		_IOWR(0xf5, 0x00, struct shift_abi_query)
#define SHIFT_IOC_REGISTER_CQ	_IOWR(0xf5, 0x01, struct shift_abi_reg_cq)
#define SHIFT_IOC_REGISTER_QP	_IOWR(0xf5, 0x02, struct shift_abi_reg_qp)
#define SHIFT_IOC_UNREGISTER	_IOW(0xf5, 0x03, struct shift_abi_id)
#define SHIFT_IOC_WAIT		_IOW(0xf5, 0x04, struct shift_abi_id)
#define SHIFT_IOC_CQE		_IOWR(0xf5, 0x05, struct shift_abi_cqe)
#define SHIFT_IOC_KICK		_IOW(0xf5, 0x06, struct shift_abi_id)
#define SHIFT_IOC_REGISTER_SRQ	_IOWR(0xf5, 0x07, struct shift_abi_reg_srq)
#define SHIFT_IOC_REBASE	_IOWR(0xf5, 0x08, struct shift_abi_rebase)
#define SHIFT_IOC_EMPTY		_IOW(0xf5, 0x09, struct shift_abi_empty)

/* Bit in a completion's opcode: it is of a receive; valid in error completions, too. */
#define SHIFT_WC_RECV		(1u << 7)
/* Opcode in a side ring: the entry is no completion, but asks the provider to REBASE. */
#define SHIFT_WC_REBASE		(1u << 8)

/**
 * struct shift_abi_wc - one completion in a side ring
 *
 * The first 48 bytes are laid out as struct ib_uverbs_wc and struct ibv_wc.
 *
 * The wr_ids of mlx5 are not in its rings: @wr_id is the index of the send's first
 * block, or the running index of the receive, both modulo 2^16 as in the device's
 * own completions, and the provider finds the application's wr_id by it.
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

/*
 * The table of an SRQ: the receives whose completions the application was not
 * shown. Its ring cannot tell: rxe takes a WQE out when the first packet of a
 * message comes, and completes it with the last.
 *
 * A receive has a receive id ("id"): index of its entry, and a generation that is never 0
 * and is another one each time the entry is used. The wr_id in the ring, and
 * in completions of either ring, is the SRQ's key << 32 | id.
 *
 * Post: fill in an entry, its id last (release); order[posted % entries] = id;
 * posted + 1 (release). Poll: entry's id = 0 (release) before the consumer index
 * of the CQ moves, not if the completion is swallowed.
 *
 * mlx5: a WQE has no wr_id, and completions of the device's name it by its index. The table
 * has at least twice as many entries as the ring has WQEs, and what is posted in the ring
 * has the entry of the WQE's index. Poll: after the entry's id, and before the WQE can be
 * used again, wqe_counter of the CQE = 0xffff. Completions in the side ring are as above.
 * Once the kernel posts in the ring a WQE may have the receive of any entry: that of the id
 * at @wqe_offset, unless it is 0.
 */
#define SHIFT_RECV_ID_INDEX		0xffffu
#define SHIFT_RECV_ID_GENERATION	16	/* shift */

struct shift_abi_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/**
 * struct shift_abi_srq_entry - one receive
 * @wr_id: the application's; only the provider uses it.
 * @seq: its number in posting order.
 * @recv_id: 0: free.
 * @num_sge: entries of @sge.
 * @sge: as posted.
 */
struct shift_abi_srq_entry {
	__aligned_u64 wr_id;
	__aligned_u64 seq;
	__u32 recv_id;
	__u32 num_sge;
	struct shift_abi_sge sge[];
};

/**
 * struct shift_abi_srq_table - head of the table
 * @posted: receives posted so far: the number that the next one gets.
 * @order: ids by number.
 */
struct shift_abi_srq_table {
	__aligned_u64 posted;
	__u32 pad[14];
	__u32 order[];
};

#endif /* SHIFT_ABI_H */
