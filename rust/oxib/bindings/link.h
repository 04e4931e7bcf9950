/* SPDX-License-Identifier: GPL-2.0-only */
/* Inline functions and macros of the kernel that configuration by netlink, sysfs and ethtool wants. */

#ifndef OXIB_LINK_H
#define OXIB_LINK_H

#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/netdevice.h>
#include <net/netlink.h>
#include <net/rtnetlink.h>

/* What a request may say of a link of kind "ipoib". */
extern const struct nla_policy oxib_link_policy[IFLA_IPOIB_MAX + 1];

enum {
	OXIB_LINK_INFO_SIZE = 3 * NLA_ALIGN(NLA_HDRLEN + sizeof(u16)),
	OXIB_LINK_ATTRIBUTES = IFLA_IPOIB_MAX,
	OXIB_COALESCE = ETHTOOL_COALESCE_RX_USECS | ETHTOOL_COALESCE_RX_MAX_FRAMES,
	OXIB_SOCKADDR_DATA = offsetof(struct sockaddr, sa_data),
};

/* Requests */
bool oxib_newlink_names_link(struct rtnl_newlink_params *params);
struct net_device *oxib_newlink_link(struct rtnl_newlink_params *params);
bool oxib_attribute(struct nlattr **attributes, u32 number, u16 *value);
int oxib_put_attribute(struct sk_buff *skb, u32 number, u16 value);
void oxib_extended_ack(struct netlink_ext_ack *extack, const char *text, int length);

/* sysfs */
int oxib_restart_syscall(void);

/* Net devices */
struct net_device *oxib_device_to_netdev(struct device *device);
struct net_device *oxib_kobject_to_netdev(struct kobject *object);
bool oxib_may_configure(const struct net_device *dev, bool port);
void *oxib_net_generic(const struct net *net, u32 id);
struct net *oxib_netdev_net(const struct net_device *dev);
struct net *oxib_netdev_net_rcu(const struct net_device *dev);
int oxib_netdev_ifindex(const struct net_device *dev);
void oxib_netdev_hold(struct net_device *dev);
struct in_device *oxib_in_dev_get_rcu(const struct net_device *dev);
bool oxib_has_ipv6_address(struct net_device *dev, const struct in6_addr *address);
bool oxib_is_l3_master(const struct net_device *dev);

#endif
