// SPDX-License-Identifier: GPL-2.0-only
/* Base64 of RFC 4648, section 4, with padding, as etcd's JSON has it. */
#include <stdint.h>
#include <stdlib.h>

#include "shiftd/etcd/base64.h"

static const char digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Return: NUL-terminated text to be freed, or NULL. */
char *shift_base64_encode(const void *data, size_t len)
{
	char *text = malloc((len + 2) / 3 * 4 + 1), *t = text;
	const uint8_t *d = data;
	size_t i;

	if (!text)
		return NULL;
	for (i = 0; i < len; i += 3) {
		uint32_t v = d[i] << 16;

		if (i + 1 < len)
			v |= d[i + 1] << 8;
		if (i + 2 < len)
			v |= d[i + 2];
		*t++ = digits[v >> 18];
		*t++ = digits[(v >> 12) & 63];
		*t++ = i + 1 < len ? digits[(v >> 6) & 63] : '=';
		*t++ = i + 2 < len ? digits[v & 63] : '=';
	}
	*t = '\0';
	return text;
}

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	if (c == '/')
		return 63;
	return -1;
}

/*
 * Return: @out_len bytes and a NUL behind them, to be freed; NULL if it is
 * not base64 or there is no memory.
 */
void *shift_base64_decode(const char *text, size_t len, size_t *out_len)
{
	size_t i, j, pad = 0;
	uint8_t *data, *d;

	if (len % 4)
		return NULL;
	while (pad < 2 && len && text[len - 1 - pad] == '=')
		pad++;
	data = malloc(len / 4 * 3 + 1);
	if (!data)
		return NULL;
	for (i = 0, d = data; i < len; i += 4) {
		uint32_t v = 0;

		for (j = 0; j < 4; j++) {
			int digit = i + j >= len - pad ? 0 :
				value_of(text[i + j]);

			if (digit < 0) {
				free(data);
				return NULL;
			}
			v = v << 6 | digit;
		}
		*d++ = v >> 16;
		*d++ = v >> 8;
		*d++ = v;
	}
	*out_len = len / 4 * 3 - pad;
	data[*out_len] = '\0';
	return data;
}
