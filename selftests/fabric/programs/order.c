// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bytes of an RDMA write, of a send and of an RDMA read become visible in ascending order, the last
 * one last: programs wait for the last byte of a buffer and then read all of it, as ib_write_lat, UCX,
 * MPI and riostream do. One process posts the requests, and another one does just that: who posts a
 * read cannot look before its answer is there.
 *
 * order DEVICE WRITES SENDS READS
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
#include "requests.h"

/* Two packets, of which the second ends in the middle of a word. */
#define PACKET 4096
#define LENGTH 8085
/* Looks at memory that another process changes, before the processor is lent to others. */
#define LOOKS 2000

#define KINDS 3

enum kind { WRITE, SEND, READ };

static const char *const descriptions[KINDS] = {
	"the last byte of a write is the last to change",
	"the last byte of a send is the last to change",
	"the last byte of a read is the last to change",
};

/* What both processes know. A turn is a round of any kind, counted from 1. */
struct meeting {
	struct {
		uint32_t qpn, rkey;
		uint64_t address;
		int is_joined;
	} ends[2];
	/* All is there for the request of this turn: the receive for a send, the data for a read. */
	uint32_t ready;
	uint32_t seen;
};

static volatile struct meeting *meeting;
/* The memory of both ends, which both processes see. */
static char *memory[2];

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

static int is_ready(uint32_t turn)
{
	return meeting->ready == turn;
}

static int is_seen(uint32_t turn)
{
	return meeting->seen == turn;
}

/* Makes one end of the connection, and waits for the other. */
static void join(struct side *side, int end, const char *device)
{
	open_device(device);
	make_side(side, IBV_ACCESS_LOCAL_WRITE);
	side->memory = memory[end];
	side->mr = ibv_reg_mr(side->pd, side->memory, LENGTH,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	must(!!side->mr, "a memory region that both see");
	meeting->ends[end].rkey = side->mr->rkey;
	meeting->ends[end].address = (uintptr_t)side->memory;
	meeting->ends[end].qpn = side->qp->qp_num;
	until(is_known, !end);
	must(!to_init(side->qp) && !to_rts(side->qp, meeting->ends[!end].qpn), "a queue pair is connected");
	meeting->ends[end].is_joined = 1;
	until(is_joined, !end);
}

/* Each turn has another byte than the ones before and after. */
static char byte_of(uint32_t turn)
{
	return turn % 251 + 1;
}

static const enum ibv_wr_opcode opcodes[KINDS] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ };

static void post_all(const char *device, const uint32_t *rounds)
{
	struct side side;
	uint32_t round, turn = 0;
	int kind;

	join(&side, 0, device);
	for (kind = 0; kind < KINDS; kind++)
		for (round = 0; round < rounds[kind]; round++) {
			turn++;
			if (kind != READ)
				memset(side.memory, byte_of(turn), LENGTH);
			until(is_ready, turn);
			post(&side, opcodes[kind], LENGTH, meeting->ends[1].address, meeting->ends[1].rkey);
			until(is_seen, turn);
			complete(&side);
		}
}

/*
 * Looks first at what is new last if the order is another one: the byte before the last one, which is in its
 * cache line, then the beginning of the last packet, then the rest of it.
 */
static int is_all_new(const volatile char *data, char byte)
{
	int i;

	if (data[LENGTH - 2] != byte || data[LENGTH / PACKET * PACKET] != byte)
		return 0;
	for (i = LENGTH - 1; i >= 0; i--)
		if (data[i] != byte)
			return 0;
	return 1;
}

/* Returns whether a byte was old when the last one was new. */
static int look(struct side *side, enum kind kind, uint32_t turn)
{
	const volatile char *data = memory[kind == READ ? 0 : 1], *last = data + LENGTH - 1;
	int looks = 0, early;

	if (kind == READ)
		memset(side->memory, byte_of(turn), LENGTH);
	else if (kind == SEND)
		post_receive(side, LENGTH);
	__sync_synchronize();
	meeting->ready = turn;
	while (*last != byte_of(turn))
		if (++looks % LOOKS == 0)
			sched_yield();
	early = !is_all_new(data, byte_of(turn));
	if (kind == SEND)
		complete(side);
	meeting->seen = turn;
	return early;
}

static void look_at_all(const char *device, const uint32_t *rounds)
{
	struct side side;
	uint32_t round, turn = 0;
	int kind;

	join(&side, 1, device);
	for (kind = 0; kind < KINDS; kind++) {
		int early = 0;

		for (round = 0; round < rounds[kind]; round++)
			early += look(&side, kind, ++turn);
		report_number(0, early, descriptions[kind]);
	}
}

static void *shared(size_t length)
{
	void *place = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must(place != MAP_FAILED, "memory of both processes");
	return place;
}

int main(int argc, char **argv)
{
	uint32_t rounds[KINDS];
	pid_t poster;
	int kind, status;

	must(argc == 2 + KINDS, "numbers of rounds");
	for (kind = 0; kind < KINDS; kind++) {
		rounds[kind] = atoi(argv[2 + kind]);
		must(rounds[kind] > 0, "a number of rounds");
	}
	meeting = shared(sizeof(*meeting));
	memory[0] = shared(LENGTH);
	memory[1] = shared(LENGTH);
	poster = fork();
	must(poster >= 0, "a process");
	if (!poster) {
		post_all(argv[1], rounds);
		_exit(0);
	}
	look_at_all(argv[1], rounds);
	must(waitpid(poster, &status, 0) == poster, "the other process ends");
	report_number(0, status, "the other process ends well");
	puts("end");
	return 0;
}
