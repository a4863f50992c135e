/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the pure parts need of the kernel, so that the same sources also build
 * in user space for tests with sanitizers and fuzzers.
 */
#ifndef SHIFT_PURE_PURE_H
#define SHIFT_PURE_PURE_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/kernel.h>
#include <linux/sort.h>
#include <linux/build_bug.h>
#include <asm/barrier.h>
#include <asm/byteorder.h>
#else
#include "pure_user.h"	/* selftests/unit */
#endif

#endif /* SHIFT_PURE_PURE_H */
