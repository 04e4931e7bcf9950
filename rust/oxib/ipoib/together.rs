// SPDX-License-Identifier: GPL-2.0-only

//! Commands to a device for several objects at the same time.
//!
//! A command takes hardware about a millisecond, and an interface has queues for each processor.
//! Most is configured with the RTNL held, for which the whole machine waits: so the time of a
//! command is not multiplied by the number of queues.

use core::sync::atomic::{
    AtomicI32,
    AtomicUsize,
    Ordering, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        Arc,
        Completion, //
    }, //
};

use crate::work;

/// The tasks that are not done yet.
#[pin_data]
struct Rest {
    count: AtomicUsize,
    /// The last error of a task; 0 for none.
    error: AtomicI32,
    #[pin]
    done: Completion,
}

impl Rest {
    fn finish(&self, result: Result) {
        if let Err(error) = result {
            // Relaxed is enough: the decrement below publishes it to the task that completes
            // `done`.
            self.error.store(error.to_errno(), Ordering::Relaxed);
        }
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.done.complete_all();
        }
    }
}

/// Runs `task` on each of `items`, at the same time in `queue`, and waits for all of them. Sleeps.
/// Without memory for that, it runs them one after the other.
///
/// The caller may hold the RTNL. Work of `queue` that waits for it must leave room for these tasks:
/// an interface's own queue runs 16 at a time and has fewer works than that.
///
/// # Errors
///
/// That of one of the tasks that failed.
pub(super) fn for_each<T: Send + Sync + 'static>(
    queue: &work::Queue,
    items: &[Arc<T>],
    task: impl Fn(&T) -> Result + Copy + Send + 'static,
) -> Result {
    let Some((first, others)) = items.split_first() else {
        return Ok(());
    };
    let rest = Arc::pin_init(
        pin_init!(Rest {
            // All items count from the start: a task that ends early must not complete the rest.
            count: AtomicUsize::new(items.len()),
            error: AtomicI32::new(0),
            done <- Completion::new(),
        }),
        GFP_KERNEL,
    );
    let Ok(rest) = rest else {
        return one_by_one(items, task);
    };
    for item in others {
        let (theirs, left) = (item.clone(), rest.clone());
        let spawned = queue.spawn(move || left.finish(task(&theirs)));
        if spawned.is_err() {
            rest.finish(task(item));
        }
    }
    // The caller runs the first task itself: it has nothing to do but to wait.
    rest.finish(task(first));
    rest.done.wait_for_completion();
    to_result(rest.error.load(Ordering::Relaxed))
}

/// Runs `task` on all of `items`, whatever becomes of one. Returns the first error.
fn one_by_one<T>(items: &[Arc<T>], task: impl Fn(&T) -> Result) -> Result {
    let mut result = Ok(());
    for item in items {
        let done = task(item);
        result = result.and(done);
    }
    result
}

#[kernel::prelude::kunit_tests(oxib_together)]
mod tests {
    use super::*;

    /// An item that notes how often it was visited.
    struct Item {
        visits: AtomicUsize,
        is_good: bool,
    }

    fn items(good: &[bool]) -> Result<KVec<Arc<Item>>> {
        let mut items = KVec::new();
        for is_good in good {
            let item = Item {
                visits: AtomicUsize::new(0),
                is_good: *is_good,
            };
            items.push(Arc::new(item, GFP_KERNEL)?, GFP_KERNEL)?;
        }
        Ok(items)
    }

    fn visit(item: &Item) -> Result {
        item.visits.fetch_add(1, Ordering::Relaxed);
        match item.is_good {
            true => Ok(()),
            false => Err(EIO),
        }
    }

    #[test]
    fn each_item_is_visited_once() -> Result {
        let queue = work::Queue::new()?;
        let table: [(&[bool], bool); 5] = [
            (&[], true),
            (&[true], true),
            (&[false], false),
            (&[true; 40], true),
            (&[true, true, false, true], false),
        ];
        for (good, expected) in table {
            let items = items(good)?;
            assert_eq!(for_each(&queue, &items, visit).is_ok(), expected);
            let once = |item: &Arc<Item>| item.visits.load(Ordering::Relaxed) == 1;
            assert!(items.iter().all(once));
        }
        Ok(())
    }
}
