// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin of QEMU that counts the instructions which a node executes between the marks of meter.c. At the end it
 * writes the number of rounds, then a line for each block of straight code: its address, its instructions, and how often
 * it ran; and to FILE.rounds, at once, how many instructions each round took, a line each. Argument: out=FILE.
 */

#define _GNU_SOURCE

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is used of QEMU's interface for plugins, version 4; Debian has no package with its header. */
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;

int qemu_plugin_version = 4;

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*call)(uint64_t id, struct qemu_plugin_tb *block));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, void (*call)(unsigned int cpu, void *data),
					  int registers, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*call)(unsigned int cpu, void *data), int registers,
					    void *data);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*call)(uint64_t id, void *data), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t length);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

int qemu_plugin_install(uint64_t id, const struct qemu_info_t *info, int argc, char **argv);

struct block {
	struct block *next;
	uint64_t address, runs;
	size_t instructions;
};

static struct block *blocks;
static bool counting;
static unsigned long rounds;
/* Of the round that goes on. */
static uint64_t executed;
static const char *out;
static FILE *each;

static void begin(unsigned int cpu, void *data)
{
	(void)cpu, (void)data;
	counting = true;
	executed = 0;
	rounds++;
}

static void end(unsigned int cpu, void *data)
{
	(void)cpu, (void)data;
	if (counting)
		fprintf(each, "%llu\n", (unsigned long long)executed);
	fflush(each);
	counting = false;
}

static void ran(unsigned int cpu, void *data)
{
	struct block *block = data;

	(void)cpu;
	if (counting) {
		block->runs++;
		executed += block->instructions;
	}
}

/* The marks of mark.h: nopl with a displacement of a number and "bix". */
static int mark(const struct qemu_plugin_insn *insn)
{
	static const uint8_t start[] = { 0x0f, 0x1f, 0x84, 0x00 };
	uint8_t bytes[8];

	if (qemu_plugin_insn_size(insn) != sizeof(bytes) ||
	    qemu_plugin_insn_data(insn, bytes, sizeof(bytes)) != sizeof(bytes) ||
	    memcmp(bytes, start, sizeof(start)) || memcmp(bytes + 5, "bix", 3))
		return 0;
	return bytes[4];
}

static void translated(uint64_t id, struct qemu_plugin_tb *translation)
{
	struct block *block = calloc(1, sizeof(*block));
	size_t i;

	(void)id;
	if (!block)
		abort();
	block->address = qemu_plugin_tb_vaddr(translation);
	block->instructions = qemu_plugin_tb_n_insns(translation);
	block->next = blocks;
	blocks = block;
	qemu_plugin_register_vcpu_tb_exec_cb(translation, ran, 0, block);
	for (i = 0; i < block->instructions; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(translation, i);
		int number = mark(insn);

		if (number)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, number == 1 ? begin : end, 0, NULL);
	}
}

static void finish(uint64_t id, void *data)
{
	FILE *file = fopen(out, "w");
	struct block *block;

	(void)id, (void)data;
	if (!file) {
		perror(out);
		return;
	}
	fprintf(file, "%lu\n", rounds);
	for (block = blocks; block; block = block->next)
		if (block->runs)
			fprintf(file, "%llx %zu %llu\n", (unsigned long long)block->address, block->instructions,
				(unsigned long long)block->runs);
	fclose(file);
}

int qemu_plugin_install(uint64_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	char *path;

	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "the profiler wants out=FILE\n");
		return -1;
	}
	out = strdup(argv[0] + 4);
	if (asprintf(&path, "%s.rounds", out) < 0)
		return -1;
	each = fopen(path, "w");
	if (!each) {
		perror(path);
		return -1;
	}
	free(path);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finish, NULL);
	return 0;
}
