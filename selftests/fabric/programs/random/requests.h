/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands that post requests and take completions. */

#ifndef REQUESTS_H
#define REQUESTS_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "../command.h"
#include "contexts.h"
#include "draw.h"
#include "objects.h"

#define LONGEST 0xffff

/* How many completions had which status, and how many successful ones were of which operation. The threads' sums are not exact. */
static uint32_t statuses[32], operations[256];

/* Without waiting, whichever file has the number by now: a descriptor of its own is not given away to another file by a thread
   that closes this one, and garbage opens channels that nobody told not to wait. */
static void take_events(int fd)
{
	uint64_t events[4];
	int own = dup(fd);

	if (own < 0)
		return;
	if (fcntl(own, F_SETFL, O_NONBLOCK) || read(own, events, sizeof(events)) < 0)
		errno = 0;
	close(own);
}

static int notify_cq(struct context *context)
{
	struct ib_uverbs_req_notify_cq request = { .cq_handle = handle_of(context, CQ), .solicited_only = below(2) };
	int fd = channel(context);

	if (fd > 2)
		take_events(fd);
	return GIVE_SILENTLY(context, COMMAND(REQ_NOTIFY_CQ), request);
}

/* By softib's own command, of which the room may be for two thousand. */
static int poll_cq(struct context *context)
{
	struct ib_uverbs_wc taken[SOFTIB_POLLED] = {};
	uint32_t count = 0, i;
	struct {
		struct ib_uverbs_ioctl_hdr header;
		struct ib_uverbs_attr attributes[3];
	} all = {
		.header = { sizeof(all), UVERBS_OBJECT_CQ, SOFTIB_METHOD_CQ_POLL, 3, 0, SOFTIB_DRIVER_ID, 0 },
		.attributes = {
			{ .attr_id = SOFTIB_ATTR_CQ_POLL_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY },
			{ .attr_id = SOFTIB_ATTR_CQ_POLL_COMPLETIONS, .flags = UVERBS_ATTR_F_MANDATORY },
			{ .attr_id = SOFTIB_ATTR_CQ_POLL_COUNT, .flags = UVERBS_ATTR_F_MANDATORY },
		},
	};

	all.attributes[0].data = handle_of(context, CQ);
	all.attributes[1].len = one_in(3) ? draw() : sizeof(taken);
	all.attributes[1].data = mostly((uintptr_t)taken);
	all.attributes[2].len = mostly(sizeof(count));
	all.attributes[2].data = mostly((uintptr_t)&count);
	if (ioctl(context->fd, RDMA_VERBS_IOCTL, &all) < 0)
		return errno;
	for (i = 0; i < count && i < SOFTIB_POLLED; i++) {
		statuses[taken[i].status % 32]++;
		if (taken[i].status == IBV_WC_SUCCESS)
			operations[taken[i].opcode % 256]++;
	}
	return 0;
}

static void draw_segments(const struct context *context, struct ib_uverbs_sge *segments, uint32_t count)
{
	for (; count--; segments++) {
		segments->lkey = draw_key(context, (uint64_t *)&segments->addr);
		segments->length = length();
	}
}

/* Mostly few: a long one is 64 KiB. */
static uint32_t list_length(size_t each)
{
	return one_in(rare) ? LONGEST / each - 2 : 1 + below(3);
}

/* One is enough where requests are to succeed, and is what atomic operations need. */
static uint32_t pieces_of_one(uint32_t before)
{
	if (chosen >= 0)
		return 1;
	return before < 60 ? below(3) : 0;
}

/* A request with its list: requests, then pieces of memory. The kernel is told mostly how many there are. */
static int post(const struct context *context, uint32_t number, void *header, size_t header_size, const void *requests,
		size_t requests_size, uint32_t pieces)
{
	static __thread uint8_t all[LONGEST + 1];
	static __thread struct ib_uverbs_sge segments[64];
	size_t size = header_size + requests_size;
	uint32_t response;

	if (size + pieces * sizeof(segments[0]) > LONGEST)
		pieces = 0;
	draw_segments(context, segments, pieces);
	memcpy(all, header, header_size);
	memcpy(all + header_size, requests, requests_size);
	memcpy(all + size, segments, pieces * sizeof(segments[0]));
	return give(context, number, all, size + pieces * sizeof(segments[0]), &response, sizeof(response));
}

static int is_atomic(uint32_t opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static int post_send(struct context *context)
{
	static __thread struct ib_uverbs_send_wr requests[LONGEST / sizeof(struct ib_uverbs_send_wr)];
	static const uint8_t opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
					   IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
					   IBV_WR_SEND_WITH_INV };
	struct ib_uverbs_post_send header = { .qp_handle = handle_of(context, QP), .wqe_size = mostly(sizeof(requests[0])) };
	uint32_t i, count = list_length(sizeof(requests[0])), pieces = 0;
	int is_datagram = one_in(4);

	for (i = 0; i < count; i++) {
		requests[i] = (struct ib_uverbs_send_wr){
			.wr_id = draw(), .num_sge = pieces_of_one(pieces),
			.opcode = mostly(is_datagram ? (uint32_t)IBV_WR_SEND : opcodes[below(8)]),
			.send_flags = one_in(8) ? draw() : below(8), .ex.imm_data = draw(),
		};
		pieces += requests[i].num_sge;
		if (is_datagram) {
			requests[i].wr.ud.ah = handle_of(context, AH);
			requests[i].wr.ud.remote_qpn = mostly(context->numbers[below(MANY)]);
			requests[i].wr.ud.remote_qkey = mostly(1);
		} else {
			uint64_t where;
			uint32_t key = draw_key(context, &where);

			if (is_atomic(requests[i].opcode)) {
				requests[i].wr.atomic.remote_addr = one_in(4) ? where : where & ~7UL;
				requests[i].wr.atomic.compare_add = draw();
				requests[i].wr.atomic.rkey = key;
			} else {
				requests[i].wr.rdma.remote_addr = where;
				requests[i].wr.rdma.rkey = key;
			}
		}
	}
	header.wr_count = mostly(count);
	header.sge_count = mostly(pieces);
	return post(context, COMMAND(POST_SEND), &header, sizeof(header), requests, count * sizeof(requests[0]), pieces);
}

static int post_receives(struct context *context, uint32_t number, enum kind kind)
{
	static __thread struct ib_uverbs_recv_wr requests[LONGEST / sizeof(struct ib_uverbs_recv_wr)];
	struct ib_uverbs_post_recv header = { .qp_handle = handle_of(context, kind), .wqe_size = mostly(sizeof(requests[0])) };
	uint32_t i, count = list_length(sizeof(requests[0])), pieces = 0;

	for (i = 0; i < count; i++) {
		requests[i] = (struct ib_uverbs_recv_wr){ .wr_id = draw(), .num_sge = pieces_of_one(pieces) };
		pieces += requests[i].num_sge;
	}
	header.wr_count = mostly(count);
	header.sge_count = mostly(pieces);
	/* That of a shared queue is laid out alike. */
	return post(context, number, &header, sizeof(header), requests, count * sizeof(requests[0]), pieces);
}

#endif
