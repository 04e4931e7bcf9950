/* SPDX-License-Identifier: GPL-2.0-only */
/* The addresses of datagrams, and the Ethernet addresses behind those of RoCE. */
#ifndef OXIB_BINDINGS_ROCE_H
#define OXIB_BINDINGS_ROCE_H

#include <rdma/ib_addr.h>
#include <rdma/ib_verbs.h>

bool oxib_source_gid(const struct ib_wc *wc, const struct ib_grh *grh, union ib_gid *source);
const struct ib_gid_attr *oxib_roce_destination(struct ib_device *device, u32 port,
						const struct ib_wc *wc, const struct ib_grh *grh);
void oxib_gid_to_ip(struct sockaddr *out, const u8 *gid);
int oxib_resolve_ip(struct sockaddr *from, const struct sockaddr *to, struct rdma_dev_addr *device,
		    unsigned long timeout_ms,
		    void (*done)(int status, struct sockaddr *from, struct rdma_dev_addr *device,
				 void *context),
		    void *context);

#endif
