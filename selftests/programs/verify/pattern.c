// SPDX-License-Identifier: GPL-2.0
/* What a message is made of, and what a slot is that nobody may write to. */
#include <string.h>

#include "verify.h"

uint64_t pattern_key(unsigned int qp, uint64_t seq)
{
	uint64_t key = (seq + 1) * 0xbf58476d1ce4e5b9ULL + qp * 0x94d049bb133111ebULL;

	return key ^ key >> 29;
}

uint64_t pattern_word(uint64_t key, size_t word)
{
	return key + word * 0x9e3779b97f4a7c15ULL;
}

/* Never 0, which is what a poisoned slot ends in. */
static uint8_t pattern_last(uint64_t seq)
{
	return 1 + seq % 255;
}

uint8_t pattern_byte(size_t at, size_t len, unsigned int qp, uint64_t seq)
{
	if (at == len - 1)
		return pattern_last(seq);
	return pattern_word(pattern_key(qp, seq), at / 8) >> at % 8 * 8;
}

void pattern_fill(uint8_t *to, size_t len, unsigned int qp, uint64_t seq)
{
	uint64_t key = pattern_key(qp, seq);
	size_t at, word = 0;

	for (at = 0; at + 8 <= len; at += 8) {
		uint64_t value = pattern_word(key, word++);

		memcpy(to + at, &value, 8);
	}
	for (; at < len; at++)
		to[at] = pattern_word(key, word) >> at % 8 * 8;
	to[len - 1] = pattern_last(seq);
}

size_t pattern_check(const uint8_t *at, size_t len, unsigned int qp,
		     uint64_t seq)
{
	uint64_t key = pattern_key(qp, seq), value;
	size_t i, word = 0;

	for (i = 0; i + 8 <= len - 1; i += 8) {
		memcpy(&value, at + i, 8);
		if (value != pattern_word(key, word++))
			break;
	}
	for (; i < len; i++)
		if (at[i] != pattern_byte(i, len, qp, seq))
			return i;
	return len;
}

void poison(uint8_t *slot, size_t len)
{
	memset(slot, POISON, len - 1);
	slot[len - 1] = 0;
}

size_t poison_check(const uint8_t *slot, size_t len)
{
	size_t i;

	for (i = 0; i < len - 1; i++)
		if (slot[i] != POISON)
			return i;
	return slot[len - 1] ? len - 1 : len;
}
