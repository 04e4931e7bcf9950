/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's version, and its parameters as they were given. */

#ifndef OXIB_PARAMS_H
#define OXIB_PARAMS_H

#include <linux/types.h>

#define OXIB_VERSION "0.1.0"

extern unsigned int oxib_send_queue_size;
extern unsigned int oxib_recv_queue_size;
extern unsigned int oxib_tx_queues;
extern unsigned int oxib_max_connections;
extern unsigned int oxib_connection_idle;
extern char *oxib_devices;
extern bool oxib_ipoib;
extern unsigned int oxib_half_open;
extern char *oxib_acm;
extern bool oxib_acm_learn;
extern char *oxib_acm_programs;
extern unsigned int oxib_acm_entries;

#endif
