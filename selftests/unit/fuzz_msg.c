// SPDX-License-Identifier: GPL-2.0
/* Whatever shift_msg_decode() takes is exactly what would be sent. */
#include <stdlib.h>
#include "pure/msg.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct shift_msg_form form = { .caps = SHIFT_MSG_CAPS };
	u8 again[SHIFT_MSG_MAX];
	struct shift_msg m;
	int n;

	if (shift_msg_decode(data, size, &m))
		return 0;
	form.version = data[4];
	n = shift_msg_encode(&m, &form, again, sizeof(again));
	if (n < 0 || (size_t)n != size || memcmp(data, again, size))
		abort();
	if (shift_msg_name(m.type)[0] == '?')
		abort();
	return 0;
}
