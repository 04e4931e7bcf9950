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

int serve_begin(struct ib_device *device);
/* Waits until all connections are over. */
void serve_end(void);

/*
 * Opens and closes `cycles` connections from address `from` to address `to`, `parallel` at a time. The peer's connection manager is
 * asked at queue pair `manager`.
 */
int call(struct ib_device *device, __be32 from, __be32 to, u32 manager, unsigned int parallel, unsigned int cycles);

#endif
