/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mlx5_soft: a device with mlx5's user ABI that needs no hardware.  It carries
 * everything over an rxe device ("lower"); see Documentation/testing/mlx5_soft.md.
 */
#ifndef MLX5_SOFT_H
#define MLX5_SOFT_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <linux/mlx5/device.h>
#include <linux/mlx5/qp.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#define MLS_UARS		8	/* pages, two doorbell registers in use each */
#define MLS_BF_REG_SIZE		512
#define MLS_MAX_DS		63	/* the 6 bits of a control segment */
#define MLS_WQE_MAX		1024	/* bytes, in whole basic blocks */
#define MLS_MAX_SGE		30
#define MLS_MAX_RQ_DESC		512	/* bytes */
#define MLS_MAX_WQ		32768	/* basic blocks or receives */
#define MLS_MAX_CQE		(1 << 20)
#define MLS_SEND_DEPTH		128	/* sends given to rxe at once, per QP */
#define MLS_RECV_DEPTH		512	/* receives given to rxe at once, per QP */
#define MLS_LOWER_CQE		16384
#define MLS_POLL_BATCH		16
#define MLS_END_KEY		0x100		/* libmlx5 ends a scatter list with it */
#define MLS_BAD_KEY		0xffffff00	/* no rxe key has this index */

struct mls_dev;
struct mls_nic;
struct mls_dmabuf;

/* User memory that stays in place and is never trusted. */
struct mls_pin {
	struct ib_umem *umem;
	struct page **pages;
	unsigned int npages;
	unsigned int offset;	/* of the first byte in the first page */
	size_t size;
};

struct mls_ucontext {
	struct ib_ucontext ibuc;
	struct page *uar[MLS_UARS];
	unsigned int bfregs;	/* as libmlx5 counts them: two per UAR page */
	unsigned int shared;	/* the first of them, which libmlx5 locks */
	atomic_t next_bfreg;
	u8 cqe_version;
};

struct mls_pd {
	struct ib_pd ibpd;
	struct ib_pd *lower;
	struct mutex reg_lock;	/* inside the dma_resv of buffers */
	struct ib_qp *reg_qp;	/* registrar.c */
	struct ib_cq *reg_cq;
};

struct mls_mr {
	struct ib_mr ibmr;
	struct ib_mr *lower;
	struct mls_dmabuf *buf;	/* NULL: memory of a process */
	int access;
};

struct mls_ah {
	struct ib_ah ibah;
	struct ib_ah *lower;
};

struct mls_cq {
	struct ib_cq ibcq;
	struct ib_cq *lower;
	struct list_head entry;	/* of mls_dev.cqs */
	struct mls_pin buf;
	struct mls_pin db;
	atomic_t poked;		/* lower has something, or was never armed */
	u32 cqn;
	u32 ncqe;		/* a power of two */
	u32 cqe_size;
	u32 pi;			/* CQEs written so far */
	u32 solicited_pi;	/* pi after the last one that a solicited arm waits for */
	u32 reserved;		/* lower completions that there can be */
	int fired;		/* arm sequence number that has had its event */
	bool overrun;
	bool kernel;		/* kverbs.c: only @lower and these are in use */
	spinlock_t stash_lock;
	struct list_head stash;	/* struct mls_stashed: polled before what @lower has */
};

/* A completion of a kernel user's that rxe does not have (any more), or a receive on QP 1. */
struct mls_stashed {
	struct list_head entry;
	struct ib_wc wc;	/* its QP is rxe's */
	u64 addr;		/* of what is received */
	u32 length;
};

/* What a send in rxe's hands will be a completion of. */
struct mls_flight {
	void *bounce;		/* copy of inline data */
	u32 bytes;
	u16 index;		/* WQE's first basic block */
	u8 opcode;
	u8 syndrome;		/* never given to rxe: it was wrong */
	bool signaled;
	bool fetches;		/* a READ or an atomic, which a fence behind it waits for */
	bool done;		/* never given to rxe: it has no effect */
};

enum mls_kind { MLS_SEND = 1, MLS_RECV, MLS_SRQ_RECV };

/* An rxe QP of a life that is over, in RESET until its QP goes. */
struct mls_spent {
	struct list_head entry;
	struct ib_qp *qp;
};

struct mls_srq {
	struct ib_srq ibsrq;
	struct ib_srq *lower;
	struct list_head entry;	/* of mls_dev.srqs */
	struct mls_pin buf;
	struct mls_pin db;
	u32 srqn;
	u32 count;
	u32 shift;
	u32 max_gs;
	u32 posted;		/* in rxe's hands */
	u16 counter;		/* doorbell record as far as it was followed */
	u16 next;		/* index of the WQE after that */
	bool broken;
	bool kernel;		/* kverbs.c: only @lower and @last are in use */
	u64 last;		/* wr_id of the receive that was posted last */
};

struct mls_qp {
	struct ib_qp ibqp;
	struct ib_qp *lower;
	struct ib_qp *first;	/* the application's lives; the kernel's have one each */
	struct list_head spent;	/* struct mls_spent: of lives that are over */
	u32 number;		/* that applications know: of @first */
	struct ib_qp_attr init;	/* as the application or the kernel has set it last */
	struct list_head entry;	/* of mls_dev.qps */
	struct mls_pin buf;
	struct mls_pin db;
	struct mls_srq *srq;
	struct page *uar;
	unsigned int bf_offset;	/* of its doorbell register in that page */
	struct ib_qp_cap cap;
	enum ib_qp_state state;
	u32 epoch;		/* completions of earlier ones are not ours */
	u32 uidx;
	u8 cqe_version;
	u32 sq_count;		/* basic blocks */
	u32 sq_offset;
	u32 rq_count;
	u32 rq_shift;
	u32 rq_gs;
	u32 send_depth;
	u32 recv_depth;
	u32 recvs;		/* in rxe's hands */
	u32 held;		/* flushed by rxe before the error of a send was told */
	u16 held_first;		/* index of the first of these */
	u32 flight_first;
	u32 flight_next;
	u16 sq_head;		/* basic blocks taken */
	u16 rq_head;
	u64 flushed_ns;		/* when the last receive was due to be flushed; 0: none was */
	bool stopped;		/* a wrong WQE is waiting for its turn */
	bool resetting;		/* what rxe flushes is not completed */
	bool asked;		/* it is on its way to ERR because somebody wants it there */
	bool kernel;		/* kverbs.c: only these are in use, @lower, @srq, @cap and @state */
	bool used;		/* it was reset at least once */
	bool gsi;		/* cm.c */
	struct mls_flight flight[MLS_SEND_DEPTH];
};

struct mls_faults {
	bool silent;
	u32 fail_next;		/* syndrome for the next send */
	u32 lose_ack;		/* this one's answer is lost */
	u32 breaks;		/* breaks.c */
	u32 query_ms;		/* for which a query of a user's QP is not answered */
	u32 flush_us;		/* from one flush of a receive to the next */
	u32 roce_accl;		/* nic.c */
	bool port_down;		/* whatever its interface is */
};

struct mls_stats {
	u64 sends, recvs, cqes, events, errors, flushes;
	u64 doorbells, blueflame, inlines;
	u64 faults;
};

/* QP 1, if the device has connections: cm.c. */
struct mls_gsi {
	struct mls_qp *qp;
	struct list_head recvs;	/* struct mls_stashed */
};

struct mls_dev {
	struct ib_device ibdev;
	struct ib_device *lower;
	struct net_device *ndev;
	struct mls_slot *slot;
	struct mls_nic *nic;
	struct ib_event_handler lower_events;
	struct dentry *debugfs;

	/* Serializes the engine and all that changes QPs, CQs and SRQs. */
	struct mutex lock;
	struct list_head qps;
	struct list_head cqs;
	struct list_head srqs;
	u32 next_number;

	struct xarray mrs;	/* by index of the key, own lock */
	struct xarray kernel_qps;	/* of the kernel's users, by the address of their rxe QP */
	struct mls_gsi gsi;
	struct task_struct *engine;
	wait_queue_head_t wait;
	atomic_t kick;
	struct mls_faults faults;
	struct mls_stats stats;
	struct ib_wc wc[MLS_POLL_BATCH];
	u8 wqe[MLS_WQE_MAX];
};

/* An rxe device, and ours on top if it was asked for. */
struct mls_slot {
	struct list_head entry;
	struct ib_device *lower;
	struct mls_dev *dev;
	struct completion gone;
};

/* A send WQE in the words of the verbs. */
struct mls_wr {
	union {
		struct ib_send_wr send;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
	};
	struct ib_sge sge[MLS_MAX_SGE];
	struct mls_flight flight;
	unsigned int blocks;
	bool fenced;
	bool nop;
};

#define mls_to(type, member) \
	static inline struct mls_##type *to_mls_##type(struct ib_##type *ib) \
	{ \
		return container_of(ib, struct mls_##type, member); \
	}

mls_to(ucontext, ibuc)
mls_to(pd, ibpd)
mls_to(mr, ibmr)
mls_to(ah, ibah)
mls_to(cq, ibcq)
mls_to(srq, ibsrq)
mls_to(qp, ibqp)

static inline struct mls_dev *to_mls_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct mls_dev, ibdev);
}

static inline u64 mls_wr_id(enum mls_kind kind, u32 epoch, u16 index)
{
	return (u64)epoch << 32 | kind << 16 | index;
}

/* device.c */
int mls_device_create(struct mls_slot *slot);
void mls_device_destroy(struct mls_slot *slot);

/* context.c */
int mls_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata);
void mls_dealloc_ucontext(struct ib_ucontext *ibuc);
void mls_disassociate_ucontext(struct ib_ucontext *ibuc);
int mls_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);
u32 mls_bfreg_get(struct mls_ucontext *uc, struct page **uar, unsigned int *offset);

/* pin.c */
int mls_pin_init(struct mls_pin *pin, struct ib_device *ibdev, u64 addr, size_t size,
		 int access);
int mls_pin_record(struct mls_pin *pin, struct ib_device *ibdev, u64 addr, size_t size);
void mls_pin_release(struct mls_pin *pin);
void mls_pin_read(const struct mls_pin *pin, size_t at, void *to, size_t size);
void mls_pin_write(const struct mls_pin *pin, size_t at, const void *from, size_t size);
u32 mls_pin_word(const struct mls_pin *pin, size_t at);
void mls_pin_publish(const struct mls_pin *pin, size_t at, u8 value);

/* mr.c */
int mls_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int mls_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
struct ib_mr *mls_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
			      int access, struct ib_udata *udata);
struct ib_mr *mls_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				     int fd, int access);
struct ib_mr *mls_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				u64 virt_addr, int access, struct ib_pd *ibpd,
				struct ib_udata *udata);
int mls_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
u32 mls_lower_key(struct mls_dev *dev, struct ib_pd *ibpd, u32 key);

/* registrar.c */
int mls_registrar_make(struct mls_pd *pd);
void mls_registrar_free(struct mls_pd *pd);
int mls_registrar_validate(struct mls_pd *pd, struct ib_mr *mr, int access);
int mls_registrar_invalidate(struct mls_pd *pd, struct ib_mr *mr);

/* dmabuf.c */
int mls_dmabuf_init(void);
void mls_dmabuf_uninit(void);
int mls_reg_dmabuf(struct mls_mr *mr, struct mls_pd *pd, u64 offset, u64 length, u64 iova, int fd,
		   int access);
void mls_dmabuf_dereg(struct mls_mr *mr);
void mls_dmabuf_settle(void);

/* buffer.c */
int mls_buffer_init(void);
void mls_buffer_uninit(void);

/* cq.c */
int mls_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct ib_udata *udata);
int mls_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int mls_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
bool mls_cq_drain(struct mls_cq *cq);

/* cqe.c */
void mls_cqe_send(struct mls_qp *qp, const struct mls_flight *flight, u8 syndrome);
void mls_cqe_recv(struct mls_qp *qp, u16 index, const struct ib_wc *wc);
void mls_cqe_flush(struct mls_qp *qp, enum mls_kind kind, u16 index);
int mls_cqe_resize(struct mls_cq *cq, u32 ncqe);
void mls_cq_notify(struct mls_cq *cq);
u8 mls_syndrome(enum ib_wc_status status);

/* qp.c */
int mls_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int mls_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata);
int mls_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init);
int mls_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int mls_translate_gid(struct mls_dev *dev, struct rdma_ah_attr *ah);
void mls_qp_break(struct mls_qp *qp);
void mls_qp_event(struct mls_qp *qp, enum ib_event_type type);

/* kverbs.c */
int mls_kernel_create_cq(struct mls_cq *cq, const struct ib_cq_init_attr *attr);
void mls_kernel_destroy_cq(struct mls_cq *cq);
void mls_kernel_cq_clean(struct mls_cq *cq, struct ib_qp *lower);
int mls_kernel_modify_qp(struct mls_qp *qp, struct ib_qp_attr *attr, int mask);
int mls_kernel_create_qp(struct mls_qp *qp, struct ib_qp_init_attr *attr);
void mls_kernel_destroy_qp(struct mls_qp *qp);
int mls_kernel_create_srq(struct mls_srq *srq, struct ib_srq_init_attr *attr);
int mls_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int mls_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
int mls_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad);
int mls_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad);
int mls_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad);
struct ib_mr *mls_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *mls_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int mls_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset);
extern bool mls_pi;
struct ib_mr *mls_alloc_mr_integrity(struct ib_pd *ibpd, u32 num_data, u32 num_meta);
int mls_map_mr_sg_pi(struct ib_mr *ibmr, struct scatterlist *data, int num_data,
		     unsigned int *data_offset, struct scatterlist *meta, int num_meta,
		     unsigned int *meta_offset);
void mls_drain_sq(struct ib_qp *ibqp);
void mls_drain_rq(struct ib_qp *ibqp);

/* iommu.c */
extern bool mls_iommu;
int mls_iommu_attach(struct device *dev);
u64 mls_iommu_offset(const struct ib_device *ibdev);
u64 mls_iommu_kva(const struct ib_device *ibdev, u64 addr);
int mls_iommu_sges(struct ib_pd *ibpd, struct ib_sge **sge, int num, struct ib_sge *copy);
int mls_iommu_map_mr_sg(struct ib_mr *lower, const struct ib_device *ibdev, struct scatterlist *sg,
			int nents, unsigned int *offset);

/* cm.c */
extern bool mls_cm;
void mls_cm_take(struct mls_dev *dev);
void mls_cm_give_back(struct ib_device *lower);
int mls_gsi_post_recv(struct mls_qp *qp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad);
void mls_gsi_start(struct mls_qp *qp);
void mls_gsi_stop(struct mls_qp *qp);
int mls_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int mls_destroy_ah(struct ib_ah *ibah, u32 flags);
int mls_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);

/* srq.c */
int mls_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
		   struct ib_udata *udata);
int mls_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata);
int mls_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int mls_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
bool mls_srq_run(struct mls_srq *srq);
void mls_srq_lower_event(struct ib_event *event, void *context);

/* wqe.c */
u8 mls_wqe_decode(struct mls_dev *dev, struct mls_qp *qp, unsigned int most,
		  struct mls_wr *wr);
int mls_wqe_scatter(struct mls_dev *dev, struct ib_pd *ibpd, const void *segs, unsigned int count,
		    struct ib_sge *sge);

/* sq.c */
bool mls_sq_run(struct mls_qp *qp);
void mls_sq_complete(struct mls_qp *qp, const struct ib_wc *wc);
bool mls_sq_owes_error(struct mls_qp *qp, const struct ib_wc *wc);
void mls_sq_forget(struct mls_qp *qp);

/* rq.c */
bool mls_rq_run(struct mls_qp *qp);
void mls_rq_complete(struct mls_qp *qp, const struct ib_wc *wc);
void mls_rq_flush_held(struct mls_qp *qp);

/* engine.c */
int mls_engine_start(struct mls_dev *dev);
void mls_engine_stop(struct mls_dev *dev);
void mls_engine_kick(struct mls_dev *dev);

/* breaks.c */
bool mls_breaks(const struct ib_device *ibdev, unsigned int number);
int mls_break_wc(const struct ib_device *ibdev, struct ib_wc *wc, int num);
enum ib_qp_state mls_break_state(const struct mls_qp *qp, enum ib_qp_state state);
u32 mls_break_psn(const struct mls_qp *qp, u32 psn);
void mls_break_recv(const struct ib_device *ibdev, struct ib_sge *sge);
u64 mls_break_srq_recv(const struct mls_srq *srq, u64 wr_id);

/* nic.c: bits of faults.roce_accl; those below 7 are the register's own */
#define MLS_ACCL_ADAPTIVE_ROUTING	BIT(5)
#define MLS_ACCL_SELECTIVE_REPEAT	BIT(6)
#define MLS_ACCL_INVALID		BIT(8)	/* the NIC cannot be told to do any of them */
#define MLS_ACCL_NONE			BIT(9)	/* it has no such register */
#define MLS_ACCL_MUTE			BIT(10)	/* it does not answer */
int mls_nic_init(void);
void mls_nic_uninit(void);
int mls_nic_create(struct mls_dev *dev);
void mls_nic_destroy(struct mls_nic *nic);
void mls_nic_has_accl(struct mls_dev *dev, bool has);

/* fault.c */
void mls_fault_init(struct mls_dev *dev);
void mls_fault_uninit(struct mls_dev *dev);
void mls_debugfs_init(void);
void mls_debugfs_uninit(void);

#endif
