// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A make-believe /dev/shift: takes the place of open, ioctl and mmap for that file
 * only.  The program that is linked with it needs -rdynamic, so that libraries
 * find these first.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <infiniband/verbs.h>
#include "fake_kernel.h"

struct fake_kernel kern = {
	.oldest = SHIFT_ABI_VERSION, .version = SHIFT_ABI_VERSION,
};

static int kern_wait(void)
{
	kern.waits++;
	/* the provider must not hold the queue's lock now */
	if (*(volatile uint32_t *)(uintptr_t)kern.qp.sq_lock_addr != kern.qp.lock_free ||
	    *(volatile uint32_t *)(uintptr_t)kern.qp.rq_lock_addr != kern.qp.lock_free)
		kern.waits += 1000;
	if (kern.wait_errors) {
		kern.wait_errors--;
		errno = kern.wait_error;
		return -1;
	}
	*(volatile uint32_t *)(uintptr_t)kern.qp.flag_addr = 0;
	return 0;
}

/* Is the QP on its way back? Then once -EAGAIN, and the doorbell is theirs */
static int kern_kick(void)
{
	if (kern.kick_result)
		errno = kern.rebase_wanted ? EAGAIN : ENOTCONN;
	return kern.kick_result;
}

static int kern_rebase(struct shift_abi_rebase *base)
{
	if (base->id != QP_ID)
		abort();
	kern.rebases[base->step]++;
	if (base->step == SHIFT_REBASE_BEGIN && kern.rebase_wanted) {
		base->sq_base = kern.rebase.sq_base;
		base->rq_base = kern.rebase.rq_base;
		base->packets = kern.rebase.packets;
		return 0;
	}
	if (base->step == SHIFT_REBASE_DONE && kern.rebase_wanted) {
		kern.rebase = *base;
		kern.rebase_wanted = 0;
		return 0;
	}
	errno = EAGAIN;
	return -1;
}

static int kern_query(struct shift_abi_query *query)
{
	kern.queries++;
	if (query->abi_version >= kern.oldest && query->abi_version <= kern.version)
		return 0;
	query->abi_version = kern.version;
	errno = EPROTONOSUPPORT;
	return -1;
}

static int kern_ioctl(unsigned long cmd, void *arg)
{
	struct shift_abi_id *id = arg;

	switch (cmd) {
	case SHIFT_IOC_QUERY:
		return kern_query(arg);
	case SHIFT_IOC_REGISTER_CQ:
		if (kern.reg_cq_error) {
			errno = kern.reg_cq_error;
			return -1;
		}
		kern.cq_regs++;
		kern.cq = *(struct shift_abi_reg_cq *)arg;
		((struct shift_abi_reg_cq *)arg)->id = CQ_ID;
		((struct shift_abi_reg_cq *)arg)->side_len = SIDE_LEN;
		((struct shift_abi_reg_cq *)arg)->side_offset = SIDE_OFFSET;
		return 0;
	case SHIFT_IOC_REGISTER_QP:
		if (((struct shift_abi_reg_qp *)arg)->create_flags &
		    (SHIFT_QP_CREATE_SIGNATURE | SHIFT_QP_CREATE_FOREIGN)) {
			kern.refused = ((struct shift_abi_reg_qp *)arg)->create_flags;
			errno = EOPNOTSUPP;
			return -1;
		}
		kern.qp_regs++;
		kern.qp = *(struct shift_abi_reg_qp *)arg;
		((struct shift_abi_reg_qp *)arg)->id = QP_ID;
		return 0;
	case SHIFT_IOC_REGISTER_SRQ:
		kern.srq_regs++;
		kern.srq = *(struct shift_abi_reg_srq *)arg;
		kern.srq.id = SRQ_ID;
		kern.srq.key = SRQ_KEY;
		kern.srq.entries = kern.srq_entries ? kern.srq_entries : SRQ_ENTRIES;
		kern.srq.entry_size = SRQ_ENTRY_SIZE;
		kern.srq.entry_offset = 128;
		if (kern.srq.slot) {
			kern.srq.wqe_offset = 128;
			kern.srq.entry_offset = 192;
		}
		kern.srq.table_len = SIDE_LEN;
		kern.srq.table_offset = SRQ_OFFSET;
		*(struct shift_abi_reg_srq *)arg = kern.srq;
		return 0;
	case SHIFT_IOC_UNREGISTER:
		if (id->type == SHIFT_ABI_CQ && id->id == CQ_ID)
			kern.cq_unregs++;
		else if (id->type == SHIFT_ABI_QP && id->id == QP_ID)
			kern.qp_unregs++;
		else if (id->type == SHIFT_ABI_SRQ && id->id == SRQ_ID)
			kern.srq_unregs++;
		else
			abort();
		return 0;
	case SHIFT_IOC_WAIT:
		if (id->type != SHIFT_ABI_QP || id->id != QP_ID)
			abort();
		return kern_wait();
	case SHIFT_IOC_KICK:
		if (id->type == SHIFT_ABI_SRQ && id->id == SRQ_ID) {
			kern.srq_kicks++;
			return 0;
		}
		if ((id->type != SHIFT_ABI_QP && id->type != SHIFT_ABI_RECV) || id->id != QP_ID)
			abort();
		kern.kicks++;
		return id->type == SHIFT_ABI_QP ? kern_kick() : 0;
	case SHIFT_IOC_REBASE:
		return kern_rebase(arg);
	case SHIFT_IOC_EMPTY:
		kern.empties++;
		kern.empty = *(struct shift_abi_empty *)arg;
		errno = kern.empty_ring ? kern.empty_ring() : EBUSY;
		return errno ? -1 : 0;
	case SHIFT_IOC_CQE:
		kern.cqes++;
		kern.cqe = *(struct shift_abi_cqe *)arg;
		((struct shift_abi_cqe *)arg)->answer = kern.answer;
		return 0;
	}
	errno = ENOTTY;
	return -1;
}

int open(const char *path, int flags, ...)
{
	static int (*real)(const char *, int, ...);
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (!real)
		real = dlsym(RTLD_NEXT, "open");
	if (strcmp(path, SHIFT_ABI_DEVICE))
		return real(path, flags, mode);
	kern.opens++;
	if (kern.absent) {
		errno = ENOENT;
		return -1;
	}
	kern.fd = real("/dev/null", O_RDWR);
	return kern.fd;
}

int ioctl(int fd, unsigned long cmd, ...)
{
	static int (*real)(int, unsigned long, ...);
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!real)
		real = dlsym(RTLD_NEXT, "ioctl");
	if (kern.fd && fd == kern.fd)
		return kern_ioctl(cmd, arg);
	return real(fd, cmd, arg);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	static void *(*real)(void *, size_t, int, int, int, off_t);
	struct shift_abi_side *old = kern.side;

	if (!real)
		real = dlsym(RTLD_NEXT, "mmap");
	if (!kern.fd || fd != kern.fd)
		return real(addr, len, prot, flags, fd, off);
	if (off == SRQ_OFFSET) {
		kern.table = real(NULL, len, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		return kern.table;
	}
	if (len != SIDE_LEN || off != SIDE_OFFSET || !(flags & MAP_SHARED))
		abort();
	kern.side = real(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	kern.side->entries = SIDE_ENTRIES;
	kern.side->producer = UINT32_MAX - 2;
	kern.side->consumer = UINT32_MAX - 2;
	/* a CQ that is registered again keeps its side ring */
	if (old && kern.cq_regs > 1)
		memcpy(kern.side, old, SIDE_LEN);
	return kern.side;
}

void kern_put(const struct shift_abi_wc *wc)
{
	kern.side->wc[kern.side->producer % SIDE_ENTRIES] = *wc;
	__atomic_store_n(&kern.side->producer, kern.side->producer + 1, __ATOMIC_RELEASE);
}

void kern_complete(uint64_t wr_id, uint32_t len)
{
	struct shift_abi_wc wc = {
		.wr_id = wr_id, .opcode = IBV_WC_RDMA_WRITE, .byte_len = len, .qp_num = 0x123,
	};

	kern_put(&wc);
}

void kern_raise(void)
{
	*(volatile uint32_t *)(uintptr_t)kern.cq.flag_addr = SHIFT_CQ_FLAG_SIDE;
}

uint32_t cq_flag(void)
{
	return *(volatile uint32_t *)(uintptr_t)kern.cq.flag_addr;
}
