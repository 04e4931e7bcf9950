// SPDX-License-Identifier: GPL-2.0-only

#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <net/net_namespace.h>
#include <rdma/ib_cache.h>

#include "roce.h"

/* VLAN of packets without a tag, as ib_core has it. */
#define NO_VLAN 0xffff

/* Type of the header in front of a datagram. That of InfiniBand has the form of RoCE version 1. */
static enum rdma_network_type network_type(const struct ib_wc *wc, const struct ib_grh *grh)
{
	if (wc->wc_flags & IB_WC_WITH_NETWORK_HDR_TYPE)
		return wc->network_hdr_type;
	if (ib_get_rdma_header_version((const union rdma_network_hdr *)grh) == 4)
		return RDMA_NETWORK_IPV4;
	return grh->next_hdr == IPPROTO_UDP ? RDMA_NETWORK_IPV6 : RDMA_NETWORK_ROCE_V1;
}

/* The GID that sent a datagram with a GRH, which on RoCE v2 may be an IPv4 header. */
bool oxib_source_gid(const struct ib_wc *wc, const struct ib_grh *grh, union ib_gid *source)
{
	const union rdma_network_hdr *header = (const union rdma_network_hdr *)grh;
	union ib_gid destination;

	if (!(wc->wc_flags & IB_WC_GRH))
		return false;
	return !ib_get_gids_from_rdma_hdr(header, network_type(wc, grh), source, &destination);
}

static bool is_on_vlan(const struct ib_gid_attr *entry, u16 expected)
{
	u16 vlan = NO_VLAN;

	return !rdma_read_gid_l2_fields(entry, &vlan, NULL) && vlan == expected;
}

/* The entry with that GID on that VLAN: interfaces on several VLANs may have one GID, as link-local ones do. */
static const struct ib_gid_attr *find_on_vlan(struct ib_device *device, u32 port,
					      const union ib_gid *gid, enum ib_gid_type type,
					      u16 vlan)
{
	const struct ib_gid_attr *entry = rdma_find_gid_by_port(device, gid, type, port, NULL);
	int i;

	/* Mostly there is one. */
	if (IS_ERR(entry) || is_on_vlan(entry, vlan))
		return entry;
	rdma_put_gid_attr(entry);
	for (i = 0; i < device->port_data[port].immutable.gid_tbl_len; i++) {
		entry = rdma_get_gid_attr(device, port, i);
		if (IS_ERR(entry))
			continue;
		if (entry->gid_type == type && !memcmp(&entry->gid, gid, sizeof(*gid)) &&
		    is_on_vlan(entry, vlan))
			return entry;
		rdma_put_gid_attr(entry);
	}
	return ERR_PTR(-ENOENT);
}

/* The entry of the port's GID table that a datagram was sent to by RoCE, with a reference; or an error pointer. */
const struct ib_gid_attr *oxib_roce_destination(struct ib_device *device, u32 port,
						const struct ib_wc *wc, const struct ib_grh *grh)
{
	enum rdma_network_type type = network_type(wc, grh);
	u16 vlan = wc->wc_flags & IB_WC_WITH_VLAN ? wc->vlan_id : NO_VLAN;
	union ib_gid source, destination;
	int error;

	if (!(wc->wc_flags & IB_WC_GRH))
		return ERR_PTR(-EPROTOTYPE);
	error = ib_get_gids_from_rdma_hdr((const union rdma_network_hdr *)grh, type, &source,
					  &destination);
	if (error)
		return ERR_PTR(error);
	return find_on_vlan(device, port, &destination, ib_network_to_gid_type(type), vlan);
}

void oxib_gid_to_ip(struct sockaddr *out, const u8 *gid)
{
	rdma_gid2ip(out, (const union ib_gid *)gid);
}

int oxib_resolve_ip(struct sockaddr *from, const struct sockaddr *to, struct rdma_dev_addr *device,
		    unsigned long timeout_ms,
		    void (*done)(int status, struct sockaddr *from, struct rdma_dev_addr *device,
				 void *context),
		    void *context)
{
	device->net = &init_net;
	return rdma_resolve_ip(from, to, device, timeout_ms, done, true, context);
}

bool oxib_gid_has_vlan(const struct ib_gid_attr *attr)
{
	u16 vlan = NO_VLAN;

	return rdma_read_gid_l2_fields(attr, &vlan, NULL) || vlan != NO_VLAN;
}

int oxib_roce_mtu(const struct net_device *dev)
{
	return ib_mtu_enum_to_int(iboe_get_mtu(READ_ONCE(dev->mtu)));
}

struct in_device *oxib_in_dev_get(const struct net_device *dev)
{
	return __in_dev_get_rtnl(dev);
}

/* The cookie of a registered device's namespace: no other namespace ever has it. With the RTNL held. */
u64 oxib_net_cookie(const struct net_device *dev)
{
	return dev_net(dev)->net_cookie;
}

/* Whether the device's IPv4, if it has that, is in the group. With the RTNL held. */
bool oxib_ip_mc_is_member(const struct net_device *dev, u32 group)
{
	const struct in_device *in_dev = __in_dev_get_rtnl(dev);
	const struct ip_mc_list *member;

	if (!in_dev)
		return false;
	for (member = rtnl_dereference(in_dev->mc_list); member; member = rtnl_dereference(member->next_rcu))
		if (member->multiaddr == (__force __be32)group)
			return true;
	return false;
}

/* The device of that index in the namespace of that cookie; null if there is none any more. It stays while the RTNL is held. */
static struct net_device *find_device(u64 net_cookie, int index)
{
	struct net_device *found = NULL;
	struct net *net;

	rcu_read_lock();
	for_each_net_rcu(net) {
		if (net->net_cookie != net_cookie)
			continue;
		found = __dev_get_by_index(net, index);
		break;
	}
	rcu_read_unlock();
	return found;
}

/*
 * Ends a membership in the group that began by the IPv4 at address ipv4 of that device. A membership goes with its device, with
 * the move of that to another namespace, and with its IPv4: then nothing is done. With the RTNL held.
 */
void oxib_ip_mc_leave(u64 net_cookie, int index, size_t ipv4, u32 group)
{
	const struct net_device *dev = find_device(net_cookie, index);
	struct in_device *in_dev = dev ? __in_dev_get_rtnl(dev) : NULL;

	if (in_dev && (size_t)in_dev == ipv4)
		ip_mc_dec_group(in_dev, (__force __be32)group);
}
