/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers that are drawn by a seed. */

#ifndef DRAW_H
#define DRAW_H

#include <stddef.h>
#include <stdint.h>

static __thread uint64_t state;
/* One value in so many is not what it ought to be; fewer are where requests are to succeed. */
#define USUAL 24
#define SELDOM 1000
static __thread uint32_t rare = USUAL;

/* xorshift64* (Vigna 2014). */
static uint32_t draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1d) >> 32;
}

static uint32_t below(uint32_t limit)
{
	return draw() % limit;
}

static int one_in(uint32_t number)
{
	return !below(number);
}

static uint64_t garbage(void)
{
	static const uint64_t edges[] = { 0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 1UL << 32,
					  1UL << 63, ~0UL };

	return one_in(2) ? edges[below(sizeof(edges) / sizeof(edges[0]))] : (uint64_t)draw() << 32 | draw();
}

static void fill_with_garbage(void *to, size_t length)
{
	uint8_t *bytes = to;

	while (length--)
		*bytes++ = one_in(3) ? 0 : draw();
}

/* Mostly this, else anything. */
static uint64_t mostly(uint64_t value)
{
	return one_in(rare) ? garbage() : value;
}

#endif
