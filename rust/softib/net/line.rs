// SPDX-License-Identifier: GPL-2.0-only

//! The sending side of a cable.

use core::{
    ptr::null_mut,
    sync::atomic::{
        AtomicBool,
        AtomicPtr,
        AtomicU32,
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
    time::msecs_to_jiffies,
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
        Queue,
        MOST_WAITING, //
    },
    signal::Signal, //
};
use crate::{
    bindings,
    fabric::events::LinkCommand,
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    wire::qpn::Qpn,
    work, //
};

/// Frames that are sent in one go; then others have a turn.
const BURST: usize = 64;

/// The number of times for which a signal is repeated: on a cable that loses a frame in three, one
/// signal in 20,000 never arrives.
const REPEATS: u32 = 8;

/// The time before the first repetition of a signal, in milliseconds. It doubles each time, so
/// the last one is sent five seconds after the signal.
const FIRST_REPEAT: u32 = 20;

/// The number of the work that repeats signals.
const REPEAT: u64 = 1;

/// The last signal to the other end of a cable, and its repetitions.
struct Told {
    signal: Signal,
    /// The number of times for which it is still to be repeated.
    repeats: u32,
}

impl Told {
    /// Creates a signal that nobody is told.
    fn new() -> Self {
        Self {
            signal: Signal::Up,
            repeats: 0,
        }
    }

    /// Replaces the signal, which is to be repeated from now on.
    fn note(&mut self, signal: Signal) {
        self.signal = signal;
        self.repeats = REPEATS;
    }

    /// Takes a repetition. Returns the signal, with the time until it is to be sent once more, in
    /// milliseconds.
    fn take(&mut self) -> Option<(Signal, Option<u32>)> {
        self.repeats = self.repeats.checked_sub(1)?;
        let delay = FIRST_REPEAT << (REPEATS - self.repeats);
        Some((self.signal, (self.repeats != 0).then_some(delay)))
    }
}

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
    /// The last signal to the other end.
    #[pin]
    told: IrqLock<Told>,
    /// Frames that came where a net device cannot be called: with interrupts off.
    #[pin]
    backlog: Queue,
    /// The number of these, with the one that is being sent.
    waiting: AtomicU32,
    #[pin]
    work: DelayedWork<Line>,
    #[pin]
    repeat: DelayedWork<Line, REPEAT>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Line { self.work }
    impl HasDelayedWork<Self, 1> for Line { self.repeat }
}

impl WorkItem for Line {
    type Pointer = Arc<Line>;

    fn run(this: Arc<Line>) {
        if !this.send_burst() {
            this.send_backlog();
        }
    }
}

impl WorkItem<REPEAT> for Line {
    type Pointer = Arc<Line>;

    fn run(this: Arc<Line>) {
        this.repeat_signal();
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
                told <- new_irq_lock!(Told::new(), "softib_line_told"),
                backlog <- Queue::new(),
                waiting: AtomicU32::new(0),
                work <- new_delayed_work!("softib_line"),
                repeat <- new_delayed_work!("softib_line_repeat"),
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
    /// that the cable has a live other end. The answer to a command that disables the link was
    /// sent before: the other end takes nothing afterwards.
    pub(crate) fn command(self: &Arc<Self>, command: LinkCommand) -> bool {
        for signal in Signal::of(command) {
            self.tell(*signal);
        }
        let is_live = self.is_up() && !self.silent.load(Ordering::Acquire);
        is_live && command != LinkCommand::Disable
    }

    /// Has the other end, which comes up, told that the link is disabled: soon, so that it is done
    /// with coming up.
    pub(crate) fn refuse(self: &Arc<Self>) {
        self.note(Signal::Down);
    }

    /// Tells the other end of the cable of a change of the link, and repeats that.
    pub(super) fn tell(self: &Arc<Self>, signal: Signal) {
        self.note(signal);
        self.signal(signal);
    }

    /// Has a signal sent, soon and several times: without memory a signal is lost, and on the way
    /// any frame can be. Nothing else would tell the other end, so a lost signal would leave its
    /// port in another state than this one for good.
    fn note(self: &Arc<Self>, signal: Signal) {
        self.told.with(|told| {
            told.note(signal);
            self.plan_repeat(FIRST_REPEAT);
        });
    }

    /// Sends the last signal again. A signal that another processor sends at the same time may
    /// pass this one; its own repetitions follow both, so they have the last word.
    fn repeat_signal(self: &Arc<Self>) {
        let signal = self.told.with(|told| {
            let (signal, delay) = told.take()?;
            if let Some(delay) = delay {
                self.plan_repeat(delay);
            }
            Some(signal)
        });
        if let Some(signal) = signal {
            self.signal(signal);
        }
    }

    /// Has the last signal sent again after so many milliseconds, and not when it was planned
    /// before. With `told` locked. Without a cable there is no other end, and nobody who stops the
    /// work.
    fn plan_repeat(self: &Arc<Self>, delay: u32) {
        if !self.device.load(Ordering::Relaxed).is_null() {
            self.restart(delay);
        }
    }

    /// Runs the work that repeats signals after so many milliseconds, and not when it was planned
    /// before. Calls come one at a time.
    fn restart(self: &Arc<Self>, delay: u32) {
        work::cancel::<_, REPEAT>(self);
        let delay = msecs_to_jiffies(delay);
        let _ = workqueue::system().enqueue_delayed::<_, REPEAT>(self.clone(), delay);
    }

    fn signal(self: &Arc<Self>, signal: Signal) {
        if let Ok(frame) = signal.frame() {
            // It is repeated.
            let _ = self.send(frame);
        }
    }

    /// Sends a frame to the other end of the cable, unless too many wait here and it is not urgent.
    /// Returns whether it took the frame. Any context, any lock held.
    pub(crate) fn send(self: &Arc<Self>, frame: Frame) -> bool {
        // SAFETY: Reads flags of this CPU.
        let deferred = unsafe { bindings::softib_in_interrupt() };
        // Those that wait were sent first, and one that was taken out may not have left yet.
        let waiting = self.waiting.load(Ordering::Acquire);
        if !deferred && waiting == 0 {
            self.transmit(frame);
            return true;
        }
        let takes = waiting < MOST_WAITING || frame.is_urgent();
        if takes {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            self.backlog.push(frame);
            self.send_backlog();
        }
        takes
    }

    /// Returns whether connections are to send no more to a queue pair until some frames have left
    /// or have arrived. Any context.
    pub(crate) fn is_crowded(&self, destination: Qpn) -> bool {
        if self.waiting.load(Ordering::Relaxed) >= MOST_WAITING / 2 {
            return true;
        }
        let _guard = rcu::read_lock();
        let device = self.device.load(Ordering::Acquire);
        if device.is_null() {
            return false;
        }
        // SAFETY: By the type invariant the device is there until the grace period ends.
        unsafe { bindings::softib_crossing_is_crowded(device, destination.get()) }
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
            self.waiting.fetch_sub(1, Ordering::Release);
        }
        false
    }

    /// Ends what runs by itself. Frames that wait are not sent any more. Sleeps.
    pub(super) fn stop(self: &Arc<Self>) {
        work::disable::<_, REPEAT>(self);
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
            // SAFETY: The device is there until the grace period ends; the frame is given away, as
            // it has to be.
            unsafe { bindings::softib_frame_send(frame.into_raw(), device) };
        }
    }

    /// Connects the line to a net device.
    ///
    /// # Safety
    ///
    /// `device` is valid.
    pub(super) unsafe fn connect(&self, device: *mut bindings::net_device) {
        // SAFETY: The caller gives a valid device, so that a reference can be taken.
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

#[kernel::prelude::kunit_tests(softib_line)]
mod tests {
    use kernel::time::{
        delay::fsleep,
        Delta, //
    };

    use super::*;

    /// A delay that is too long to come due during a test, in milliseconds.
    const LATER: u32 = 3_600_000;

    /// The longest wait for what is due at once, in milliseconds.
    const PATIENCE: u32 = 20_000;

    #[test]
    fn a_signal_is_repeated_in_growing_intervals() {
        let mut told = Told::new();
        assert!(told.take().is_none());
        told.note(Signal::Down);
        for repetition in 1..REPEATS {
            let delay = FIRST_REPEAT << repetition;
            assert!(told.take() == Some((Signal::Down, Some(delay))));
        }
        assert!(told.take() == Some((Signal::Down, None)));
        assert!(told.take().is_none());
    }

    #[test]
    fn a_new_signal_is_repeated_from_the_beginning() {
        let mut told = Told::new();
        told.note(Signal::Down);
        for _ in 1..REPEATS {
            let _ = told.take();
        }
        told.note(Signal::Up);
        assert!(told.take() == Some((Signal::Up, Some(FIRST_REPEAT << 1))));
    }

    #[test]
    fn a_new_signal_does_not_wait_for_the_repetition_of_the_one_before() -> Result {
        let line = Line::new()?;
        line.note(Signal::Down);
        line.restart(LATER);
        line.restart(1);
        let left = || line.told.with(|told| told.repeats);
        for _ in 0..PATIENCE {
            if left() != REPEATS {
                break;
            }
            fsleep(Delta::from_millis(1));
        }
        // Without a cable nothing is planned after that one.
        assert_eq!(left(), REPEATS - 1);
        line.stop();
        Ok(())
    }
}
