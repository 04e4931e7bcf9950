// SPDX-License-Identifier: GPL-2.0-only

#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/netns/generic.h>

#include "ipv6.h"
#include "link.h"

const struct nla_policy oxib_link_policy[IFLA_IPOIB_MAX + 1] = {
	[IFLA_IPOIB_PKEY]	= { .type = NLA_U16 },
	[IFLA_IPOIB_MODE]	= { .type = NLA_U16 },
	[IFLA_IPOIB_UMCAST]	= { .type = NLA_U16 },
};

/* Requests */

bool oxib_newlink_names_link(struct rtnl_newlink_params *params)
{
	return params->tb[IFLA_LINK];
}

struct net_device *oxib_newlink_link(struct rtnl_newlink_params *params)
{
	return __dev_get_by_index(rtnl_newlink_link_net(params),
				  nla_get_u32(params->tb[IFLA_LINK]));
}

bool oxib_attribute(struct nlattr **attributes, u32 number, u16 *value)
{
	if (!attributes || !attributes[number])
		return false;
	*value = nla_get_u16(attributes[number]);
	return true;
}

int oxib_put_attribute(struct sk_buff *skb, u32 number, u16 value)
{
	return nla_put_u16(skb, number, value);
}

void oxib_extended_ack(struct netlink_ext_ack *extack, const char *text, int length)
{
	NL_SET_ERR_MSG_FMT(extack, "%.*s", length, text);
}

/* sysfs */

int oxib_restart_syscall(void)
{
	return restart_syscall();
}

/* Net devices */

struct net_device *oxib_device_to_netdev(struct device *device)
{
	return to_net_dev(device);
}

struct net_device *oxib_kobject_to_netdev(struct kobject *object)
{
	return to_net_dev(kobj_to_dev(object));
}

/* Whether this process may; in a namespace of its own the files of a device belong to that one's root. */
bool oxib_may_configure(const struct net_device *dev, bool port)
{
	return port ? capable(CAP_NET_ADMIN) : ns_capable(dev_net(dev)->user_ns, CAP_NET_ADMIN);
}

void *oxib_net_generic(const struct net *net, u32 id)
{
	return net_generic(net, id);
}

struct net *oxib_netdev_net(const struct net_device *dev)
{
	return dev_net(dev);
}

/* NULL of a device that is not registered, or is leaving: its namespace may go before the device does. RCU is held. */
struct net *oxib_netdev_net_rcu(const struct net_device *dev)
{
	return READ_ONCE(dev->reg_state) == NETREG_REGISTERED ? dev_net_rcu(dev) : NULL;
}

int oxib_netdev_ifindex(const struct net_device *dev)
{
	return READ_ONCE(dev->ifindex);
}

void oxib_netdev_hold(struct net_device *dev)
{
	dev_hold(dev);
}

struct in_device *oxib_in_dev_get_rcu(const struct net_device *dev)
{
	return __in_dev_get_rcu(dev);
}

/* RCU is held. */
bool oxib_has_ipv6_address(struct net_device *dev, const struct in6_addr *address)
{
	struct net *net = oxib_netdev_net_rcu(dev);

	return net && oxib_has_ipv6() && ipv6_chk_addr(net, address, dev, 1);
}

bool oxib_is_l3_master(const struct net_device *dev)
{
	return netif_is_l3_master(dev);
}
