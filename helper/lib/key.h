/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_KEY_H
#define SHIFT_KEY_H

#include <stddef.h>

#define SHIFT_KEYS_MAX	2

int shift_keys_load(const char *path, char *err, size_t errlen);
int shift_keys_clear(char *err, size_t errlen);

#endif /* SHIFT_KEY_H */
