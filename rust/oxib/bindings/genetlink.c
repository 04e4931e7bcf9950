// SPDX-License-Identifier: GPL-2.0-only

#include "genetlink.h"

/* Families */

/* The fields that are narrower than a byte. */
void oxib_genl_prepare(struct genl_family *family, bool parallel, bool in_all_namespaces,
		       u32 operations, u32 groups)
{
	family->parallel_ops = parallel;
	family->netnsok = in_all_namespaces;
	family->n_split_ops = operations;
	family->n_mcgrps = groups;
}

/* What a policy of zeros is filled with. */
void oxib_policy_exists(struct nla_policy *policy, u8 type)
{
	policy->type = type;
}

void oxib_policy_length(struct nla_policy *policy, u16 least, u16 most)
{
	policy->type = NLA_BINARY;
	policy->validation_type = NLA_VALIDATE_RANGE;
	policy->min = least;
	policy->max = most;
}

/* Requests */

struct net *oxib_genl_net(const struct genl_info *info)
{
	return genl_info_net(info);
}

const struct genl_info *oxib_genl_dump_info(struct netlink_callback *callback)
{
	return genl_info_dump(callback);
}

const void *oxib_genl_attributes(const struct nlmsghdr *header, u32 *length)
{
	*length = nlmsg_attrlen(header, GENL_HDRLEN);
	return nlmsg_attrdata(header, GENL_HDRLEN);
}

u8 oxib_genl_command(const struct genl_info *info)
{
	return info->genlhdr->cmd;
}

/* Whether the event is the end of a socket of generic netlink, and of which. */
bool oxib_genl_closed(unsigned long event, void *subject, struct net **net, u32 *number)
{
	const struct netlink_notify *notify = subject;

	if (event != NETLINK_URELEASE || notify->protocol != NETLINK_GENERIC)
		return false;
	*net = notify->net;
	*number = notify->portid;
	return true;
}

void oxib_extack_at(struct netlink_ext_ack *extack, const struct nlmsghdr *header, u32 offset)
{
	NL_SET_BAD_ATTR(extack, (const void *)nlmsg_attrdata(header, GENL_HDRLEN) + offset);
}

void oxib_extack_missing(struct netlink_ext_ack *extack, u16 number)
{
	NL_SET_ERR_ATTR_MISS(extack, NULL, number);
}

/* Messages */

struct sk_buff *oxib_genl_new(void)
{
	return genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
}

void oxib_nlmsg_free(struct sk_buff *skb)
{
	nlmsg_free(skb);
}

void *oxib_genl_put(struct sk_buff *skb, const struct genl_info *info, const struct genl_family *family,
		    u8 command, bool multi)
{
	return genlmsg_put(skb, info ? info->snd_portid : 0, info ? info->snd_seq : 0, family,
			   multi ? NLM_F_MULTI : 0, command);
}

void oxib_genl_end(struct sk_buff *skb, void *header)
{
	genlmsg_end(skb, header);
}

void oxib_genl_cancel(struct sk_buff *skb, void *header)
{
	genlmsg_cancel(skb, header);
}

int oxib_genl_reply(struct sk_buff *skb, const struct genl_info *info)
{
	return genlmsg_unicast(genl_info_net(info), skb, info->snd_portid);
}

void oxib_genl_check_consistent(struct netlink_callback *callback, void *header)
{
	genl_dump_check_consistent(callback, header);
}

bool oxib_genl_has_listeners(const struct genl_family *family, struct net *net, u32 group)
{
	return genl_has_listeners(family, net, group);
}

int oxib_genl_multicast(const struct genl_family *family, struct net *net, struct sk_buff *skb, u32 group)
{
	return genlmsg_multicast_netns(family, net, skb, 0, group, GFP_KERNEL);
}

void *oxib_nest_start(struct sk_buff *skb, u16 number)
{
	return nla_nest_start(skb, number);
}

void oxib_nest_end(struct sk_buff *skb, void *nest)
{
	nla_nest_end(skb, nest);
}
