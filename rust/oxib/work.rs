// SPDX-License-Identifier: GPL-2.0-only

//! Work that can be called off, and a queue of our own.
//!
//! The `kernel` crate queues work, but has no way to take it back.

use kernel::{
    prelude::*,
    sync::Arc,
    time::Jiffies,
    workqueue::{
        HasDelayedWork,
        HasWork,
        Work,
        WorkItem, //
    }, //
};

use crate::bindings;

/// A workqueue of our own, so that its end waits for our work and for nobody else's.
///
/// # Invariants
///
/// The pointer is a valid workqueue. The value is dropped outside of its own work (that would wait
/// for itself): an owner that lets work hold a reference flushes the queue before it drops the
/// last other.
pub(crate) struct Queue(core::ptr::NonNull<bindings::workqueue_struct>);

// SAFETY: Workqueues are used from any thread.
unsafe impl Send for Queue {}
// SAFETY: The kernel locks its workqueues: threads may use one at the same time.
unsafe impl Sync for Queue {}

impl Queue {
    /// Makes a queue that runs different work items at the same time, also when memory is short
    /// and waits for what they do.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        Self::allocate(true)
    }

    /// Makes a queue without that promise: for work that waits for such work of the kernel's, as
    /// the end of a net device does.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[allow(dead_code, reason = "softib has no need of it")]
    pub(crate) fn without_rescuer() -> Result<Self> {
        Self::allocate(false)
    }

    fn allocate(rescuer: bool) -> Result<Self> {
        // SAFETY: A plain allocation.
        let queue = unsafe { bindings::oxib_alloc_workqueue(rescuer) };
        core::ptr::NonNull::new(queue).map(Self).ok_or(ENOMEM)
    }

    /// Runs `task` soon, beside others: at most 16 run at a time.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn spawn(&self, task: impl FnOnce() + Send + 'static) -> Result {
        Ok(self.as_kernel().try_spawn(GFP_ATOMIC, task)?)
    }

    fn as_kernel(&self) -> &kernel::workqueue::Queue {
        // SAFETY: By the type invariant the queue is valid while `self` is.
        unsafe { kernel::workqueue::Queue::from_raw(self.0.as_ptr().cast()) }
    }

    /// Runs the work inside `item`, which it takes along.
    pub(crate) fn enqueue<T>(&self, item: Pin<KBox<T>>)
    where
        T: WorkItem<Pointer = Pin<KBox<T>>> + HasWork<T> + Send + 'static,
    {
        self.as_kernel().enqueue(item);
    }

    /// Runs `owner`'s work `ID` after `delay`, unless it waits already or was disabled.
    pub(crate) fn schedule<T, const ID: u64>(&self, owner: Arc<T>, delay: Jiffies)
    where
        T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID> + Send + Sync + 'static,
    {
        // A work that waits has its own reference; this one goes.
        let _ = self.as_kernel().enqueue_delayed::<_, ID>(owner, delay);
    }

    /// Runs `owner`'s work `ID` after `delay`, and not when it was planned before. Any context.
    ///
    /// It does nothing after [`disable`]. Calls for one work come one at a time (under the owner's
    /// lock): of two at once, either may win.
    #[allow(dead_code, reason = "softib uses it")]
    pub(crate) fn reschedule<T, const ID: u64>(&self, owner: &Arc<T>, delay: Jiffies)
    where
        T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID> + Send + Sync + 'static,
    {
        // Not `mod_delayed_work`: it does not tell whether it queued a work that is disabled, so
        // nobody would know whether there is a reference to drop.
        cancel::<T, ID>(owner);
        self.schedule::<T, ID>(owner.clone(), delay);
    }

    /// Waits for the end of all that was queued before. Sleeps.
    ///
    /// Not to be called with a lock held that the work takes (the RTNL!).
    pub(crate) fn flush(&self) {
        // SAFETY: By the type invariant the queue is valid while `self` is.
        unsafe { bindings::oxib_flush_workqueue(self.0.as_ptr()) }
    }
}

/// The kernel's own queue, on any processor: for work with an end that is waited for by itself.
#[allow(dead_code, reason = "softib has no need of it")]
pub(crate) fn shared() -> &'static kernel::workqueue::Queue {
    // SAFETY: The kernel makes the queue before it loads modules, and keeps it.
    unsafe { kernel::workqueue::Queue::from_raw(bindings::system_dfl_wq.cast()) }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: The queue is ours, and no work is queued any more: each holds an `Arc` to its
        // owner, which holds this queue or is gone.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) }
    }
}

/// Milliseconds since some moment before the module was loaded: a clock as coarse as the timers
/// of work, and cheap to read.
pub(crate) fn milliseconds() -> u64 {
    // SAFETY: Reads a counter.
    unsafe { bindings::oxib_milliseconds() }
}

/// Takes `owner`'s work `ID` out of its queue if it waits there. Any context. If the work runs, it
/// goes on, also after this.
pub(crate) fn cancel<T, const ID: u64>(owner: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    let raw = Arc::as_ptr(owner);
    // SAFETY: `owner` keeps the work valid.
    if unsafe { bindings::cancel_delayed_work(delayed_work::<T, ID>(raw)) } {
        // SAFETY: The work waited and will not run: the reference it held is ours to drop.
        drop(unsafe { Arc::from_raw(raw) });
    }
}

/// Takes `owner`'s work `ID` out of its queue if it waits there, waits for its end if it runs,
/// and tells whether it waited. Sleeps.
///
/// Until this returns, the work cannot be scheduled, and nobody is told so: the caller has to look
/// whether it is to be.
///
/// Not to be called with a lock held that the work takes (the RTNL!).
#[allow(dead_code, reason = "softib uses it")]
pub(crate) fn cancel_sync<T, const ID: u64>(owner: &Arc<T>) -> bool
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    let raw = Arc::as_ptr(owner);
    // SAFETY: `owner` keeps the work valid.
    let waited = unsafe { bindings::cancel_delayed_work_sync(delayed_work::<T, ID>(raw)) };
    if waited {
        // SAFETY: The work waited and will not run: the reference it held is ours to drop.
        drop(unsafe { Arc::from_raw(raw) });
    }
    waited
}

/// Takes `owner`'s work `ID` out of its queue, waits for its end if it runs, and keeps it from
/// being scheduled again. Sleeps.
///
/// Not to be called with a lock held that the work takes (the RTNL!).
pub(crate) fn disable<T, const ID: u64>(owner: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    let raw = Arc::as_ptr(owner);
    // SAFETY: `owner` keeps the work valid.
    if unsafe { bindings::disable_delayed_work_sync(delayed_work::<T, ID>(raw)) } {
        // SAFETY: The work waited and will not run: the reference it held is ours to drop.
        drop(unsafe { Arc::from_raw(raw) });
    }
}

/// The C work item inside `owner`.
///
/// # Safety
///
/// `owner` is valid.
unsafe fn delayed_work<T, const ID: u64>(owner: *const T) -> *mut kernel::bindings::delayed_work
where
    T: HasDelayedWork<T, ID>,
{
    // SAFETY: The caller guarantees that `owner` is valid.
    let work = unsafe { <T as HasWork<T, ID>>::raw_get_work(owner.cast_mut()) };
    // SAFETY: `work` points into a valid `DelayedWork`, by the contract of `HasDelayedWork`.
    let work = unsafe { Work::raw_get(work) };
    // SAFETY: `HasDelayedWork` promises that its work is the one inside a `delayed_work`.
    unsafe { kernel::container_of!(work, kernel::bindings::delayed_work, work) }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_work))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use core::sync::atomic::{
        AtomicU32,
        Ordering, //
    };

    use kernel::{
        impl_has_delayed_work,
        sync::Completion,
        time::msecs_to_jiffies,
        workqueue::{
            new_delayed_work,
            DelayedWork, //
        }, //
    };

    use super::*;

    /// A delay that is too long to come due during a test, in milliseconds.
    const LATER: u32 = 3_600_000;

    #[pin_data]
    struct Timer {
        runs: AtomicU32,
        #[pin]
        ran: Completion,
        #[pin]
        work: DelayedWork<Timer>,
    }

    impl_has_delayed_work! {
        impl HasDelayedWork<Self> for Timer { self.work }
    }

    impl WorkItem for Timer {
        type Pointer = Arc<Timer>;

        fn run(this: Arc<Timer>) {
            this.runs.fetch_add(1, Ordering::Relaxed);
            this.ran.complete_all();
        }
    }

    fn timer() -> Result<Arc<Timer>> {
        Arc::pin_init(
            pin_init!(Timer {
                runs: AtomicU32::new(0),
                ran <- Completion::new(),
                work <- new_delayed_work!("oxib_test"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether nobody else has a reference: neither lost nor held by work.
    fn is_alone(timer: Arc<Timer>) -> bool {
        Arc::into_unique_or_drop(timer).is_some()
    }

    #[test]
    fn an_earlier_time_replaces_a_later_one() -> Result {
        let (queue, timer) = (Queue::new()?, timer()?);
        queue.reschedule(&timer, msecs_to_jiffies(LATER));
        queue.reschedule(&timer, msecs_to_jiffies(1));
        timer.ran.wait_for_completion();
        queue.flush();
        assert_eq!(timer.runs.load(Ordering::Relaxed), 1);
        disable(&timer);
        assert!(is_alone(timer));
        Ok(())
    }

    #[test]
    fn a_later_time_replaces_an_earlier_one() -> Result {
        let (queue, timer) = (Queue::new()?, timer()?);
        queue.reschedule(&timer, msecs_to_jiffies(LATER / 2));
        queue.reschedule(&timer, msecs_to_jiffies(LATER));
        cancel(&timer);
        assert_eq!(timer.runs.load(Ordering::Relaxed), 0);
        assert!(is_alone(timer));
        Ok(())
    }

    #[test]
    fn cancelling_twice_is_cancelling_once() -> Result {
        let (queue, timer) = (Queue::new()?, timer()?);
        cancel(&timer);
        queue.reschedule(&timer, msecs_to_jiffies(LATER));
        cancel(&timer);
        cancel(&timer);
        assert!(is_alone(timer));
        Ok(())
    }

    #[test]
    fn cancel_sync_tells_whether_the_work_waited() -> Result {
        let (queue, timer) = (Queue::new()?, timer()?);
        assert!(!cancel_sync(&timer));
        queue.reschedule(&timer, msecs_to_jiffies(LATER));
        assert!(cancel_sync(&timer));
        assert!(!cancel_sync(&timer));
        queue.reschedule(&timer, msecs_to_jiffies(0));
        timer.ran.wait_for_completion();
        queue.flush();
        assert!(!cancel_sync(&timer));
        assert_eq!(timer.runs.load(Ordering::Relaxed), 1);
        assert!(is_alone(timer));
        Ok(())
    }

    #[test]
    fn nothing_is_planned_once_disabled() -> Result {
        let (queue, timer) = (Queue::new()?, timer()?);
        queue.reschedule(&timer, msecs_to_jiffies(LATER));
        disable(&timer);
        queue.reschedule(&timer, msecs_to_jiffies(0));
        queue.flush();
        assert_eq!(timer.runs.load(Ordering::Relaxed), 0);
        assert!(is_alone(timer));
        Ok(())
    }
}
