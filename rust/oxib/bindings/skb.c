// SPDX-License-Identifier: GPL-2.0-only

#include <linux/icmpv6.h>
#include <linux/if_packet.h>
#include <linux/kmemleak.h>
#include <linux/netdevice.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/icmp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/page_pool/helpers.h>

#include "ipv6.h"
#include "skb.h"

struct sk_buff *oxib_skb_copy(const struct sk_buff *skb)
{
	return skb_copy(skb, GFP_ATOMIC);
}

int oxib_skb_linearize(struct sk_buff *skb)
{
	return skb_linearize(skb);
}

/* Whether others may write to its pieces: pages of a file, or of a program that sends without a copy. */
bool oxib_skb_may_change(const struct sk_buff *skb)
{
	return skb_has_shared_frag(skb);
}

/* What dev_consume_skb_any() does, with fewer calls on the way; netpoll sends with interrupts off. */
void oxib_consume_skb(struct sk_buff *skb)
{
	if (in_hardirq() || irqs_disabled())
		dev_consume_skb_any(skb);
	else
		consume_skb(skb);
}

/*
 * Lets go of all but the packet's memory, which stays with a device for good: sockets, routes and network namespaces
 * would wait for it.
 */
void oxib_skb_leave(struct sk_buff *skb)
{
	struct sk_buff_fclones *clones = container_of(skb, struct sk_buff_fclones, skb2);

	skb_orphan(skb);
	skb_scrub_packet(skb, true);
	kmemleak_not_leak(skb->fclone == SKB_FCLONE_CLONE ? &clones->skb1 : skb);
}

void oxib_skb_set_pkt_type(struct sk_buff *skb, u8 type)
{
	skb->pkt_type = type;
}

void oxib_skb_mark_for_recycle(struct sk_buff *skb)
{
	skb_mark_for_recycle(skb);
}

/* Whether it is one piece of memory, to be sent as it is. */
bool oxib_skb_is_plain(const struct sk_buff *skb)
{
	return !skb_is_nonlinear(skb) && skb->ip_summed != CHECKSUM_PARTIAL && !skb_is_gso(skb);
}

/*
 * Whether a checksum is one that devices compute, of TCP or UDP in IPv4: of what is in a tunnel it is further inside,
 * and that of the tunnel's own UDP is there already.
 */
static bool is_plain_checksum(const struct sk_buff *skb)
{
	u8 protocol;

	if (skb->protocol != htons(ETH_P_IP) || !skb_transport_header_was_set(skb) ||
	    skb_checksum_start_offset(skb) != skb_transport_offset(skb) ||
	    skb_transport_header(skb) != skb_network_header(skb) + ip_hdrlen(skb))
		return false;
	protocol = ip_hdr(skb)->protocol;
	return (protocol == IPPROTO_TCP && skb->csum_offset == offsetof(struct tcphdr, check)) ||
	       (protocol == IPPROTO_UDP && skb->csum_offset == offsetof(struct udphdr, check));
}

void oxib_skb_wishes(const struct sk_buff *skb, struct oxib_wishes *wishes)
{
	wishes->checksum = skb->ip_summed == CHECKSUM_PARTIAL;
	wishes->plain = wishes->checksum && is_plain_checksum(skb);
	wishes->mss = skb_shinfo(skb)->gso_size;
	wishes->headers = wishes->mss ? skb_tcp_all_headers(skb) : 0;
}

int oxib_skb_checksum_help(struct sk_buff *skb)
{
	return skb_checksum_help(skb);
}

/* The sum as 16-bit numbers in network order. */
u16 oxib_skb_sum(const struct sk_buff *skb, u32 offset, u32 length)
{
	return ntohs((__force __be16)~csum_fold(skb_checksum(skb, offset, length, 0)));
}

/* The device has found the checksum right. */
void oxib_skb_is_checked(struct sk_buff *skb)
{
	if (skb->dev->features & NETIF_F_RXCSUM)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
}

u32 oxib_skb_frags(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->nr_frags;
}

void *oxib_skb_frag(const struct sk_buff *skb, u32 index, u32 *length)
{
	const skb_frag_t *frag = &skb_shinfo(skb)->frags[index];

	*length = skb_frag_size(frag);
	return skb_frag_address_safe(frag);
}

void oxib_skb_add_page(struct sk_buff *skb, struct page *page, u32 length, u32 size)
{
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 0, length, size);
}

void oxib_skb_update_pmtu(struct sk_buff *skb, u32 mtu)
{
	skb_dst_update_pmtu(skb, mtu);
}

/* Says to where the packet came from that it is longer than mtu. Process context; the packet stays the caller's. */
void oxib_skb_too_big(struct sk_buff *skb, u32 mtu)
{
	local_bh_disable();
	if (skb->protocol == htons(ETH_P_IP)) {
		memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
		icmp_send(skb, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, htonl(mtu));
	} else if (skb->protocol == htons(ETH_P_IPV6) && oxib_has_ipv6()) {
		memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
		icmpv6_send(skb, ICMPV6_PKT_TOOBIG, 0, mtu);
	}
	local_bh_enable();
}
