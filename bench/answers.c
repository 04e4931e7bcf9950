// SPDX-License-Identifier: GPL-2.0-only
/*
 * For LD_PRELOAD: times a program by what it receives, so that its start is left out. As it ends it says
 * "ib_acme answers=NUMBER ns=NUMBER" on standard error: how many it received after the first, and how long that took.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

static uint64_t first, last, received;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

ssize_t recv(int socket, void *data, size_t length, int flags)
{
	static ssize_t (*receive)(int, void *, size_t, int);
	ssize_t found;

	if (!receive)
		receive = (ssize_t (*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
	found = receive(socket, data, length, flags);
	last = now();
	if (!received++)
		first = last;
	return found;
}

__attribute__((destructor)) static void report(void)
{
	if (received > 1)
		fprintf(stderr, "ib_acme answers=%llu ns=%llu\n", (unsigned long long)received - 1,
			(unsigned long long)(last - first));
}
