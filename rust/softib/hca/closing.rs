// SPDX-License-Identifier: GPL-2.0-only

//! Links that subnet managers take down, and what the other end is told of it. It takes no packet
//! afterwards, so the answer to the command goes first.

use kernel::{
    impl_has_delayed_work,
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

use super::{
    queue_pairs::PORTS,
    Hca, //
};
use crate::{
    fabric::{
        events::{
            Events,
            LinkCommand, //
        },
        port::Port, //
    },
    net::signal::Signal,
    wire::smp::port::Physical, //
};

/// The work of a device that tells other ends of disabled links.
pub(super) const CLOSING: u64 = 3;

/// The time after which the other end is told if no answer leaves by the link, in nanoseconds: a
/// program on this host gets its answer without a packet.
const ANSWER_TIME: u64 = 1_000_000_000;

/// The time after which the other end is told that comes up while the link is disabled, in
/// nanoseconds: it is to be done with coming up.
const REFUSAL_TIME: u64 = 20_000_000;

/// Ports whose links were disabled without the other ends knowing it, each with the time at which
/// its other end is told at the latest, in nanoseconds.
pub(super) struct Closing([Option<u64>; PORTS]);

impl Closing {
    /// Creates the set without ports.
    pub(super) const fn new() -> Self {
        Self([None; PORTS])
    }

    fn place(&mut self, port: u8) -> Option<&mut Option<u64>> {
        self.0.get_mut(usize::from(port).checked_sub(1)?)
    }

    fn put(&mut self, port: u8, due: u64) {
        if let Some(place) = self.place(port) {
            *place = Some(due);
        }
    }

    /// Notes a command to the link of a port. Returns the command that the other end is to be told
    /// of at once, if there is one.
    fn follow(&mut self, port: u8, command: LinkCommand, now: u64) -> Option<LinkCommand> {
        let was_there = self.take(port);
        match command {
            LinkCommand::Disable => {
                self.put(port, now.saturating_add(ANSWER_TIME));
                None
            }
            // The other end has to see that the link was down.
            LinkCommand::Enable if was_there => Some(LinkCommand::Down),
            LinkCommand::Enable | LinkCommand::Down => Some(command),
        }
    }

    /// Notes that the other end of a disabled port has come up.
    fn refuse(&mut self, port: u8, now: u64) {
        // The answer to the command may still be on its way.
        if !self.contains(port) {
            self.put(port, now.saturating_add(REFUSAL_TIME));
        }
    }

    fn contains(&self, port: u8) -> bool {
        let place = usize::from(port).wrapping_sub(1);
        self.0.get(place).is_some_and(Option::is_some)
    }

    /// Takes a port out. Returns whether it was there.
    fn take(&mut self, port: u8) -> bool {
        self.place(port).is_some_and(|due| due.take().is_some())
    }

    /// Takes a port out whose time has come.
    fn take_due(&mut self, now: u64) -> Option<u8> {
        let is_due = |port: &u8| {
            let place = usize::from(*port).wrapping_sub(1);
            self.0
                .get(place)
                .copied()
                .flatten()
                .is_some_and(|due| due <= now)
        };
        let port = (1..=PORTS as u8).find(is_due)?;
        self.take(port).then_some(port)
    }

    /// Returns the time at which the next port is due.
    fn next(&self) -> Option<u64> {
        self.0.iter().flatten().copied().min()
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 3> for Hca { self.closing }
}

impl WorkItem<CLOSING> for Hca {
    type Pointer = Arc<Hca>;

    fn run(this: Arc<Hca>) {
        this.close_due();
    }
}

/// Returns whether a subnet manager has disabled the link of a port.
fn is_disabled(port: &Port) -> bool {
    port.info().physical() == Physical::Disabled
}

impl Hca {
    /// Notes the command to a link among some events. Returns the command that the other end is to
    /// be told of at once, if there is one. With the ports locked.
    pub(super) fn note_command(
        self: &Arc<Self>,
        closing: &mut Closing,
        events: &Events,
        now: u64,
    ) -> Option<LinkCommand> {
        let command = closing.follow(events.port, events.link?, now);
        self.plan_closing(closing, now);
        command
    }

    /// Plans to tell the other ends that are still to be told. With the ports locked, as calls of
    /// `reschedule` for one work come one at a time.
    fn plan_closing(self: &Arc<Self>, closing: &Closing, now: u64) {
        if let Some(next) = closing.next() {
            let delay = next.saturating_sub(now).div_ceil(1_000_000);
            let delay = u32::try_from(delay).unwrap_or(u32::MAX);
            self.queue
                .reschedule::<_, CLOSING>(self, msecs_to_jiffies(delay));
        }
    }

    /// Tells the other end of a port of a command to the link. Returns whether the port is to be
    /// told that the cable carries packets.
    pub(super) fn command(self: &Arc<Self>, port: u8, command: LinkCommand) -> bool {
        if !self.is_in_memory(port) {
            return self.line(port).is_some_and(|line| line.command(command));
        }
        for signal in Signal::of(command) {
            // Without memory the other end does not hear of it.
            if let Ok(frame) = signal.frame() {
                self.transmit(port, frame);
            }
        }
        self.carries(port) && command != LinkCommand::Disable
    }

    /// Tells the other end of a port that the link was disabled, if it is still to be told. Any
    /// context.
    pub(super) fn close(self: &Arc<Self>, port: u8) {
        let managed = &self.ports.managed;
        if managed.with(|managed| managed.closing.take(port)) {
            self.tell_closed(port);
        }
    }

    fn tell_closed(self: &Arc<Self>, port: u8) {
        self.command(port, LinkCommand::Disable);
        // The link may have been enabled, and the other end told so, just before that.
        if !self.is_shut(port) {
            self.command(port, LinkCommand::Enable);
        }
    }

    /// Tells the other ends whose time has come.
    fn close_due(self: &Arc<Self>) {
        loop {
            let now = self.now().get();
            let due = self.ports.managed.with(|managed| {
                let due = managed.closing.take_due(now);
                if due.is_none() {
                    self.plan_closing(&managed.closing, now);
                }
                due
            });
            let Some(port) = due else {
                return;
            };
            self.tell_closed(port);
        }
    }

    /// Plans to tell the other end of a port, which comes up, that the port is disabled, if it is:
    /// then it does not want the cable that was put in.
    pub(super) fn refuse_if_disabled(self: &Arc<Self>, port: u8) {
        let now = self.now().get();
        self.ports.managed.with(|managed| {
            if managed.node.port(port).is_some_and(is_disabled) {
                managed.closing.refuse(port, now);
                self.plan_closing(&managed.closing, now);
            }
        });
    }

    /// Returns whether packets of subnet management may leave by a port with its link down. Where
    /// the link is disabled that is only until the other end is told: the answer to the command
    /// comes first.
    pub(super) fn is_open_to_management(&self, port: u8) -> bool {
        let is_open = self.ports.managed.with(|managed| {
            let is_disabled = managed.node.port(port).is_some_and(is_disabled);
            !is_disabled || managed.closing.contains(port)
        });
        is_open && self.carries(port)
    }

    /// Returns whether a subnet manager has taken the link of a port down, and not enabled it
    /// since.
    fn is_shut(&self, port: u8) -> bool {
        let is_shut = |port: &Port| {
            let physical = port.info().physical();
            matches!(physical, Physical::Disabled | Physical::Sleep)
        };
        self.ports.look(port, is_shut) == Some(true)
    }
}

#[kernel::prelude::kunit_tests(softib_closing)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    #[test]
    fn a_disabled_link_is_told_of_after_the_answer() {
        let mut closing = Closing::new();
        assert!(closing.follow(1, LinkCommand::Disable, NOW).is_none());
        assert!(closing.contains(1) && !closing.contains(2));
        assert!(closing.take(1) && !closing.take(1) && !closing.take(2));
        assert!(closing.next().is_none());
    }

    #[test]
    fn a_disabled_link_without_an_answer_is_told_of_in_time() {
        const DUE: u64 = NOW + ANSWER_TIME;
        let mut closing = Closing::new();
        assert!(closing.follow(2, LinkCommand::Disable, NOW).is_none());
        assert!(closing.follow(1, LinkCommand::Disable, NOW + 1).is_none());
        assert_eq!(closing.next(), Some(DUE));
        assert!(closing.take_due(DUE - 1).is_none());
        assert_eq!(closing.take_due(DUE), Some(2));
        assert!(closing.take_due(DUE).is_none());
        assert_eq!(closing.next(), Some(DUE + 1));
        assert_eq!(closing.take_due(DUE + 1), Some(1));
        assert!(closing.next().is_none());
    }

    #[test]
    fn an_end_that_comes_up_does_not_overtake_an_answer() {
        let mut closing = Closing::new();
        closing.refuse(1, NOW);
        assert_eq!(closing.next(), Some(NOW + REFUSAL_TIME));
        assert!(closing.follow(1, LinkCommand::Disable, NOW).is_none());
        closing.refuse(1, NOW);
        assert_eq!(closing.next(), Some(NOW + ANSWER_TIME));
    }

    #[test]
    fn a_link_that_was_not_disabled_is_told_of_at_once() {
        let mut closing = Closing::new();
        for command in [LinkCommand::Enable, LinkCommand::Down] {
            assert_eq!(closing.follow(1, command, NOW), Some(command));
            assert!(closing.next().is_none());
        }
    }

    #[test]
    fn a_link_that_is_disabled_and_enabled_at_once_is_down_between() {
        let mut closing = Closing::new();
        for command in [LinkCommand::Enable, LinkCommand::Down] {
            assert!(closing.follow(1, LinkCommand::Disable, NOW).is_none());
            assert_eq!(closing.follow(1, command, NOW), Some(LinkCommand::Down));
            assert!(closing.next().is_none());
        }
        // The other end knows already.
        assert!(closing.follow(1, LinkCommand::Disable, NOW).is_none());
        assert!(closing.take(1));
        let enable = LinkCommand::Enable;
        assert_eq!(closing.follow(1, enable, NOW), Some(enable));
    }

    #[test]
    fn ports_that_there_are_not_are_left_out() {
        let mut closing = Closing::new();
        for port in [0, PORTS as u8 + 1] {
            assert!(closing.follow(port, LinkCommand::Disable, NOW).is_none());
            assert!(!closing.contains(port) && !closing.take(port));
        }
        assert!(closing.next().is_none());
    }
}
