/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the program share. */
#ifndef REGISTER_FUZZ_H
#define REGISTER_FUZZ_H

#include "kernel.h"

#define USER_FIRST	0x10000ul	/* address of the first page of user memory */
#define USER_PAGES	24u

/* kernel.c */
extern struct file_operations fuzz_fops;	/* of /dev/shift */
extern long fuzz_pins;			/* pages that are pinned */
extern long fuzz_memory;		/* pieces that are allocated */
extern void *fuzz_ufile;		/* what the fd FUZZ_FD leads to */
#define FUZZ_FD		3
void fuzz_user_reset(void);
u8 *fuzz_user(u32 page);
void fuzz_locks_are_free(void);

/* fuzz_register.c */
extern bool fuzz_unlimited;		/* the process may lock as much memory as it likes */
bool fuzz_refuses(void);		/* is this allocation, or this copy, to fail? */
u8 fuzz_byte(void);			/* of the input */
u32 fuzz_word(void);

/* away.c; an SRQ that is registered, but for the first one */
struct shift_cq;
struct shift_srq;
void fuzz_srq_init(struct shift_srq *ssrq);
void fuzz_write_table(struct shift_srq *ssrq);
void fuzz_complete(struct shift_cq *scq, u32 qpn);
void fuzz_lend(struct shift_srq *ssrq);
void fuzz_take_over(struct shift_srq *ssrq, struct shift_cq *scq);

#endif /* REGISTER_FUZZ_H */
