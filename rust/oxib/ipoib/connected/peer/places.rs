// SPDX-License-Identifier: GPL-2.0-only

//! Places for new peers, and which peers give way when there is none.

use kernel::{
    alloc::flags::__GFP_NOWARN,
    prelude::*,
    rbtree::RBTreeNodeReservation, //
};

use super::{
    tag,
    Connecting,
    Failures,
    Peers,
    Slot,
    State,
    Tag, //
};
use crate::wire::hwaddr::HwAddr;

/// Most peers of one queue, so that a scan of a large network does not take all memory.
pub(super) const PEERS: usize = 16_384;

/// A place that a new peer may have.
enum Vacancy {
    /// A place without a peer.
    Free(usize),
    /// The place of the refused peer that may be asked again first.
    Refused(usize),
    /// No place: all have peers, and none of these was refused.
    None,
}

impl<L, P> Peers<L, P> {
    /// Makes room for a new peer, which is to be connected.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if the table is full, and no peer in it was refused; `ENOMEM`.
    pub(super) fn note(&mut self, peer: HwAddr, now: u64) -> Result<Tag> {
        // The queue's lock is held. A failure needs no warning: the packet goes as a datagram.
        let node = RBTreeNodeReservation::new(GFP_ATOMIC | __GFP_NOWARN)?;
        let index = match self.find_vacancy() {
            Vacancy::Free(index) => index,
            // A large table does not grow without a block of some megabytes.
            Vacancy::Refused(index) => self.add_place().unwrap_or(index),
            Vacancy::None => self.add_place()?,
        };
        let slot = self.slots.get_mut(index).ok_or(ENOSPC)?;
        let connecting = State::Connecting(Connecting::new(Failures::NONE, now));
        let old = slot.peer.replace((peer, connecting));
        let tag = tag(index, slot.generation);
        if let Some((old, _)) = old {
            self.index.remove(&old);
        }
        self.index.insert(node.into_node(peer, index as u16));
        Ok(tag)
    }

    /// Finds a place for a new peer, in one pass: the queue's lock is held.
    fn find_vacancy(&self) -> Vacancy {
        let mut first: Option<(u64, usize)> = None;
        for (index, slot) in self.slots.iter().enumerate() {
            match &slot.peer {
                None => return Vacancy::Free(index),
                Some((_, State::Refused(refused)))
                    if first.is_none_or(|(until, _)| refused.until < until) =>
                {
                    first = Some((refused.until, index));
                }
                Some(_) => {}
            }
        }
        first.map_or(Vacancy::None, |(_, index)| Vacancy::Refused(index))
    }

    /// Adds a place to the table.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if it has as many as it may have; `ENOMEM`.
    fn add_place(&mut self) -> Result<usize> {
        let index = self.slots.len();
        if index >= self.most {
            return Err(ENOSPC);
        }
        let slot = Slot {
            generation: self.first,
            peer: None,
        };
        self.slots.push(slot, GFP_ATOMIC | __GFP_NOWARN)?;
        Ok(index)
    }
}
