// SPDX-License-Identifier: GPL-2.0
/*
 * The device's format as kmod/mlx5.h has it, against the kernel's own headers: whether
 * they agree is known when this is compiled.  Kernels whose headers lack mlx5 are left out.
 */
#include "provider/mlx5/format.h"

#if defined(__has_include) && __has_include(<linux/mlx5/qp.h>)
#include <linux/mlx5/cq.h>
#include <linux/mlx5/device.h>
#include <linux/mlx5/qp.h>

/* of one enumeration each, which the compiler would rather not compare */
#define SAME_NUMBER(ours, theirs)	static_assert((u32)(ours) == (u32)(theirs))
#define SAME_SIZE(ours, theirs)	\
	static_assert(sizeof(struct ours) == sizeof(struct theirs))
#define SAME(ours, our, theirs, their)						\
	static_assert(offsetof(struct ours, our) == offsetof(struct theirs, their) &&	\
		      sizeof_field(struct ours, our) == sizeof_field(struct theirs, their))

SAME_SIZE(shift_mlx5_ctrl, mlx5_wqe_ctrl_seg);
SAME(shift_mlx5_ctrl, opmod_index_opcode, mlx5_wqe_ctrl_seg, opmod_idx_opcode);
SAME(shift_mlx5_ctrl, qpn_chunks, mlx5_wqe_ctrl_seg, qpn_ds);
SAME(shift_mlx5_ctrl, signature, mlx5_wqe_ctrl_seg, signature);
SAME(shift_mlx5_ctrl, flags, mlx5_wqe_ctrl_seg, fm_ce_se);
SAME(shift_mlx5_ctrl, imm, mlx5_wqe_ctrl_seg, imm);
SAME_SIZE(shift_mlx5_raddr, mlx5_wqe_raddr_seg);
SAME(shift_mlx5_raddr, addr, mlx5_wqe_raddr_seg, raddr);
SAME(shift_mlx5_raddr, rkey, mlx5_wqe_raddr_seg, rkey);
SAME_SIZE(shift_mlx5_atomic, mlx5_wqe_atomic_seg);
SAME(shift_mlx5_atomic, swap_add, mlx5_wqe_atomic_seg, swap_add);
SAME(shift_mlx5_atomic, compare, mlx5_wqe_atomic_seg, compare);
static_assert(sizeof(struct shift_mlx5_atomic) ==
	      offsetof(struct mlx5_wqe_masked_atomic_seg, swap_add_mask));
static_assert(sizeof(struct shift_mlx5_atomic) + offsetof(struct shift_mlx5_atomic_mask, compare) ==
	      offsetof(struct mlx5_wqe_masked_atomic_seg, compare_mask));
SAME_SIZE(shift_mlx5_data, mlx5_wqe_data_seg);
SAME(shift_mlx5_data, byte_count, mlx5_wqe_data_seg, byte_count);
SAME(shift_mlx5_data, lkey, mlx5_wqe_data_seg, lkey);
SAME(shift_mlx5_data, addr, mlx5_wqe_data_seg, addr);
static_assert(SHIFT_MLX5_INLINE_OFFSET == offsetof(struct mlx5_wqe_inline_seg, data));
SAME_SIZE(shift_mlx5_umr, mlx5_wqe_umr_ctrl_seg);
SAME(shift_mlx5_umr, flags, mlx5_wqe_umr_ctrl_seg, flags);
SAME(shift_mlx5_umr, mask, mlx5_wqe_umr_ctrl_seg, mkey_mask);
SAME(shift_mlx5_umr, offset, mlx5_wqe_umr_ctrl_seg, bsf_octowords);
SAME_SIZE(shift_mlx5_mkey, mlx5_mkey_seg);
SAME(shift_mlx5_mkey, status, mlx5_mkey_seg, status);
SAME(shift_mlx5_mkey, access, mlx5_mkey_seg, flags);
SAME(shift_mlx5_mkey, qpn_key, mlx5_mkey_seg, qpn_mkey7_0);
SAME(shift_mlx5_mkey, start, mlx5_mkey_seg, start_addr);
SAME(shift_mlx5_mkey, len, mlx5_mkey_seg, len);
SAME_SIZE(shift_mlx5_srq_next, mlx5_wqe_srq_next_seg);
SAME(shift_mlx5_srq_next, next, mlx5_wqe_srq_next_seg, next_wqe_index);
SAME(shift_mlx5_srq_next, signature, mlx5_wqe_srq_next_seg, signature);
SAME_SIZE(shift_mlx5_cqe64, mlx5_cqe64);
SAME(shift_mlx5_cqe64, user_index, mlx5_cqe64, srqn);
SAME(shift_mlx5_cqe64, imm, mlx5_cqe64, immediate);
SAME(shift_mlx5_cqe64, byte_count, mlx5_cqe64, byte_cnt);
SAME(shift_mlx5_cqe64, opcode_qpn, mlx5_cqe64, sop_drop_qpn);
SAME(shift_mlx5_cqe64, wqe_index, mlx5_cqe64, wqe_counter);
SAME(shift_mlx5_cqe64, op_own, mlx5_cqe64, op_own);
SAME(shift_mlx5_cqe64, user_index, mlx5_err_cqe, srqn);
SAME(shift_mlx5_cqe64, vendor_syndrome, mlx5_err_cqe, vendor_err_synd);
SAME(shift_mlx5_cqe64, syndrome, mlx5_err_cqe, syndrome);
SAME(shift_mlx5_cqe64, opcode_qpn, mlx5_err_cqe, s_wqe_opcode_qpn);
SAME(shift_mlx5_cqe64, wqe_index, mlx5_err_cqe, wqe_counter);
SAME(shift_mlx5_cqe64, op_own, mlx5_err_cqe, op_own);

SAME_NUMBER(SHIFT_MLX5_BLOCK, MLX5_SEND_WQE_BB);
SAME_NUMBER(SHIFT_MLX5_CHUNK, MLX5_SEND_WQE_DS);
SAME_NUMBER(SHIFT_MLX5_MAX_CHUNKS, MLX5_WQE_CTRL_DS_MASK);
SAME_NUMBER(SHIFT_MLX5_INLINE, MLX5_INLINE_SEG);
SAME_NUMBER(SHIFT_MLX5_OP_NOP, MLX5_OPCODE_NOP);
SAME_NUMBER(SHIFT_MLX5_OP_SEND_INVAL, MLX5_OPCODE_SEND_INVAL);
SAME_NUMBER(SHIFT_MLX5_OP_RDMA_WRITE, MLX5_OPCODE_RDMA_WRITE);
SAME_NUMBER(SHIFT_MLX5_OP_RDMA_WRITE_IMM, MLX5_OPCODE_RDMA_WRITE_IMM);
SAME_NUMBER(SHIFT_MLX5_OP_SEND, MLX5_OPCODE_SEND);
SAME_NUMBER(SHIFT_MLX5_OP_SEND_IMM, MLX5_OPCODE_SEND_IMM);
SAME_NUMBER(SHIFT_MLX5_OP_RDMA_READ, MLX5_OPCODE_RDMA_READ);
SAME_NUMBER(SHIFT_MLX5_OP_ATOMIC_CS, MLX5_OPCODE_ATOMIC_CS);
SAME_NUMBER(SHIFT_MLX5_OP_ATOMIC_FA, MLX5_OPCODE_ATOMIC_FA);
SAME_NUMBER(SHIFT_MLX5_OP_ATOMIC_MASKED_CS, MLX5_OPCODE_ATOMIC_MASKED_CS);
SAME_NUMBER(SHIFT_MLX5_OP_ATOMIC_MASKED_FA, MLX5_OPCODE_ATOMIC_MASKED_FA);
SAME_NUMBER(SHIFT_MLX5_OP_UMR, MLX5_OPCODE_UMR);
SAME_NUMBER(SHIFT_MLX5_SOLICITED, MLX5_WQE_CTRL_SOLICITED);
SAME_NUMBER(SHIFT_MLX5_COMPLETION_ALWAYS, SHIFT_MLX5_COMPLETION(MLX5_WQE_CTRL_CQ_UPDATE));
SAME_NUMBER(SHIFT_MLX5_FENCE_SMALL, SHIFT_MLX5_FENCE(MLX5_FENCE_MODE_INITIATOR_SMALL));
SAME_NUMBER(SHIFT_MLX5_FENCE_READS, SHIFT_MLX5_FENCE(MLX5_FENCE_MODE_FENCE));
SAME_NUMBER(SHIFT_MLX5_FENCE_BOTH, SHIFT_MLX5_FENCE(MLX5_FENCE_MODE_SMALL_AND_FENCE));
SAME_NUMBER(SHIFT_MLX5_UMR_INLINE, MLX5_UMR_INLINE);
SAME_NUMBER(SHIFT_MLX5_UMR_CHECK_FREE, MLX5_UMR_CHECK_NOT_FREE);
SAME_NUMBER(SHIFT_MLX5_UMR_OFFSET, MLX5_UMR_TRANSLATION_OFFSET_EN);
SAME_NUMBER(SHIFT_MLX5_MASK_LEN, MLX5_MKEY_MASK_LEN);
SAME_NUMBER(SHIFT_MLX5_MASK_START, MLX5_MKEY_MASK_START_ADDR);
SAME_NUMBER(SHIFT_MLX5_MASK_KEY, MLX5_MKEY_MASK_KEY);
SAME_NUMBER(SHIFT_MLX5_MASK_QPN, MLX5_MKEY_MASK_QPN);
SAME_NUMBER(SHIFT_MLX5_MASK_LOCAL_WRITE, MLX5_MKEY_MASK_LW);
SAME_NUMBER(SHIFT_MLX5_MASK_REMOTE_READ, MLX5_MKEY_MASK_RR);
SAME_NUMBER(SHIFT_MLX5_MASK_REMOTE_WRITE, MLX5_MKEY_MASK_RW);
SAME_NUMBER(SHIFT_MLX5_MASK_ATOMIC, MLX5_MKEY_MASK_A);
SAME_NUMBER(SHIFT_MLX5_MASK_FREE, MLX5_MKEY_MASK_FREE);
SAME_NUMBER(SHIFT_MLX5_ACCESS_LOCAL_WRITE, MLX5_PERM_LOCAL_WRITE);
SAME_NUMBER(SHIFT_MLX5_ACCESS_REMOTE_READ, MLX5_PERM_REMOTE_READ);
SAME_NUMBER(SHIFT_MLX5_ACCESS_REMOTE_WRITE, MLX5_PERM_REMOTE_WRITE);
SAME_NUMBER(SHIFT_MLX5_ACCESS_ATOMIC, MLX5_PERM_ATOMIC);
SAME_NUMBER(SHIFT_MLX5_CQE_REQ, MLX5_CQE_REQ);
SAME_NUMBER(SHIFT_MLX5_CQE_RECV_WRITE_IMM, MLX5_CQE_RESP_WR_IMM);
SAME_NUMBER(SHIFT_MLX5_CQE_RECV, MLX5_CQE_RESP_SEND);
SAME_NUMBER(SHIFT_MLX5_CQE_RECV_IMM, MLX5_CQE_RESP_SEND_IMM);
SAME_NUMBER(SHIFT_MLX5_CQE_RECV_INV, MLX5_CQE_RESP_SEND_INV);
SAME_NUMBER(SHIFT_MLX5_CQE_RESIZE, MLX5_CQE_RESIZE_CQ);
SAME_NUMBER(SHIFT_MLX5_CQE_REQ_ERR, MLX5_CQE_REQ_ERR);
SAME_NUMBER(SHIFT_MLX5_CQE_RECV_ERR, MLX5_CQE_RESP_ERR);
SAME_NUMBER(SHIFT_MLX5_CQE_INVALID, MLX5_CQE_INVALID);
#endif
