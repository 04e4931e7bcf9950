/* SPDX-License-Identifier: GPL-2.0-only */
/* The counters of a port's communication manager, in the places in sysfs where users know them. */

#ifndef OXIB_CM_COUNTERS_H
#define OXIB_CM_COUNTERS_H

#include <linux/types.h>

struct ib_device;

/* The directories cm_tx_msgs, cm_tx_retries, cm_rx_msgs, cm_rx_duplicates, and ours, cm_rx_drops. */
enum {
	OXIB_CM_TX_MSGS,
	OXIB_CM_TX_RETRIES,
	OXIB_CM_RX_MSGS,
	OXIB_CM_RX_DUPLICATES,
	OXIB_CM_RX_DROPS,
	OXIB_CM_GROUPS,
};

/* The files in each, in the order of the messages' attribute ids. */
enum {
	OXIB_CM_MESSAGES = 11,
};

/* The files in cm_rx_drops: causes. */
enum {
	OXIB_CM_DROP_MALFORMED,
	OXIB_CM_DROP_NO_MEMORY,
	OXIB_CM_DROP_UNKNOWN_ID,
	OXIB_CM_DROP_UNEXPECTED,
	OXIB_CM_DROP_WRONG_PEER,
	OXIB_CM_DROP_WRONG_QPN,
	OXIB_CM_DROP_NO_LISTENER,
	OXIB_CM_DROP_HALF_OPEN,
	OXIB_CM_DROP_STALE,
	OXIB_CM_DROP_INVALID,
	OXIB_CM_DROP_BUSY,
	OXIB_CM_DROP_UNRESOLVED,
	OXIB_CM_DROPS,
};

/* The most files of a directory. */
enum {
	OXIB_CM_FILES = (int)OXIB_CM_DROPS > (int)OXIB_CM_MESSAGES ? OXIB_CM_DROPS : OXIB_CM_MESSAGES,
};

struct oxib_cm_counts {
	unsigned long of[OXIB_CM_GROUPS][OXIB_CM_FILES];
};

struct oxib_cm_counts __percpu *oxib_cm_counters_alloc(void);
void oxib_cm_counters_free(struct oxib_cm_counts __percpu *counts);
int oxib_cm_counters_show(struct ib_device *device, u32 port,
			  struct oxib_cm_counts __percpu *counts);
void oxib_cm_counters_hide(struct ib_device *device, u32 port);
void oxib_cm_counters_add(struct oxib_cm_counts __percpu *counts, u32 group, u32 file, u32 n);
u64 oxib_cm_counters_sum(struct oxib_cm_counts __percpu *counts, u32 group, u32 file);

#endif
