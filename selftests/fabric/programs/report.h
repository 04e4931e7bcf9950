/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lines by which a program tells its script what it found: `ok` or `not ok`, and a description. `take_report` of
 * selftests/lib/fabric.sh reads them.
 */

#ifndef REPORT_H
#define REPORT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program if a step fails that the cases need. */
static inline void must(int good, const char *what)
{
	if (good)
		return;
	printf("not ok %s: %s\n", what, strerror(errno));
	exit(1);
}

static inline void report(int good, const char *description)
{
	printf("%s %s\n", good ? "ok" : "not ok", description);
	fflush(stdout);
}

static inline void report_number(int expected, int found, const char *description)
{
	report(expected == found, description);
	if (expected != found)
		printf("# expected %d, found %d\n", expected, found);
}

#endif
