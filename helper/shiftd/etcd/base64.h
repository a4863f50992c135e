/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_BASE64_H
#define SHIFT_BASE64_H

#include <stddef.h>

char *shift_base64_encode(const void *data, size_t len);
void *shift_base64_decode(const char *text, size_t len, size_t *out_len);

#endif /* SHIFT_BASE64_H */
