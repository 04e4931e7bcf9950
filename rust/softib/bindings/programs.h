/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Verbs of programs, see programs.c.
 */

#ifndef SOFTIB_PROGRAMS_H
#define SOFTIB_PROGRAMS_H

#include <linux/types.h>
#include <rdma/ib_user_verbs.h>

#include "abi.h"

struct ib_cq;
struct ib_device;
struct ib_udata;
struct ib_umem;
struct uverbs_attr_bundle;

/* Is given the kernel's address and the length of each run of pages in turn. Anything but 0 ends that. */
typedef int (*softib_run_fn)(void *context, u64 address, u32 length);

u32 softib_random(void);
struct ib_umem *softib_umem_get(struct ib_device *device, u64 start, u64 length, int access);
unsigned int softib_umem_runs(struct ib_umem *umem);
int softib_umem_each_run(struct ib_umem *umem, softib_run_fn each, void *context);
bool softib_is_own_memory(struct ib_umem *umem);
bool softib_copy_from_program(void *to, u64 from, size_t length);
bool softib_tell_program_of_overrun(struct ib_cq *cq);
/* Both: 0, or the error for data of a driver that a program gave with a command. NULL is of the kernel. */
int softib_no_udata(struct ib_udata *udata);
int softib_no_udata_in(struct uverbs_attr_bundle *attrs);
void softib_define_commands(struct ib_device *device);

/* In Rust: takes the oldest completions out of a program's queue, and returns how many. */
u32 softib_poll_for_program(struct ib_cq *cq, u32 room, struct ib_uverbs_wc *out);

#endif
