/* SPDX-License-Identifier: GPL-2.0-only */
/* Contexts with what they have, and what is drawn of it: mostly what is right. */

#ifndef CONTEXTS_H
#define CONTEXTS_H

#include <stdint.h>

#include "draw.h"

#define FILES 2
#define MANY 8
#define ARENA (1 << 20)
#define PAGE 4096

enum kind { PD, MR, CQ, SRQ, QP, AH, CHANNEL, KINDS };

/* A context with the handles of objects that there are, or were. Threads change them as they like. */
struct context {
	int fd;
	uint32_t handles[KINDS][MANY];
	uint32_t keys[MANY], numbers[MANY];
	uint64_t starts[MANY];
};

static struct context contexts[FILES];
/* The memory of all regions. */
static uint8_t *arena;
static uint16_t lid;

/* The place of objects that are to have to do with each other; -1 while any will do. */
static __thread int chosen = -1;
/* The length of all their pieces. */
static __thread uint32_t fitting;

static struct context *any_context(void)
{
	return &contexts[below(FILES)];
}

/* Some are drawn more often, so that objects have to do with each other. */
static uint32_t any_place(void)
{
	return chosen >= 0 ? (uint32_t)chosen : below(MANY) & below(MANY);
}

static uint32_t handle_of(const struct context *context, enum kind kind)
{
	if (one_in(rare))
		return garbage();
	if (one_in(rare))
		context = any_context(), kind = below(KINDS);
	return context->handles[kind][any_place()];
}

static uint64_t address(void)
{
	switch (below(16)) {
	case 0:
		return garbage();
	case 1:
		return 0xffff888000000000 + garbage();
	case 2:
		return (uintptr_t)arena + ARENA - below(64);
	default:
		return (uintptr_t)arena + below(ARENA);
	}
}

/* A key, and mostly an address in its region. */
static uint32_t draw_key(const struct context *context, uint64_t *where)
{
	uint32_t place = any_place();

	*where = one_in(rare / 4) ? address() : context->starts[place] + 8 * below(8);
	if (one_in(rare))
		return garbage();
	if (one_in(rare))
		return any_context()->keys[place] ^ below(2);
	return context->keys[place];
}

static uint32_t length(void)
{
	if (chosen >= 0)
		return fitting;
	switch (below(16)) {
	case 0:
		return garbage();
	case 1:
		return below(ARENA);
	default:
		return below(one_in(2) ? 100 : 3 * PAGE);
	}
}

/* Small, or more than there can be: what is between costs memory. */
static uint32_t size(void)
{
	return one_in(rare) ? 1U << (24 + below(8)) : below(64);
}

#endif
