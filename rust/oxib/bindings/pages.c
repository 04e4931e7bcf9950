// SPDX-License-Identifier: GPL-2.0-only

#include <linux/dma-mapping.h>
#include <linux/kmemleak.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <net/page_pool/helpers.h>

#include "pages.h"

/* Page pools */

u32 oxib_page_pool_pages(struct page_pool *pool)
{
	return READ_ONCE(pool->pages_state_hold_cnt) -
	       (u32)atomic_read(&pool->pages_state_release_cnt);
}

/* The pool stays for good, even if it is destroyed. */
void oxib_page_pool_get(struct page_pool *pool)
{
	page_pool_get(pool);
}

/* The memory stays with a device for good. */
void oxib_not_leak(const void *memory)
{
	kmemleak_not_leak(memory);
}

void *oxib_page_address(struct page *page)
{
	return page_address(page);
}

u64 oxib_page_pool_dma_addr(struct page *page)
{
	return page_pool_get_dma_addr(page);
}

void oxib_page_pool_sync_for_cpu(struct page_pool *pool, struct page *page, u32 offset, u32 length)
{
	page_pool_dma_sync_for_cpu(pool, page, offset, length);
}

void oxib_page_pool_sync_for_device(struct page_pool *pool, struct page *page, u32 offset,
				    u32 length)
{
	dma_sync_single_range_for_device(pool->p.dev, page_pool_get_dma_addr(page), offset, length,
					 DMA_FROM_DEVICE);
}

void oxib_page_pool_put(struct page_pool *pool, struct page *page)
{
	page_pool_put_full_page(pool, page, false);
}

/* Memory without I/O */

unsigned int oxib_memalloc_noio_save(void)
{
	return memalloc_noio_save();
}

void oxib_memalloc_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}
