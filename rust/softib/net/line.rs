// SPDX-License-Identifier: GPL-2.0-only

//! The sending side of a cable.

use core::{
    ptr::null_mut,
    sync::atomic::{
        AtomicBool,
        AtomicPtr,
        Ordering, //
    }, //
};

use kernel::{
    impl_has_delayed_work,
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
    workqueue::{
        self,
        new_delayed_work,
        DelayedWork,
        WorkItem, //
    }, //
};

use super::{
    frame::{
        Frame,
        Queue, //
    },
    signal::Signal, //
};
use crate::{
    bindings,
    fabric::events::LinkCommand,
    work, //
};

/// Frames that are sent in one go; then others have a turn.
const BURST: usize = 64;

/// The way from a port to the other end of its cable. Without a cable frames are dropped, as from
/// a port to which nothing is connected.
///
/// # Invariants
///
/// `device` is null, or a net device of which a reference is held, which is given up an RCU grace
/// period after this became null.
#[pin_data]
pub(crate) struct Line {
    device: AtomicPtr<bindings::net_device>,
    /// Whether the net device carries frames.
    up: AtomicBool,
    /// Whether the other end has said that its link is down, or that it goes.
    silent: AtomicBool,
    /// Frames that came where a net device cannot be called: with interrupts off.
    #[pin]
    backlog: Queue,
    #[pin]
    work: DelayedWork<Line>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Line { self.work }
}

impl WorkItem for Line {
    type Pointer = Arc<Line>;

    fn run(this: Arc<Line>) {
        if !this.send_burst() {
            this.send_backlog();
        }
    }
}

impl Line {
    /// Creates a line that nothing is plugged into.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        // INVARIANT: Null.
        Arc::pin_init(
            pin_init!(Self {
                device: AtomicPtr::new(null_mut()),
                up: AtomicBool::new(false),
                silent: AtomicBool::new(false),
                backlog <- Queue::new(),
                work <- new_delayed_work!("softib_line"),
            }),
            GFP_KERNEL,
        )
    }

    /// Notes whether the net device carries frames, and tells whether that is new.
    pub(super) fn set_up(&self, up: bool) -> bool {
        let is_new = self.up.swap(up, Ordering::AcqRel) != up;
        if is_new {
            // The last signal of the other end is of the time before.
            self.heard(Signal::Up);
        }
        is_new
    }

    /// Returns whether the net device carries frames.
    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }

    /// Notes what the other end says of itself.
    pub(super) fn heard(&self, signal: Signal) {
        self.silent.store(signal == Signal::Down, Ordering::Release);
    }

    /// Carries out a subnet manager's command to the link. Returns whether the port is to be told
    /// that the cable has a live other end.
    pub(crate) fn command(self: &Arc<Self>, command: LinkCommand) -> bool {
        for signal in Signal::of(command) {
            self.tell(*signal);
        }
        let is_live = self.is_up() && !self.silent.load(Ordering::Acquire);
        is_live && command != LinkCommand::Disable
    }

    /// Tells the other end of the cable of a change of the link. Without memory the signal is
    /// lost, as any frame can be.
    pub(super) fn tell(self: &Arc<Self>, signal: Signal) {
        if let Ok(frame) = signal.frame() {
            self.send(frame);
        }
    }

    /// Sends a frame to the other end of the cable. Any context, any lock held.
    pub(crate) fn send(self: &Arc<Self>, frame: Frame) {
        // SAFETY: Reads flags of this CPU.
        let deferred = unsafe { bindings::softib_in_interrupt() };
        // Those that wait were sent first.
        if deferred || !self.backlog.is_empty() {
            self.backlog.push(frame);
            self.send_backlog();
        } else {
            self.transmit(frame);
        }
    }

    /// Sends the frames that wait, soon. If the work waits already it will see them all.
    fn send_backlog(self: &Arc<Self>) {
        let _ = workqueue::system_bh().enqueue_delayed::<_, 0>(self.clone(), 0);
    }

    /// Sends some of the frames that wait, and tells whether these were all.
    fn send_burst(&self) -> bool {
        for _ in 0..BURST {
            let Some(frame) = self.backlog.pop() else {
                return true;
            };
            self.transmit(frame);
        }
        false
    }

    /// Ends what runs by itself. Frames that wait are not sent any more. Sleeps.
    pub(super) fn stop(self: &Arc<Self>) {
        work::disable::<_, 0>(self);
    }

    /// Tells the other end, after [`Line::stop`], that this end goes: at once, not behind frames
    /// that nobody sends any more.
    pub(super) fn say_farewell(&self) {
        // Those few that wait are owed to it.
        let _ = self.send_burst();
        if let Ok(frame) = Signal::Down.frame() {
            self.transmit(frame);
        }
    }

    /// Hands a frame to the net device at the other end, or to the line's own. Interrupts are on.
    fn transmit(&self, mut frame: Frame) {
        let _guard = rcu::read_lock();
        let device = self.device.load(Ordering::Acquire);
        if device.is_null() {
            return;
        }
        // SAFETY: By the type invariant the device is there until the grace period ends;
        // interrupts are on.
        if unsafe { bindings::softib_crossing_send(frame.as_raw(), device) } {
            // It went.
            let _ = frame.into_raw();
        } else if frame.close().is_ok() {
            // SAFETY: As above. The frame's ownership goes with it.
            unsafe { bindings::softib_frame_send(frame.into_raw(), device) };
        }
    }

    /// Connects the line to a net device.
    ///
    /// # Safety
    ///
    /// `device` is valid.
    pub(super) unsafe fn connect(&self, device: *mut bindings::net_device) {
        // SAFETY: The caller's promise.
        unsafe { bindings::softib_dev_hold(device) };
        // INVARIANT: The reference was just taken.
        self.device.store(device, Ordering::Release);
    }

    /// Takes the line from its net device, which nobody uses through it afterwards: `wait` waits
    /// for an RCU grace period.
    pub(super) fn disconnect(&self, wait: impl FnOnce(*mut bindings::net_device)) {
        let device = self.device.swap(null_mut(), Ordering::AcqRel);
        if !device.is_null() {
            wait(device);
            // SAFETY: By the type invariant there is a reference, and the grace period is over.
            unsafe { bindings::softib_dev_put(device) };
        }
    }
}
