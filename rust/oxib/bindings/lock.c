// SPDX-License-Identifier: GPL-2.0-only

#include <linux/random.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "lock.h"

void oxib_spin_lock_bh(spinlock_t *lock)
{
	spin_lock_bh(lock);
}

void oxib_spin_unlock_bh(spinlock_t *lock)
{
	spin_unlock_bh(lock);
}

bool oxib_spin_trylock_bh(spinlock_t *lock)
{
	return spin_trylock_bh(lock);
}

unsigned long oxib_spin_lock_irqsave(spinlock_t *lock)
{
	unsigned long flags;

	spin_lock_irqsave(lock, flags);
	return flags;
}

void oxib_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags)
{
	spin_unlock_irqrestore(lock, flags);
}

bool oxib_spin_trylock_irqsave(spinlock_t *lock, unsigned long *flags)
{
	return spin_trylock_irqsave(lock, *flags);
}

bool oxib_irqs_disabled(void)
{
	return irqs_disabled();
}

u64 oxib_milliseconds(void)
{
	return jiffies64_to_msecs(get_jiffies_64());
}

struct workqueue_struct *oxib_alloc_workqueue(bool rescuer)
{
	return alloc_workqueue(KBUILD_MODNAME, WQ_UNBOUND | (rescuer ? WQ_MEM_RECLAIM : 0), 16);
}

void oxib_flush_workqueue(struct workqueue_struct *queue)
{
	flush_workqueue(queue);
}

u32 oxib_random(void)
{
	return get_random_u32();
}
