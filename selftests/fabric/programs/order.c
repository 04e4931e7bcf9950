// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bytes of an RDMA write become visible in ascending order, the last one last: programs wait for the
 * last byte of a buffer and then read all of it, as ib_write_lat, UCX, MPI and riostream do. One process
 * writes into a buffer of another one, which does just that.
 *
 * order DEVICE ROUNDS
 */

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "connection.h"
#include "report.h"

/* Four packets, of which the last ends in the middle of a word. */
#define PACKET 1024
#define LENGTH 3989
/* Looks at memory that another process changes, before the processor is lent to others. */
#define LOOKS 2000

/* What both processes know. */
struct meeting {
	struct {
		uint32_t qpn, rkey;
		uint64_t address;
		int is_joined;
	} ends[2];
	uint32_t seen;
};

static volatile struct meeting *meeting;

static void until(int (*is_so)(uint32_t), uint32_t argument)
{
	int looks = 0;

	while (!is_so(argument))
		if (++looks % LOOKS == 0)
			sched_yield();
}

static int is_known(uint32_t end)
{
	return meeting->ends[end].qpn != 0;
}

static int is_joined(uint32_t end)
{
	return meeting->ends[end].is_joined;
}

static int is_seen(uint32_t round)
{
	return meeting->seen == round;
}

/* Makes one end of the connection, and waits for the other. */
static void join(struct side *side, int end, const char *device)
{
	open_device(device);
	make_side(side, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	meeting->ends[end].rkey = side->mr->rkey;
	meeting->ends[end].address = (uintptr_t)side->memory;
	meeting->ends[end].qpn = side->qp->qp_num;
	until(is_known, !end);
	must(!to_init(side->qp) && !to_rts(side->qp, meeting->ends[!end].qpn), "a queue pair is connected");
	meeting->ends[end].is_joined = 1;
	until(is_joined, !end);
}

/* Each round has another byte than the ones before and after. */
static char byte_of(uint32_t round)
{
	return round % 251 + 1;
}

static void write_rounds(const char *device, uint32_t rounds)
{
	struct side side;
	uint32_t round;

	join(&side, 0, device);
	for (round = 1; round <= rounds; round++) {
		struct ibv_sge sge = { .addr = (uintptr_t)side.memory, .length = LENGTH, .lkey = side.mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE }, *bad;
		struct ibv_wc wc;
		int number;

		wr.wr.rdma.remote_addr = meeting->ends[1].address;
		wr.wr.rdma.rkey = meeting->ends[1].rkey;
		memset(side.memory, byte_of(round), LENGTH);
		must(!ibv_post_send(side.qp, &wr, &bad), "a write");
		until(is_seen, round);
		do
			number = ibv_poll_cq(side.cq, 1, &wc);
		while (!number);
		must(number == 1 && wc.status == IBV_WC_SUCCESS, "its completion");
	}
}

/* Looks first at what is new last if the order is another one: the beginning of the last packet, and its end. */
static int is_all_new(const volatile char *memory, char byte)
{
	int i;

	if (memory[LENGTH / PACKET * PACKET] != byte)
		return 0;
	for (i = LENGTH - 1; i >= 0; i--)
		if (memory[i] != byte)
			return 0;
	return 1;
}

/* Returns the number of rounds in which a byte was old when the last one was new. */
static int read_rounds(const char *device, uint32_t rounds)
{
	volatile char *last;
	struct side side;
	uint32_t round;
	int early = 0;

	join(&side, 1, device);
	last = side.memory + LENGTH - 1;
	for (round = 1; round <= rounds; round++) {
		int looks = 0;

		while (*last != byte_of(round))
			if (++looks % LOOKS == 0)
				sched_yield();
		early += !is_all_new(side.memory, byte_of(round));
		meeting->seen = round;
	}
	return early;
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc == 3 ? atoi(argv[2]) : 0;
	int early, status;
	pid_t writer;

	must(rounds > 0, "a number of rounds");
	meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(meeting != MAP_FAILED, "memory of both processes");
	writer = fork();
	must(writer >= 0, "a process");
	if (!writer) {
		write_rounds(argv[1], rounds);
		_exit(0);
	}
	early = read_rounds(argv[1], rounds);
	report_number(0, early, "the last byte of a write is the last to change");
	must(waitpid(writer, &status, 0) == writer, "the writer ends");
	report_number(0, status, "the writer ends well");
	puts("end");
	return 0;
}
