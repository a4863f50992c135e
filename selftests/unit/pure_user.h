/* SPDX-License-Identifier: GPL-2.0 */
/* What kmod/pure.h takes from the kernel, for user space. */
#ifndef PURE_USER_H
#define PURE_USER_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#ifndef __force
#define __force
#endif
#ifndef fallthrough
#define fallthrough	__attribute__((__fallthrough__))
#endif

#ifndef __aligned
#define __aligned(n)	__attribute__((__aligned__(n)))
#endif

#define barrier()	__asm__ __volatile__("" : : : "memory")
#define smp_rmb()	__atomic_thread_fence(__ATOMIC_ACQUIRE)

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BIT(n)		(1ul << (n))

#undef static_assert
#define static_assert(cond, ...)	_Static_assert(cond, "" #cond)
#define BUILD_BUG_ON(cond)		_Static_assert(!(cond), "not " #cond)

#define min(a, b) ({			\
	__typeof__(a) _a = (a);		\
	__typeof__(b) _b = (b);		\
	_a < _b ? _a : _b; })
#define max(a, b) ({			\
	__typeof__(a) _a = (a);		\
	__typeof__(b) _b = (b);		\
	_a > _b ? _a : _b; })

#define sort(base, num, size, cmp, swap)	qsort(base, num, size, cmp)

#define cpu_to_be16(x)	((__be16)htobe16(x))
#define cpu_to_be32(x)	((__be32)htobe32(x))
#define cpu_to_be64(x)	((__be64)htobe64(x))
#define be16_to_cpu(x)	be16toh((__force u16)(x))
#define be32_to_cpu(x)	be32toh((__force u32)(x))
#define be64_to_cpu(x)	be64toh((__force u64)(x))

#endif /* PURE_USER_H */
