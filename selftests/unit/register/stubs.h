/* SPDX-License-Identifier: GPL-2.0 */
#ifndef REGISTER_STUBS_H
#define REGISTER_STUBS_H

#include "core/pair.h"

extern struct shift_pair fuzz_pair;	/* the only one */

#endif /* REGISTER_STUBS_H */
