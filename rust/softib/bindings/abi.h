/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What softib.ko and its library for programs (rust/libsoftib/) have agreed on, besides the
 * commands that all RDMA devices have. The library's tests compare its own declarations.
 */

#ifndef SOFTIB_ABI_H
#define SOFTIB_ABI_H

#include <rdma/ib_user_ioctl_cmds.h>

/* The kernel shows it as `abi_version`, and libibverbs compares. */
#define SOFTIB_ABI_VERSION 2

/*
 * The identifier by which libibverbs gives softib's devices to their library: "soft". The kernel has no
 * number for this driver; its own are small (enum rdma_driver_id).
 */
#define SOFTIB_DRIVER_ID 0x736f6674

/* Polls a completion queue, beside the methods that the kernel has for one. */
enum softib_cq_methods {
	SOFTIB_METHOD_CQ_POLL = 1U << UVERBS_ID_NS_SHIFT,
};

/* Completions that one command returns at most: a caller that gets as many asks again. */
#define SOFTIB_POLLED 16

/* COMPLETIONS has room for some `struct ib_uverbs_wc`; COUNT is a 32-bit number of those written. */
enum softib_cq_poll_attributes {
	SOFTIB_ATTR_CQ_POLL_HANDLE = 1U << UVERBS_ID_NS_SHIFT,
	SOFTIB_ATTR_CQ_POLL_COMPLETIONS,
	SOFTIB_ATTR_CQ_POLL_COUNT,
};

/* Flags of a completion, by the kernel's numbers for them (enum ib_wc_flags). */
enum softib_wc_flags {
	SOFTIB_WC_GRH = 1U << 0,
	SOFTIB_WC_WITH_IMM = 1U << 1,
	SOFTIB_WC_WITH_INVALIDATE = 1U << 2,
	SOFTIB_WC_IP_CSUM_OK = 1U << 3,
};

#endif
