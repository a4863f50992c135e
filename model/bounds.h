/* SPDX-License-Identifier: GPL-2.0 */
/* What a run may do: everything can be set by -D; README.md has the meaning. */

#ifndef NP
#ifdef LIVES
#define NP 3		/* the application's, backup, home */
#else
#define NP 2		/* paths */
#endif
#endif
#ifndef NA
#define NA 1		/* operations of A */
#endif
#ifndef NB
#define NB 0		/* operations of B */
#endif
#ifndef PKTS
#define PKTS 1		/* packets of an operation */
#endif
#ifndef KINDS
#define KINDS WRITE, WRITE, WRITE	/* LIVES: what the operations of an end are */
#endif
#define OPS NA		/* LIVES: the most of them at one end */
#ifndef FAULTS
#define FAULTS 1	/* path failures, each for good or for a while */
#endif
#ifndef ASKS
#define ASKS 2		/* REQs in all; none left counts as "no usable path" */
#endif
#ifndef MOVES
#define MOVES 0		/* moves without a fault */
#endif
#ifndef BACKS
#define BACKS 0		/* LIVES: tries to give an application its own QP back */
#endif
#ifndef LEAD
#define LEAD 0		/* epochs that B has asked with in vain before */
#endif
#ifndef LATE
#define LATE 9		/* early deadlines; 9: any number */
#endif
#ifndef HASTE
#define HASTE 0		/* moves that do not settle in time */
#endif
#ifndef SPURIOUS
#define SPURIOUS 0	/* triggers without a cause */
#endif
/* OUTAGE, with BRIEF: any path may be gone, several at once, for less than retries last */
#ifndef CAP
#define CAP 12		/* messages under way to one node */
#endif
