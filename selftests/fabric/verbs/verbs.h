/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A test of an RDMA device's verbs. Each test has a pair of queue pairs of its own, one on each side; a sends, b
 * receives. What is expected is what the InfiniBand specification says (volume 1, chapters 9 to 11).
 */

#ifndef VERBS_TEST_H
#define VERBS_TEST_H

#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>

#define RING 64
#define PIECES 4
/* A side's memory: what it sends or lets others read, then what it receives or lets others write. */
#define HALF (64 * 1024)
#define MEMORY (2 * HALF)
#define OUTGOING 0
#define INCOMING HALF
#define GRH_BYTES 40
#define QKEY 0x1ee7
#define OTHER_QKEY 0x2ee7

/* How a test's pair is made, where that is not as usual: reliable, connected, everything allowed. */
struct setup {
	enum ib_qp_type type;
	bool shared_receive;
	/* The completion queues are on the last completion vector. */
	bool last_vector;
	/* A completion for each request, whatever it asks for. */
	bool signal_all;
	bool with_grh;
	/* b exists, but does not listen. */
	bool deaf;
	/* Both stay in the state RESET. */
	bool reset;
	/* Requests may hold as much data as the device takes. */
	bool longest_inline;
	/* Remote access that b's queue pair, or its memory, does not allow. */
	int forbidden_by_queue_pair, forbidden_by_memory;
	/* With these, give up soon; 0 to 6. */
	bool few_retries, few_rnr_retries;
	/* The first packet sequence number. */
	u32 psn;
	u32 reads_at_once;
	/* a can send long TCP segments as several; without a device that can, the test is left out. */
	bool segments;
	/* The P_Keys of the two do not match, or only one of both tables has such a pair and the test is left out. */
	bool strange_pkey;
	/* The P_Key index of a is one of an unused entry of its table; without such an entry the test is left out. */
	bool unused_pkey;
};

/* One end. */
struct side {
	const char *name;
	struct ib_device *device;
	struct ib_port_attr port;
	union ib_gid gid;
	int gid_index;
	/* Where packets to the other side go first, if that is not the other side: a router. */
	u16 router_lid;
	u16 pkey_index;
	/* How many bytes of a request may be inline. */
	u32 inline_bytes;
	struct ib_pd *pd;
	struct ib_cq *send_cq, *recv_cq;
	struct ib_srq *srq;
	struct ib_qp *qp;
	struct ib_ah *ah;
	u8 *memory;
	struct scatterlist list;
	bool mapped;
	struct ib_mr *mr;
	/* A bit for each ib_event_type that came; how often each completion handler was called. */
	unsigned long events;
	atomic_t send_notices, recv_notices;
	/* The processor of the last call. */
	int processor;
	u32 posted;
};

struct pair {
	struct side a, b;
	const struct setup *setup;
	enum ib_mtu mtu;
	/* How many routers are between the two. */
	u8 routers;
	/* What is wrong: the first that was found. */
	char failure[160];
	bool left_out;
};

struct test {
	const char *name;
	struct setup setup;
	void (*run)(struct pair *pair);
};

struct group {
	const char *name;
	const struct test *tests;
	unsigned int count;
};

#define GROUP(group_name, table) \
	const struct group group_name##_group = { #group_name, table, ARRAY_SIZE(table) }

extern const struct group reliable_group, unreliable_group, datagram_group, memory_group, queue_group, refused_group,
	failing_group, limits_group, offload_group;

/* control.c */
__printf(2, 3) void fail(struct pair *pair, const char *format, ...);
bool failed(const struct pair *pair);

/* pair.c: each returns whether it worked; fail() has been called if not. */
bool pair_open(struct pair *pair);
void pair_close(struct pair *pair);
bool is_infiniband(const struct side *side);
int make_handle(struct side *from, const struct side *to, bool with_grh);
int to_init(struct side *side, const struct pair *pair);
int to_ready_to_receive(struct side *side, u32 peer_qpn, const struct side *peer, const struct pair *pair);
int ready(struct side *side, u32 peer_qpn, const struct side *peer, const struct pair *pair);
int drop_to_error(struct side *side);
enum ib_qp_state state_of(struct side *side);
/* No packet with a wrong P_Key has come to a port since the pair was opened. */
bool no_bad_pkey(struct pair *pair, struct side *side);

static inline u32 mtu_bytes(const struct pair *pair)
{
	return ib_mtu_enum_to_int(pair->mtu);
}

/* request.c */
struct request {
	enum ib_wr_opcode opcode;
	int flags;
	u32 offset, length;
	/* Two pieces: the first has this many bytes. */
	u32 first_piece;
	/* Instead of the right one, if not 0. */
	u32 lkey, rkey, qkey, qpn;
	__be32 immediate;
	u32 invalidate;
	/* In the other side's memory. */
	u64 remote_offset;
	u64 add, compare, swap;
	struct ib_mr *mr;
	int access;
};

union work {
	struct ib_send_wr wr;
	struct ib_ud_wr ud;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
	struct ib_reg_wr reg;
};

struct posting {
	union work work;
	struct ib_sge pieces[PIECES];
};

void describe(struct pair *pair, struct side *side, const struct request *request, struct posting *posting);
int try_post(struct pair *pair, struct side *side, const struct request *request);
bool post(struct pair *pair, struct side *side, const struct request *request);
bool post_all(struct pair *pair, struct side *side, const struct request *requests, unsigned int count);
int try_receive(struct side *side, u32 offset, u32 length, u32 lkey);
bool post_receive(struct pair *pair, struct side *side, u32 offset, u32 length);
bool register_memory(struct pair *pair, struct side *side, struct ib_mr *mr, int access);
u64 address_of(const struct side *side, u32 offset);
void fill(struct side *side, u32 offset, u32 length, u8 seed);
bool has(struct pair *pair, struct side *side, u32 offset, u32 length, u8 seed);

/* wait.c */
extern unsigned int patience;
bool sent(struct pair *pair, struct side *side, enum ib_wc_status status);
bool sent_well(struct pair *pair, struct side *side, unsigned int count);
bool completed(struct pair *pair, struct ib_cq *cq, const char *what, struct ib_wc *wc);
bool received_with(struct pair *pair, struct side *side, enum ib_wc_status status);
bool received(struct pair *pair, struct side *side, u32 length, struct ib_wc *wc);
bool nothing_completed(struct pair *pair, struct ib_cq *cq, const char *what);
/* So many notices came of what side b received, since it was made. */
bool notified(struct pair *pair, const char *what, int number);
bool happened(struct pair *pair, struct side *side, enum ib_event_type event);
bool reached(struct pair *pair, struct side *side, enum ib_qp_state state);
bool same(struct pair *pair, const char *what, u64 expected, u64 found);

#endif
