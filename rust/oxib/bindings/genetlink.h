/* SPDX-License-Identifier: GPL-2.0-only */
/* Generic netlink: inline functions and macros, as functions. */

#ifndef OXIB_GENETLINK_H
#define OXIB_GENETLINK_H

#include <linux/netlink.h>
#include <linux/notifier.h>
#include <net/genetlink.h>

enum {
	OXIB_GENL_DO = GENL_CMD_CAP_DO,
	OXIB_GENL_DUMP = GENL_CMD_CAP_DUMP,
	OXIB_GENL_ADMIN = GENL_UNS_ADMIN_PERM,
};

/* Families */
void oxib_genl_prepare(struct genl_family *family, bool parallel, bool in_all_namespaces,
		       u32 operations, u32 groups);
void oxib_policy_exists(struct nla_policy *policy, u8 type);
void oxib_policy_length(struct nla_policy *policy, u16 least, u16 most);

/* Requests */
struct net *oxib_genl_net(const struct genl_info *info);
const struct genl_info *oxib_genl_dump_info(struct netlink_callback *callback);
const void *oxib_genl_attributes(const struct nlmsghdr *header, u32 *length);
u8 oxib_genl_command(const struct genl_info *info);
bool oxib_genl_closed(unsigned long event, void *subject, struct net **net, u32 *number);
void oxib_extack_at(struct netlink_ext_ack *extack, const struct nlmsghdr *header, u32 offset);
void oxib_extack_missing(struct netlink_ext_ack *extack, u16 number);

/* Messages */
struct sk_buff *oxib_genl_new(void);
void oxib_nlmsg_free(struct sk_buff *skb);
void *oxib_genl_put(struct sk_buff *skb, const struct genl_info *info, const struct genl_family *family,
		    u8 command, bool multi);
void oxib_genl_end(struct sk_buff *skb, void *header);
void oxib_genl_cancel(struct sk_buff *skb, void *header);
int oxib_genl_reply(struct sk_buff *skb, const struct genl_info *info);
void oxib_genl_check_consistent(struct netlink_callback *callback, void *header);
bool oxib_genl_has_listeners(const struct genl_family *family, struct net *net, u32 group);
int oxib_genl_multicast(const struct genl_family *family, struct net *net, struct sk_buff *skb, u32 group);
void *oxib_nest_start(struct sk_buff *skb, u16 number);
void oxib_nest_end(struct sk_buff *skb, void *nest);

#endif
