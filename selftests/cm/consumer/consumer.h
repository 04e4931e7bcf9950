/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CM_CONSUMER_H
#define CM_CONSUMER_H

#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>

#define PORT 1
/* Nobody else's: "oxib" and a number. */
#define SERVICE cpu_to_be64(0x6f78696200000001ULL)

/* A number of a queue pair that nobody has; those of one node differ. */
u32 next_qpn(void);

/* The way to a peer, and the queue pair of its connection manager. */
struct way {
	struct ib_device *device;
	const struct ib_gid_attr *source;
	struct sa_path_rec path;
	u32 manager;
};

int find_way(struct way *way, struct ib_device *device, __be32 from, __be32 to);
void lose_way(struct way *way);

/* Sends a REQ of `id` for a queue pair that nobody has. */
int ask(struct way *way, struct ib_cm_id *id);

int serve_begin(struct ib_device *device);
/* Waits until all connections are over. */
void serve_end(void);

/* Opens and closes `cycles` connections, `parallel` at a time. */
int call(struct way *way, unsigned int parallel, unsigned int cycles);

/* Opens so many connections at once, says how long that took, and closes them when all are up. */
int storm(struct way *way, unsigned int number);

int watch_begin(struct ib_device *device);

/* Ends all identifiers that are left. */
void watch_end(void);

#endif
