// SPDX-License-Identifier: GPL-2.0-only
/*
 * mark begin|end: tells the profiler (profile.c) from user space where what is to be counted begins and ends. The marks
 * are those of meter.c.
 */

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "begin")) {
		asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x01, 0x62, 0x69, 0x78" ::: "memory");
	} else if (argc == 2 && !strcmp(argv[1], "end")) {
		asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x02, 0x62, 0x69, 0x78" ::: "memory");
	} else {
		fprintf(stderr, "usage: mark begin|end\n");
		return 2;
	}
	return 0;
}
