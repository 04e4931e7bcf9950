/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What rust/oxib/lock.rs and rust/oxib/work.rs need of C. lock.c is part of each module that has them.
 */

#ifndef OXIB_LOCK_H
#define OXIB_LOCK_H

#include <linux/spinlock.h>
#include <linux/workqueue.h>

void oxib_spin_lock_bh(spinlock_t *lock);
void oxib_spin_unlock_bh(spinlock_t *lock);
bool oxib_spin_trylock_bh(spinlock_t *lock);
unsigned long oxib_spin_lock_irqsave(spinlock_t *lock);
void oxib_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags);
bool oxib_spin_trylock_irqsave(spinlock_t *lock, unsigned long *flags);
bool oxib_irqs_disabled(void);
u64 oxib_milliseconds(void);
struct workqueue_struct *oxib_alloc_workqueue(bool rescuer);
void oxib_flush_workqueue(struct workqueue_struct *queue);
u32 oxib_random(void);

#endif
