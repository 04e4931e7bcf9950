/* SPDX-License-Identifier: GPL-2.0-only */
/* Inline functions and macros of the kernel for page pools and memory, as functions that Rust can call. */

#ifndef OXIB_PAGES_H
#define OXIB_PAGES_H

#include <linux/types.h>
#include <net/page_pool/types.h>

enum {
	OXIB_PP_DMA = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
};

/* Page pools */
u32 oxib_page_pool_pages(struct page_pool *pool);
void oxib_page_pool_get(struct page_pool *pool);
void oxib_not_leak(const void *memory);
void *oxib_page_address(struct page *page);
u64 oxib_page_pool_dma_addr(struct page *page);
void oxib_page_pool_sync_for_cpu(struct page_pool *pool, struct page *page, u32 offset, u32 length);
void oxib_page_pool_sync_for_device(struct page_pool *pool, struct page *page, u32 offset,
				    u32 length);
void oxib_page_pool_put(struct page_pool *pool, struct page *page);

/* Memory without I/O */
unsigned int oxib_memalloc_noio_save(void);
void oxib_memalloc_noio_restore(unsigned int flags);

#endif
