// SPDX-License-Identifier: GPL-2.0-only
/*
 * The clock. In a node whose time is its instruction count, the time stamp counter counts instructions: the difference
 * of two readings is what was executed in between, by whomever. So all that a packet sets off has to be done, and
 * nobody may have been idle, when the clock is read again: see bench_drain().
 */

#include <linux/bottom_half.h>
#include <linux/delay.h>
#include <linux/sched.h>
#include <linux/sort.h>
#include <asm/msr.h>

#include "bench.h"
#include "mark.h"

/* Far more than any burst takes: only what would hang gets there. */
#define PATIENCE 100000

/* Whether there is to be another round. */
bool bench_goes_on(const struct bench *bench)
{
	return bench->taken < bench->rounds;
}

void bench_begin(struct bench *bench)
{
	MARK("0x01");
	bench->began = rdtsc_ordered();
}

void bench_end(struct bench *bench)
{
	u64 now = rdtsc_ordered();

	MARK("0x02");
	if (bench->warmed_up < BENCH_WARM_UP) {
		bench->warmed_up++;
		msleep(20);
	} else {
		bench->samples[bench->taken++] = now - bench->began;
	}
}

/*
 * Let work queues and soft interrupts do what is left of a burst. The thread has the idle scheduling policy, so the CPU
 * comes back to it only when there is nothing else to do, and the number of switches is the same each time.
 */
int bench_drain(struct bench *bench, bool (*done)(void *context), void *context)
{
	unsigned int turns;

	for (turns = 0; turns < PATIENCE; turns++) {
		local_bh_disable();
		local_bh_enable();
		if (done(context))
			return 0;
		schedule();
		bench->yields++;
	}
	return -ETIMEDOUT;
}

static int compare(const void *a, const void *b)
{
	u64 left = *(const u64 *)a, right = *(const u64 *)b;

	return left < right ? -1 : left > right;
}

void bench_report(struct bench *bench, char *line, size_t size)
{
	unsigned int n = bench->taken, last = n - 1;
	u64 *samples = bench->samples;

	sort(samples, n, sizeof(*samples), compare, NULL);
	scnprintf(line, size,
		  "bytes=%u burst=%u rounds=%u yields=%lu min=%llu q1=%llu median=%llu q3=%llu max=%llu\n",
		  bench->bytes, bench->burst, n, bench->yields, samples[0], samples[last / 4],
		  samples[last / 2], samples[3 * last / 4], samples[last]);
}
