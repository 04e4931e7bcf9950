/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks for the profiler (profile.c): NOPs with a number that no compiler makes. 0x01 begins what is counted, 0x02 ends
 * it. Any code can execute them, in the kernel and in user space.
 */

#ifndef BENCH_MARK_H
#define BENCH_MARK_H

#define MARK(number) asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00, " number ", 0x62, 0x69, 0x78" ::: "memory")

#endif
