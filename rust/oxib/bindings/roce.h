/* SPDX-License-Identifier: GPL-2.0-only */
/* The addresses of datagrams, and the Ethernet addresses behind those of RoCE. */
#ifndef OXIB_BINDINGS_ROCE_H
#define OXIB_BINDINGS_ROCE_H

#include <linux/netdevice.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_verbs.h>

struct in_device;

bool oxib_source_gid(const struct ib_wc *wc, const struct ib_grh *grh, union ib_gid *source);
const struct ib_gid_attr *oxib_roce_destination(struct ib_device *device, u32 port,
						const struct ib_wc *wc, const struct ib_grh *grh);
void oxib_gid_to_ip(struct sockaddr *out, const u8 *gid);
int oxib_resolve_ip(struct sockaddr *from, const struct sockaddr *to, struct rdma_dev_addr *device,
		    unsigned long timeout_ms,
		    void (*done)(int status, struct sockaddr *from, struct rdma_dev_addr *device,
				 void *context),
		    void *context);
bool oxib_gid_has_vlan(const struct ib_gid_attr *attr);
int oxib_roce_mtu(const struct net_device *dev);
struct in_device *oxib_in_dev_get(const struct net_device *dev);
u64 oxib_net_cookie(const struct net_device *dev);
bool oxib_ip_mc_is_member(const struct net_device *dev, u32 group);
void oxib_ip_mc_leave(u64 net_cookie, int index, size_t ipv4, u32 group);

#endif
