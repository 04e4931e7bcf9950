// SPDX-License-Identifier: GPL-2.0-only

//! Packets that are larger than what goes to their destination: their senders are told
//! (RFC 4755 §5).

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::sync::Arc;

use crate::{
    ipoib::interface::Interface,
    net::skb::Skb,
    wire::encap, //
};

/// Most messages that wait to be sent.
const WAITING: u32 = 64;

/// Number of messages that wait to be sent.
#[derive(Default)]
pub(super) struct Messages(AtomicU32);

impl Messages {
    fn begin(&self) -> bool {
        let is_room = self.0.fetch_add(1, Ordering::Relaxed) < WAITING;
        if !is_room {
            self.end();
        }
        is_room
    }

    fn end(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl super::Session {
    /// Drops a packet that is longer than `most` bytes with the encapsulation header; its sender
    /// is told, and the route that it came by.
    ///
    /// The message may go out by the queue that the packet is on. That queue's lock is held, so the
    /// message is sent from elsewhere.
    pub(super) fn too_big(self: &Arc<Self>, interface: &Interface, mut packet: Skb, most: u32) {
        let mtu = most.saturating_sub(encap::LEN as u32);
        interface.device().count_send_dropped();
        packet.update_path_mtu(mtu);
        if !self.messages.begin() {
            return;
        }
        let this = self.clone();
        let spawned = interface.searches.spawn(move || {
            packet.report_too_big(mtu);
            this.messages.end();
        });
        if spawned.is_err() {
            self.messages.end();
        }
    }
}
