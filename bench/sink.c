// SPDX-License-Identifier: GPL-2.0-only

#include <linux/net.h>
#include <net/sock.h>
#include <net/udp_tunnel.h>

#include "bench.h"

/* The end of the stack: the socket is found, and the packet goes no further. */
static int swallow(struct sock *sk, struct sk_buff *skb)
{
	struct bench_sink *sink = sk->sk_user_data;

	sink->received++;
	consume_skb(skb);
	return 0;
}

int bench_sink_open(struct bench_sink *sink)
{
	struct udp_port_cfg port = {
		.family = AF_INET,
		.local_udp_port = htons(BENCH_PORT),
	};
	struct udp_tunnel_sock_cfg tunnel = {
		.sk_user_data = sink,
		.encap_type = 1,
		.encap_rcv = swallow,
	};
	int error;

	error = udp_sock_create(bench_net(), &port, &sink->socket);
	if (error)
		return error;
	setup_udp_tunnel_sock(bench_net(), sink->socket->sk, &tunnel);
	return 0;
}

void bench_sink_close(struct bench_sink *sink)
{
	udp_tunnel_sock_release(sink->socket->sk);
}
