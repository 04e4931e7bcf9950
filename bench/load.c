// SPDX-License-Identifier: GPL-2.0-only
/*
 * Traffic between two ends, in as few calls of the kernel as it takes.
 *
 * load serve                         the far end; ends with the process
 * load stream ADDRESS BYTES FLOWS    each flow is a TCP connection that sends so many bytes, and waits until they are read
 * load echo ADDRESS ROUNDS BYTES     requests and their answers, one after the other, on a TCP connection
 * load flood ADDRESS MILLISECONDS BYTES FLOWS
 *                                    UDP, as fast as the CPU does it; what counts is what was received
 *
 * They print "bytes=NUMBER" or "rounds=NUMBER" or "packets=NUMBER", and "microseconds=NUMBER". With `marked` before all
 * else, the profiler's marks (mark.h) are around what was timed.
 */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mark.h"

enum { PORT = 5201, CHUNK = 65536, MAX_FLOWS = 16, VECTOR = 64, LARGEST = 4096 };

/* The first word on a connection says what is to come. */
struct order {
	char kind;
	uint16_t port;
	uint32_t bytes;
};

static char chunk[CHUNK];
static bool marked;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in address_of(const char *text, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (text && inet_pton(AF_INET, text, &address.sin_addr) != 1) {
		fprintf(stderr, "load: %s is no IPv4 address\n", text);
		exit(2);
	}
	return address;
}

static int open_socket(int type)
{
	int one = 1, socket_ = socket(AF_INET, type, 0);

	if (socket_ < 0)
		fail("socket");
	setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (type == SOCK_STREAM)
		setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return socket_;
}

static void all(ssize_t (*move)(int, void *, size_t), int socket_, void *data, size_t length)
{
	while (length) {
		ssize_t moved = move(socket_, data, length);

		if (moved <= 0)
			fail("the connection ended");
		data = (char *)data + moved;
		length -= moved;
	}
}

static ssize_t put(int socket_, void *data, size_t length)
{
	return write(socket_, data, length);
}

static void send_all(int socket_, const void *data, size_t length)
{
	all(put, socket_, (void *)data, length);
}

static void receive_all(int socket_, void *data, size_t length)
{
	all(read, socket_, data, length);
}

/* The far end */

static void swallow(int connection)
{
	ssize_t got;

	do {
		got = recv(connection, chunk, CHUNK, 0);
	} while (got > 0);
	if (got < 0)
		fail("recv");
	send_all(connection, "", 1);
}

static void answer(int connection, size_t bytes)
{
	for (;;) {
		ssize_t got = recv(connection, chunk, bytes, MSG_WAITALL);

		if (got != (ssize_t)bytes)
			return;
		send_all(connection, chunk, bytes);
	}
}

/* Counts datagrams until the near end says that there are no more. */
static void count(int connection, uint16_t port)
{
	static char room[VECTOR][LARGEST];
	struct sockaddr_in here = address_of(NULL, port);
	struct iovec pieces[VECTOR];
	struct mmsghdr messages[VECTOR];
	struct pollfd both[2] = { { .fd = open_socket(SOCK_DGRAM), .events = POLLIN }, { .fd = connection, .events = POLLIN } };
	uint64_t packets = 0;
	int i;

	memset(messages, 0, sizeof(messages));
	for (i = 0; i < VECTOR; i++) {
		pieces[i] = (struct iovec) { room[i], LARGEST };
		messages[i].msg_hdr = (struct msghdr) { .msg_iov = &pieces[i], .msg_iovlen = 1 };
	}
	if (bind(both[0].fd, (struct sockaddr *)&here, sizeof(here)))
		fail("bind");
	send_all(connection, "", 1);
	for (;;) {
		int got = recvmmsg(both[0].fd, messages, VECTOR, MSG_DONTWAIT, NULL);

		if (got > 0) {
			packets += got;
			continue;
		}
		if (poll(both, 2, -1) < 0)
			fail("poll");
		if (both[1].revents && !both[0].revents)
			break;
	}
	send_all(connection, &packets, sizeof(packets));
}

static void obey(int connection)
{
	struct order order;

	receive_all(connection, &order, sizeof(order));
	if (order.kind == 's')
		swallow(connection);
	else if (order.kind == 'e')
		answer(connection, order.bytes);
	else
		count(connection, order.port);
}

static int serve(void)
{
	struct sockaddr_in here = address_of(NULL, PORT);
	int listener = open_socket(SOCK_STREAM);

	signal(SIGCHLD, SIG_IGN);
	if (bind(listener, (struct sockaddr *)&here, sizeof(here)) || listen(listener, MAX_FLOWS))
		fail("listen");
	for (;;) {
		int one = 1, connection = accept(listener, NULL, NULL);

		if (connection < 0)
			fail("accept");
		setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (!fork()) {
			close(listener);
			obey(connection);
			exit(0);
		}
		close(connection);
	}
}

/* The near end */

static uint64_t microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

static uint64_t begin(void)
{
	if (marked)
		MARK("0x01");
	return microseconds();
}

static uint64_t end(uint64_t began)
{
	uint64_t taken = microseconds() - began;

	if (marked)
		MARK("0x02");
	return taken;
}

static int connect_to(const char *text, struct order order)
{
	struct sockaddr_in there = address_of(text, PORT);
	int connection = open_socket(SOCK_STREAM);

	if (connect(connection, (struct sockaddr *)&there, sizeof(there)))
		fail("connect");
	send_all(connection, &order, sizeof(order));
	return connection;
}

static void stream(int connection, uint64_t bytes)
{
	char last;

	while (bytes) {
		size_t part = bytes < CHUNK ? bytes : CHUNK;

		send_all(connection, chunk, part);
		bytes -= part;
	}
	shutdown(connection, SHUT_WR);
	receive_all(connection, &last, 1);
}

/* What each flow is to do, all at once; the flows' results are added up. */
static uint64_t together(unsigned int flows, uint64_t (*flow)(unsigned int number, void *context), void *context)
{
	uint64_t *results = mmap(NULL, MAX_FLOWS * sizeof(*results), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t sum = 0;
	unsigned int i;
	int status;

	if (results == MAP_FAILED)
		fail("mmap");
	for (i = 1; i < flows; i++)
		if (!fork()) {
			results[i] = flow(i, context);
			_exit(0);
		}
	results[0] = flow(0, context);
	while (wait(&status) > 0)
		if (status)
			exit(1);
	for (i = 0; i < flows; i++)
		sum += results[i];
	return sum;
}

struct plan {
	int connections[MAX_FLOWS];
	uint64_t amount;
	size_t bytes;
	const char *address;
};

static uint64_t one_stream(unsigned int number, void *context)
{
	struct plan *plan = context;

	stream(plan->connections[number], plan->amount);
	return plan->amount;
}

static int streams(const char *address, uint64_t amount, unsigned int flows)
{
	struct plan plan = { .amount = amount };
	uint64_t began, bytes;
	unsigned int i;

	for (i = 0; i < flows; i++)
		plan.connections[i] = connect_to(address, (struct order) { .kind = 's' });
	began = begin();
	bytes = together(flows, one_stream, &plan);
	printf("bytes=%llu microseconds=%llu\n", (unsigned long long)bytes, (unsigned long long)end(began));
	return 0;
}

static int echo(const char *address, unsigned long rounds, uint32_t bytes)
{
	int connection = connect_to(address, (struct order) { .kind = 'e', .bytes = bytes });
	unsigned long round;
	uint64_t began;

	began = begin();
	for (round = 0; round < rounds; round++) {
		send_all(connection, chunk, bytes);
		if (recv(connection, chunk, bytes, MSG_WAITALL) != (ssize_t)bytes)
			fail("recv");
	}
	printf("rounds=%lu microseconds=%llu\n", rounds, (unsigned long long)end(began));
	return 0;
}

static uint64_t one_flood(unsigned int number, void *context)
{
	struct plan *plan = context;
	struct sockaddr_in there = address_of(plan->address, PORT + 1 + number);
	int socket_ = open_socket(SOCK_DGRAM), i;
	uint64_t end = microseconds() + plan->amount, packets;

	if (connect(socket_, (struct sockaddr *)&there, sizeof(there)))
		fail("connect");
	do {
		for (i = 0; i < VECTOR; i++)
			if (send(socket_, chunk, plan->bytes, 0) < 0 && errno != ENOBUFS)
				fail("send");
	} while (microseconds() < end);
	shutdown(plan->connections[number], SHUT_WR);
	receive_all(plan->connections[number], &packets, sizeof(packets));
	return packets;
}

static int floods(const char *address, uint64_t milliseconds, size_t bytes, unsigned int flows)
{
	struct plan plan = { .amount = milliseconds * 1000, .bytes = bytes, .address = address };
	uint64_t began, packets;
	unsigned int i;
	char ready;

	for (i = 0; i < flows; i++) {
		plan.connections[i] = connect_to(address, (struct order) { .kind = 'f', .port = PORT + 1 + i });
		receive_all(plan.connections[i], &ready, 1);
	}
	began = microseconds();
	packets = together(flows, one_flood, &plan);
	printf("packets=%llu microseconds=%llu\n", (unsigned long long)packets,
	       (unsigned long long)(microseconds() - began));
	return 0;
}

static unsigned int flows_of(const char *text)
{
	unsigned long flows = strtoul(text, NULL, 10);

	return flows < 1 ? 1 : flows > MAX_FLOWS ? MAX_FLOWS : flows;
}

static size_t bytes_of(const char *text, size_t most)
{
	unsigned long bytes = strtoul(text, NULL, 10);

	return bytes < 1 ? 1 : bytes > most ? most : bytes;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "marked")) {
		marked = true;
		argc--;
		argv++;
		what = argc > 1 ? argv[1] : "";
	}
	if (argc == 2 && !strcmp(what, "serve"))
		return serve();
	if (argc == 5 && !strcmp(what, "stream"))
		return streams(argv[2], strtoull(argv[3], NULL, 10), flows_of(argv[4]));
	if (argc == 5 && !strcmp(what, "echo"))
		return echo(argv[2], strtoul(argv[3], NULL, 10), bytes_of(argv[4], CHUNK));
	if (argc == 6 && !strcmp(what, "flood"))
		return floods(argv[2], strtoull(argv[3], NULL, 10), bytes_of(argv[4], LARGEST), flows_of(argv[5]));
	fprintf(stderr, "usage: load serve | stream ADDRESS BYTES FLOWS | echo ADDRESS ROUNDS BYTES |\n"
			"       flood ADDRESS MILLISECONDS BYTES FLOWS\n");
	return 2;
}
