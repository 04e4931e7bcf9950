// SPDX-License-Identifier: GPL-2.0-only
/*
 * The clock. In a node whose time is its instruction count, the time stamp counter counts instructions: the difference
 * of two readings is the number executed in between, in any context. So all that a packet causes has to be done when
 * the clock is read again, and the CPU must not have been idle before: see bench_drain().
 */

#include <linux/bottom_half.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/sort.h>
#include <asm/msr.h>

#include "bench.h"
#include "mark.h"

/* Turns that no burst takes: only a measurement that hangs gets there. */
#define PATIENCE 100000

/* Milliseconds until the first packets are sent: their destination may have to be resolved. */
#define RESOLVE_PATIENCE 5000

/* Empty bursts, of which the shortest counts: the others are those that an interrupt hit. */
#define EMPTY_BURSTS 8

/* Whether there is to be another burst. */
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
		return;
	}
	/* An interrupt may have hit each of the empty bursts. */
	bench->spent += now - bench->began - min(now - bench->began, bench->empty);
	bench->bursts++;
	if (bench->bursts * bench->burst >= BENCH_RING) {
		bench->samples[bench->taken++] = bench->spent;
		bench->bursts = 0;
		bench->spent = 0;
	}
}

/* The node has one CPU: no other thread can run, and no soft interrupt waits. */
static bool others_are_idle(void)
{
	return single_task_running() && !local_softirq_pending();
}

/*
 * Let all threads and soft interrupts finish the work of a burst: the device's, the driver's, the stack's, at both ends.
 * The calling thread has the idle scheduling policy, so schedule() returns when the others have nothing to do, and the
 * number of switches is the same each time. `done` is asked when they are idle: it takes what the measurement itself is
 * to take, which may cause more work, and says whether something is still missing.
 */
static int drain(struct bench *bench, bool (*done)(void *context), void *context)
{
	unsigned int turns;

	for (turns = 0; turns < PATIENCE; turns++) {
		local_bh_disable();
		local_bh_enable();
		if (others_are_idle() && done(context) && others_are_idle())
			return 0;
		schedule();
		bench->yields++;
	}
	return -ETIMEDOUT;
}

static bool nothing_is_left(void *)
{
	return true;
}

/* Take what `begin` starts for a burst of no packets: its instructions are no packet's. It comes before the first burst. */
void bench_empty(struct bench *bench, void (*begin)(void *context), void *context)
{
	u64 least = U64_MAX, began, now;
	unsigned int i;

	for (i = 0; i < EMPTY_BURSTS; i++) {
		began = rdtsc_ordered();
		begin(context);
		drain(bench, nothing_is_left, NULL);
		now = rdtsc_ordered();
		least = min(least, now - began);
	}
	bench->yields = 0;
	bench->empty = least;
}

static void begin_nothing(void *)
{
}

/* The first call is of the warm-up: what the meter itself executes is measured then. */
int bench_drain(struct bench *bench, bool (*done)(void *context), void *context)
{
	int error = drain(bench, done, context);

	if (!error && !bench->empty)
		bench_empty(bench, begin_nothing, NULL);
	return error;
}

/* Let all threads and soft interrupts finish, where nothing is left for the measurement itself to do. */
int bench_finish(struct bench *bench)
{
	return bench_drain(bench, nothing_is_left, NULL);
}

/*
 * Make sure, outside of the clock, that a burst has had its effect. The first bursts may wait for an answer from another
 * host. From then on everything is done when the CPU is idle: if it is not, the clock has stopped too early.
 */
int bench_confirm(struct bench *bench, bool (*done)(void *context), void *context)
{
	unsigned int turns;

	for (turns = 0; !done(context); turns++) {
		if (bench->warmed_up == BENCH_WARM_UP && (bench->bursts || bench->taken))
			return -EIO;
		if (turns == RESOLVE_PATIENCE)
			return -ETIMEDOUT;
		msleep(1);
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	u64 left = *(const u64 *)a, right = *(const u64 *)b;

	return left < right ? -1 : left > right;
}

void bench_report(struct bench *bench, char *line, size_t size)
{
	unsigned int packets = DIV_ROUND_UP(BENCH_RING, bench->burst) * bench->burst;
	unsigned int n = bench->taken, last = n - 1;
	u64 *samples = bench->samples;

	sort(samples, n, sizeof(*samples), compare, NULL);
	scnprintf(line, size,
		  "bytes=%u burst=%u packets=%u rounds=%u yields=%lu empty=%llu min=%llu q1=%llu median=%llu q3=%llu max=%llu\n",
		  bench->bytes, bench->burst, packets, n, bench->yields, bench->empty, samples[0],
		  samples[last / 4], samples[last / 2], samples[3 * last / 4], samples[last]);
}
