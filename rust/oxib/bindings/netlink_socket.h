/* SPDX-License-Identifier: GPL-2.0-only */
/* Sockets of the kernel's own that hear what a netlink family tells a group. */

#ifndef OXIB_NETLINK_SOCKET_H
#define OXIB_NETLINK_SOCKET_H

#include <linux/types.h>

struct sock;
struct socket;

/*
 * Opens a socket in the first network namespace, with a receive buffer of so many bytes. ready is called with the socket when a
 * message has come, in any context, interrupts off perhaps; sk_user_data is listener then. Programs can send to the group, and
 * not to the socket's own port. Sleeps.
 */
int oxib_netlink_listen(int family, unsigned int group, int bytes, void (*ready)(struct sock *sk), void *listener,
			struct socket **socket);

/* The listener of a socket that ready is called with. */
void *oxib_netlink_listener(const struct sock *sk);

/*
 * Takes it off the group: what the group was told before can still be received. Waits until nobody tells the group anything.
 * Sleeps.
 */
void oxib_netlink_leave(struct socket *socket, unsigned int group);

/* ready is called no more, and does not run, when this returns. Sleeps. */
void oxib_netlink_close(struct socket *socket);

/*
 * Takes the next message, as much of it as there is room for: its length, or a negative error, -EAGAIN if there is none. sender
 * is 0 for a message of the kernel's.
 */
int oxib_netlink_receive(struct socket *socket, void *buffer, size_t room, u32 *sender);

/* Whether no message waits to be taken. Any context. */
bool oxib_netlink_has_taken_all(const struct socket *socket);

/* Sends a message to the kernel, which has dealt with it when this returns. Sleeps. */
int oxib_netlink_send(struct socket *socket, const void *message, size_t length);

#endif
