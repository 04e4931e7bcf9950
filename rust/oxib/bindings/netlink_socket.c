// SPDX-License-Identifier: GPL-2.0-only

#include <linux/net.h>
#include <linux/netlink.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "netlink_socket.h"

/*
 * The socket is connected to the kernel, which is port 0, as any new socket's peer: programs cannot send to its own port. Such a
 * message would hold the struct sock alone, so the end of the socket would not wait for a program between its look-up of the
 * socket and sk_data_ready. It does wait for messages to the group, which are sent with netlink's table locked. kernel_connect()
 * would bind the socket first.
 */
int oxib_netlink_listen(int family, unsigned int group, int bytes, void (*ready)(struct sock *sk), void *listener,
			struct socket **socket)
{
	struct sockaddr_nl address = {
		.nl_family = AF_NETLINK,
		.nl_groups = 1U << (group - 1),
	};
	int error = sock_create_kern(&init_net, AF_NETLINK, SOCK_RAW, family, socket);

	if (error)
		return error;
	/* Nothing comes before it is bound. */
	(*socket)->sk->sk_state = NETLINK_CONNECTED;
	(*socket)->sk->sk_user_data = listener;
	(*socket)->sk->sk_data_ready = ready;
	sock_set_rcvbuf((*socket)->sk, bytes);
	error = kernel_bind(*socket, (struct sockaddr_unsized *)&address, sizeof(address));
	if (error)
		sock_release(*socket);
	return error;
}

void *oxib_netlink_listener(const struct sock *sk)
{
	return sk->sk_user_data;
}

void oxib_netlink_leave(struct socket *socket, unsigned int group)
{
	int number = group;

	/* It fails without CAP_NET_ADMIN: then the group is left when the socket is closed. */
	READ_ONCE(socket->ops)->setsockopt(socket, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, KERNEL_SOCKPTR(&number),
					   sizeof(number));
}

void oxib_netlink_close(struct socket *socket)
{
	/*
	 * Takes it off the group, for which it waits until nobody tells the group anything. To its own port the kernel alone
	 * sends, in oxib_netlink_send().
	 */
	sock_release(socket);
}

int oxib_netlink_receive(struct socket *socket, void *buffer, size_t room, u32 *sender)
{
	struct sockaddr_nl from = {};
	struct msghdr message = {
		.msg_name = &from,
	};
	struct kvec piece = {
		.iov_base = buffer,
		.iov_len = room,
	};
	int length = kernel_recvmsg(socket, &message, &piece, 1, room, MSG_DONTWAIT);

	*sender = from.nl_pid;
	return length;
}

bool oxib_netlink_has_taken_all(const struct socket *socket)
{
	return skb_queue_empty_lockless(&socket->sk->sk_receive_queue);
}

int oxib_netlink_send(struct socket *socket, const void *message, size_t length)
{
	/* Names the kernel: a message without a destination needs a sender with a file (netlink_ns_capable()). */
	struct sockaddr_nl to = {
		.nl_family = AF_NETLINK,
	};
	struct msghdr header = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
	};
	struct kvec piece = {
		.iov_base = (void *)message,
		.iov_len = length,
	};

	return kernel_sendmsg(socket, &header, &piece, 1, length);
}
