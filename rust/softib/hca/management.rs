// SPDX-License-Identifier: GPL-2.0-only

//! Management of a device's ports: by subnet managers, by the kernel, by their cables.

use kernel::{
    impl_has_delayed_work,
    prelude::*,
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

use super::{
    counters::Counter,
    Hca, //
};
use crate::{
    fabric::{
        events::Changes,
        node::Node,
        port::Port,
        Cabled,
        Events,
        Outcome,
        OUT_LEN, //
    },
    identity::culprit,
    net::frame::Frame,
    provider::device::Event,
    wire::{
        deth::Deth,
        lid::Lid,
        mad,
        packet::Packet,
        smp::node::DESCRIPTION_LEN, //
    }, //
};

/// The work of a device that sends traps.
pub(super) const TRAPS: u64 = 1;

/// The result of a management datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Processed {
    /// There is an answer.
    Reply,
    /// The datagram is for the consumers that registered for its class.
    Agents,
    /// The datagram is dealt with, and has no answer.
    Consumed,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 1> for Hca { self.traps }
}

impl WorkItem<1> for Hca {
    type Pointer = Arc<Hca>;

    fn run(this: Arc<Hca>) {
        this.send_traps();
    }
}

impl Hca {
    /// Changes the node, and tells the kernel and the subnet manager what has changed. Any
    /// context.
    fn manage<R>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Node<KVec<Port>>, u64) -> (Events, R),
    ) -> R {
        let now = self.now().get();
        let (events, active, command, result) = self.ports.managed.with(|managed| {
            let (events, result) = change(&mut managed.node, now);
            managed.show(&self.ports.links);
            // With the lock held, as calls of `reschedule` for one work come one at a time.
            if events.changes.contains(Changes::TRAP) {
                self.queue.reschedule::<_, TRAPS>(self, 0);
            }
            let active = managed.node.port(events.port).map(Port::is_active);
            let known = usize::from(events.port).checked_sub(1);
            let known = known.and_then(|place| managed.active.get_mut(place));
            // Steps on the way are not told of.
            let changed = match (active, known) {
                (Some(active), Some(known)) if active != *known => {
                    *known = active;
                    Some(active)
                }
                _ => None,
            };
            let command = self.note_command(&mut managed.closing, &events, now);
            (events, changed, command, result)
        });
        // Without the lock, which queries of a port take.
        self.tell(&events, active);
        if let Some(command) = command {
            if self.command(events.port, command) {
                self.set_carrier(events.port, true);
            }
        }
        result
    }

    /// Tells the kernel of what changed.
    fn tell(&self, events: &Events, active: Option<bool>) {
        let port = events.port;
        let table = [
            (Changes::LID, Event::Lid),
            (Changes::GID, Event::Gids),
            (Changes::PKEY, Event::Pkeys),
            (Changes::SM, Event::SubnetManager),
            (Changes::REREGISTER, Event::Reregister),
        ];
        // Down goes before the changes and active after them: a consumer that is told of an
        // active port finds its LID and tables in place.
        if active == Some(false) {
            self.device.dispatch(port, Event::PortDown);
        }
        for (change, event) in table {
            if events.changes.contains(change) {
                self.device.dispatch(port, event);
            }
        }
        if active == Some(true) {
            self.device.dispatch(port, Event::PortActive);
        }
    }

    /// Sends the traps that are due.
    fn send_traps(self: &Arc<Self>) {
        let mut out = [0; OUT_LEN];
        loop {
            let now = self.now().get();
            let polled = self.ports.managed.with(|managed| {
                let polled = managed.node.poll(now, &mut out);
                if let (None, Some(next)) = (polled.send, polled.next) {
                    let delay = next.saturating_sub(now).div_ceil(1_000_000);
                    let delay = u32::try_from(delay).unwrap_or(u32::MAX);
                    self.queue
                        .reschedule::<_, TRAPS>(self, msecs_to_jiffies(delay));
                }
                polled
            });
            let Some(answer) = polled.send else {
                return;
            };
            if let Some(bytes) = out.get(..answer.len) {
                self.send_bytes(answer.port, bytes);
            }
        }
    }

    /// Sends a packet that is complete.
    fn send_bytes(self: &Arc<Self>, port: u8, bytes: &[u8]) {
        let Ok(mut frame) = Frame::new(bytes.len()) else {
            return;
        };
        if let Ok(room) = frame.bytes_mut() {
            room.copy_from_slice(bytes);
        }
        let own = Packet::parse(bytes)
            .is_ok_and(|packet| self.ports.is_own(port, packet.head.lrh.dlid()));
        if own {
            self.loop_back(port, frame);
        } else {
            self.transmit(port, frame);
        }
    }

    /// The cable of a port is live, or is no longer.
    pub(super) fn set_carrier(self: &Arc<Self>, port: u8, up: bool) {
        let changed = self.manage(|node, _now| {
            let events = node.carrier(port, up);
            (events, events.changes.contains(Changes::STATE))
        });
        if up {
            self.refuse_if_disabled(port);
        }
        if changed && !up {
            self.counters.add(port, Counter::LinkDowned, 1);
        }
    }

    /// Answers a management datagram, if it is for the device itself.
    pub(crate) fn process_mad(
        self: &Arc<Self>,
        port: u8,
        source: u16,
        question: &[u8; mad::LEN],
        answer: &mut [u8; mad::LEN],
    ) -> Processed {
        if self.is_silent_on(question) {
            return Processed::Consumed;
        }
        let counters = |port: u8| self.counters.of_port(port);
        let outcome = self.manage(|node, now| {
            let source = Lid::new(source);
            let processed = node.process(port, question, source, now, &counters, answer);
            (processed.events, processed.outcome)
        });
        match outcome {
            Outcome::Reply => Processed::Reply,
            Outcome::Agents => Processed::Agents,
            Outcome::Consumed | Outcome::Refused => Processed::Consumed,
        }
    }

    /// Changes what a port says that it can do.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such port.
    pub(crate) fn set_capabilities(self: &Arc<Self>, port: u8, set: u32, clear: u32) -> Result {
        if port == 0 || port > self.ports() {
            return Err(EINVAL);
        }
        self.manage(|node, now| (node.set_capability(port, set, clear, now), ()));
        Ok(())
    }

    /// Changes what the device is called in the subnet.
    pub(crate) fn set_description(self: &Arc<Self>, text: &[u8; DESCRIPTION_LEN]) {
        self.manage(|node, now| (node.set_description(*text, now), ()));
    }

    /// Counts a packet of another partition, and tells the subnet manager.
    pub(super) fn bad_pkey(self: &Arc<Self>, port: u8, packet: &Packet<'_>) {
        let culprit = culprit(packet, packet.transport.pkey.get().into());
        self.manage(|node, now| (node.bad_p_key(port, &culprit, now), ()));
    }

    /// Counts a packet with another Q_Key, and tells the subnet manager.
    pub(super) fn bad_qkey(self: &Arc<Self>, port: u8, packet: &Packet<'_>, deth: &Deth) {
        let culprit = culprit(packet, deth.qkey());
        self.manage(|node, now| (node.bad_q_key(port, &culprit, now), ()));
    }
}
