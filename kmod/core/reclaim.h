/* SPDX-License-Identifier: GPL-2.0 */
/* What memory reclaim may wait for: Documentation/internals/kernel-users.md, Reclaim. */
#ifndef SHIFT_CORE_RECLAIM_H
#define SHIFT_CORE_RECLAIM_H

void shift_reclaim_init(void);
void shift_reclaim_waits(void);
void shift_reclaim_waited(void);
unsigned int shift_reclaim_begin(void);
void shift_reclaim_end(unsigned int saved);

#endif /* SHIFT_CORE_RECLAIM_H */
