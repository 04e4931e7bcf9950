// SPDX-License-Identifier: GPL-2.0-only

//! The end of a connection that we send by: what is left of its packets.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    Sender,
    Senders, //
};
use crate::{
    ipoib::{
        connected::{
            peer::{
                Ended,
                Fate, //
            },
            session::Session, //
        },
        interface::Interface, //
    },
    net::skb::Skb,
    rdma::rc_send::Tag, //
};

impl Senders {
    /// Sends no more on a connection, and has it taken away.
    pub(super) fn break_off(&mut self, tag: Tag) {
        if self.peers.break_off(tag) {
            self.session.close_soon(self.index, tag);
        }
    }

    fn end(&mut self, tag: Tag, fate: Fate, now: u64) -> Ended<Sender, Skb> {
        if self.chained == Some(tag) {
            self.chained = None;
        }
        self.peers.end(tag, fate, now)
    }
}

impl Interface {
    /// Returns whether a refusal by the peer is the first one since the last established
    /// connection to it; see [`Peers::is_first_refusal`].
    ///
    /// [`Peers::is_first_refusal`]: crate::ipoib::connected::peer::Peers::is_first_refusal
    pub(in crate::ipoib::connected) fn is_first_refusal(
        &self,
        session: &Arc<Session>,
        queue: u32,
        tag: Tag,
    ) -> bool {
        let Ok(mut guard) = self.device().lock_queue(queue) else {
            return false;
        };
        let senders = guard.as_mut().and_then(|data| data.senders.as_mut());
        senders
            .filter(|senders| senders.is_of(session))
            .is_some_and(|senders| senders.peers.is_first_refusal(tag))
    }

    /// Handles the end of a connection, or of the try to establish one. Sleeps.
    pub(in crate::ipoib::connected) fn end_connection(
        &self,
        session: &Arc<Session>,
        queue: u32,
        tag: Tag,
        fate: Fate,
    ) {
        let now = self.now();
        let Ok(mut guard) = self.device().lock_queue(queue) else {
            return;
        };
        let senders = guard.as_mut().and_then(|data| data.senders.as_mut());
        let Some(senders) = senders.filter(|senders| senders.is_of(session)) else {
            return;
        };
        let most = senders.datagram as u32;
        let ended = senders.end(tag, fate, now);
        // Without the queue's lock: to reset the queue pair sleeps.
        drop(guard);
        if let Some(sender) = ended.link {
            self.end_sender(session, queue, sender);
        }
        for packet in ended.waiting {
            if fate == Fate::Moved {
                packet.transmit_again();
            } else if ended.is_notified {
                session.too_big(self, packet, most);
            } else {
                self.device().count_send_dropped();
            }
        }
    }

    /// Ends what is left of a connection's packets.
    fn end_sender(&self, session: &Arc<Session>, queue: u32, mut sender: Sender) {
        // Reset before `clear` frees the packets: the device reads their memory until then.
        if let Err(error) = sender.ring.queue_pair().reset() {
            let name = self.device().name();
            dev_err!(
                self.rdma(),
                "{name}: the queue pair of a connection cannot be reset: {error:?}; its buffers \
                 stay with the device\n"
            );
        }
        let (requests, unsignalled) = (
            sender.ring.capacity() - sender.ring.free(),
            sender.ring.unsignalled(),
        );
        let ended = sender.ring.clear();
        drop(sender);
        for _ in 0..ended.packets {
            self.device().count_send_dropped();
        }
        // An interface that goes down has stopped its queues for good.
        let goes_on = session.is_open();
        let Ok(mut guard) = self.device().lock_queue(queue) else {
            return;
        };
        guard.with_queue(|data, stack| {
            let Some(data) = data else { return };
            // A later session has counts of its own.
            let senders = data.senders.as_mut();
            if let Some(senders) = senders.filter(|senders| senders.is_of(session)) {
                senders.in_flight -= requests;
                senders.unsignalled -= unsignalled;
                if goes_on {
                    data.wake(stack);
                }
            }
        });
    }
}
