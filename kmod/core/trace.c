// SPDX-License-Identifier: GPL-2.0
/* The tracepoints of trace.h are made here. */

#define CREATE_TRACE_POINTS
#include "core/trace.h"
