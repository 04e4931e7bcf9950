// SPDX-License-Identifier: GPL-2.0-only
/*
 * mark begin|end: tells the profiler (profile.c) from user space where what is to be counted begins and ends.
 */

#include <stdio.h>
#include <string.h>

#include "mark.h"

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "begin")) {
		MARK("0x01");
	} else if (argc == 2 && !strcmp(argv[1], "end")) {
		MARK("0x02");
	} else {
		fprintf(stderr, "usage: mark begin|end\n");
		return 2;
	}
	return 0;
}
