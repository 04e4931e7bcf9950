/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's parameters as they were given. */

#ifndef OXIB_PARAMS_H
#define OXIB_PARAMS_H

extern unsigned int oxib_send_queue_size;
extern unsigned int oxib_recv_queue_size;
extern unsigned int oxib_tx_queues;
extern char *oxib_devices;

#endif
