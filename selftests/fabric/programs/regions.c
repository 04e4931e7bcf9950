// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of a program's regions: what is pinned is counted and given back, memory that is only read
 * need not be writable, a region may have 1 GiB, and nobody writes memory of a region that has gone.
 *
 * regions DEVICE
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "connection.h"
#include "report.h"

#define TRIES 20000
/* A region of 1 GiB, of which each part is the same memory. */
#define LARGE (1UL << 30)
#define PART (32UL << 20)
#define REPLACEMENTS 200

static const int all_rights =
	IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/* Two queue pairs that are connected with each other. */
static struct side a, b;

static void join(void)
{
	must(!to_reset(a.qp) && !to_reset(b.qp), "queue pairs are reset");
	must(!to_init(a.qp) && !to_init(b.qp), "queue pairs are initialised");
	must(!to_rts(a.qp, b.qp->qp_num) && !to_rts(b.qp, a.qp->qp_num), "queue pairs are connected");
}

static int next_status(struct side *side)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < TRIES; i++) {
		if (ibv_poll_cq(side->cq, 1, &wc) == 1)
			return wc.status;
		usleep(1000);
	}
	return -1;
}

static void post(enum ibv_wr_opcode opcode, void *local, uint32_t length, uint32_t lkey, void *remote, uint32_t rkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)local, .length = length, .lkey = lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode }, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)remote;
	wr.wr.rdma.rkey = rkey;
	must(!ibv_post_send(a.qp, &wr, &bad), "a request");
}

/* The memory that is pinned for this process, in KiB. */
static int pinned(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[200];
	int kib = -1;

	must(!!file, "the process' status");
	while (fgets(line, sizeof(line), file))
		sscanf(line, "VmPin: %d", &kib);
	fclose(file);
	return kib;
}

static void *map(void *place, size_t length, int flags, int file)
{
	void *memory = mmap(place, length, PROT_READ | PROT_WRITE, flags, file, 0);

	must(memory != MAP_FAILED, "memory");
	return memory;
}

static int is_all(const char *memory, size_t length, char byte)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (memory[i] != byte)
			return 0;
	return 1;
}

/* --- cases --- */

static void counted(void)
{
	char *memory = map(NULL, 40960, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int before = pinned();
	struct ibv_mr *first, *second;

	first = ibv_reg_mr(a.pd, memory + 100, 32768, all_rights);
	must(!!first, "a region");
	report_number(before + 36, pinned(), "a region's pages count as pinned, also those that it has in part");
	second = ibv_reg_mr(a.pd, memory, 4096, 0);
	must(!!second, "a second region");
	report_number(before + 40, pinned(), "those of a second region of the same memory, too");
	must(!ibv_rereg_mr(first, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 4096, 0), "it becomes smaller");
	report_number(before + 8, pinned(), "a region that becomes smaller gives pages back");
	report(ibv_rereg_mr(first, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 4096, 0) != 0, "memory that there is not");
	report_number(before + 8, pinned(), "a change that is refused counts nothing");
	must(!ibv_dereg_mr(first) && !ibv_dereg_mr(second), "they go");
	report_number(before, pinned(), "regions that go give back all");
	report(!ibv_reg_mr(a.pd, memory + 36864, 8192, all_rights | IBV_ACCESS_ON_DEMAND), "a region that is refused");
	report_number(before, pinned(), "counts nothing");
	munmap(memory, 40960);
}

/*
 * Other memory comes to where a region's own was. The region keeps its own when its rights change, which
 * takes no second pinning.
 */
static void changed_in_place(void)
{
	char *memory = map(NULL, SIDE_SIZE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int before = pinned();
	struct ibv_mr *mr;

	memset(memory, 'o', SIDE_SIZE);
	mr = ibv_reg_mr(b.pd, memory, SIDE_SIZE, IBV_ACCESS_LOCAL_WRITE);
	must(!!mr, "a region");
	map(memory, SIDE_SIZE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
	memset(memory, 'n', SIDE_SIZE);
	report_number(0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, all_rights), "a region's rights change");
	report_number(before + SIDE_SIZE / 1024, pinned(), "its memory counts as pinned once");
	join();
	post(IBV_WR_RDMA_READ, a.memory, SIDE_SIZE, a.mr->lkey, memory, mr->rkey);
	report_number(IBV_WC_SUCCESS, next_status(&a), "a peer may read it then");
	report(is_all(a.memory, SIDE_SIZE, 'o'), "the memory that was registered");
	must(!ibv_dereg_mr(mr), "it goes");
	munmap(memory, SIDE_SIZE);
}

static void constant(void)
{
	char *memory = map(NULL, SIDE_SIZE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct ibv_mr *mr;

	memset(memory, 'r', SIDE_SIZE);
	must(!mprotect(memory, SIDE_SIZE, PROT_READ), "it is not to be written any more");
	mr = ibv_reg_mr(b.pd, memory, SIDE_SIZE, IBV_ACCESS_REMOTE_READ);
	report(mr != NULL, "memory that may only be read can be in a region that is only read");
	if (!mr)
		return;
	join();
	memset(a.memory, 'a', SIDE_SIZE);
	post(IBV_WR_RDMA_READ, a.memory, SIDE_SIZE, a.mr->lkey, memory, mr->rkey);
	report_number(IBV_WC_SUCCESS, next_status(&a), "a peer reads it");
	report(is_all(a.memory, SIDE_SIZE, 'r'), "as it is");
	report(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, all_rights) != 0,
	       "the region is not made one that is written");
	must(!ibv_dereg_mr(mr), "it goes");
	report(!ibv_reg_mr(b.pd, memory, SIDE_SIZE, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT,
	       "memory that may only be read is in no region that is written");
	munmap(memory, SIDE_SIZE);
}

static char *large_memory(void)
{
	int file = memfd_create("part", 0);
	char *memory = map(NULL, LARGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	size_t place;

	must(file >= 0 && !ftruncate(file, PART), "the part");
	for (place = 0; place < LARGE; place += PART)
		map(memory + place, PART, MAP_SHARED | MAP_FIXED, file);
	close(file);
	return memory;
}

static void large(void)
{
	char *memory = large_memory();
	int before = pinned();
	struct ibv_mr *mr = ibv_reg_mr(b.pd, memory, LARGE, all_rights);

	report(mr != NULL, "a region may have 1 GiB");
	if (!mr)
		return;
	report_number(before + (LARGE >> 10), pinned(), "which counts as pinned");
	join();
	memset(a.memory, 'l', SIDE_SIZE);
	post(IBV_WR_RDMA_WRITE, a.memory, SIDE_SIZE, a.mr->lkey, memory + LARGE - SIDE_SIZE, mr->rkey);
	report_number(IBV_WC_SUCCESS, next_status(&a), "a peer writes its end");
	report(is_all(memory + PART - SIDE_SIZE, SIDE_SIZE, 'l') && !memory[PART - SIDE_SIZE - 1], "which is where it should be");
	memset(memory + PART - SIDE_SIZE, 0, SIDE_SIZE);
	/* The end of one page and the beginning of the next one, in the middle. */
	post(IBV_WR_RDMA_WRITE, a.memory, 8, a.mr->lkey, memory + LARGE / 2 + 4096 - 4, mr->rkey);
	report_number(IBV_WC_SUCCESS, next_status(&a), "a peer writes its middle");
	report(is_all(memory + 4096 - 4, 8, 'l') && !memory[4096 - 5] && !memory[4096 + 4], "which is where it should be");
	post(IBV_WR_RDMA_WRITE, a.memory, 8, a.mr->lkey, memory + LARGE - 4, mr->rkey);
	report_number(IBV_WC_REM_ACCESS_ERR, next_status(&a), "nobody writes beyond its end");
	must(!ibv_dereg_mr(mr), "it goes");
	report_number(before, pinned(), "and gives back all");
	munmap(memory, LARGE);
}

/*
 * A region goes while a peer writes it, and other memory comes to where its own was: what is written arrives
 * in the old memory or not at all.
 */
static void replaced(void)
{
	int i, changed = 0, other = 0, refused = 0, before = pinned();

	memset(a.memory, 'w', SIDE_SIZE);
	for (i = 0; i < REPLACEMENTS; i++) {
		char *memory = map(NULL, SIDE_SIZE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		struct ibv_mr *mr = ibv_reg_mr(b.pd, memory, SIDE_SIZE, all_rights);
		int status;

		must(!!mr, "a region");
		join();
		post(IBV_WR_RDMA_WRITE, a.memory, SIDE_SIZE, a.mr->lkey, memory, mr->rkey);
		post(IBV_WR_RDMA_WRITE, a.memory, SIDE_SIZE, a.mr->lkey, memory, mr->rkey);
		must(!ibv_dereg_mr(mr), "it goes");
		map(memory, SIDE_SIZE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
		memset(memory, 'n', SIDE_SIZE);
		status = next_status(&a);
		other += status != IBV_WC_SUCCESS && status != IBV_WC_REM_ACCESS_ERR;
		refused += status == IBV_WC_REM_ACCESS_ERR || next_status(&a) != IBV_WC_SUCCESS;
		changed += !is_all(memory, SIDE_SIZE, 'n');
		munmap(memory, SIDE_SIZE);
	}
	printf("# of %d pairs of writes %d were not both good\n", REPLACEMENTS, refused);
	report_number(0, other, "writes to a region that goes succeed or are refused");
	report_number(0, changed, "and change no memory that comes to its place");
	report_number(before, pinned(), "nothing stays pinned");
}

int main(int argc, char **argv)
{
	open_device(argc > 1 ? argv[1] : "");
	make_side(&a, all_rights);
	make_side(&b, all_rights);
	counted();
	changed_in_place();
	constant();
	large();
	replaced();
	/* The objects are the kernel's to free. */
	puts("end");
	return 0;
}
