// SPDX-License-Identifier: GPL-2.0-only

//! Sending of packets that are not one piece of memory to be sent as it is: packets in pieces,
//! packets with checksums that the device computes, long segments that it or the driver cuts.

use core::ops::Range;

use kernel::prelude::*;

use super::{
    slot::{
        Cursor,
        TooMany, //
    },
    Destination,
    Refused,
    SendQueue, //
};
use crate::{
    bindings,
    rdma::{
        cq::Notify,
        dma::Pieces, //
    }, //
};

/// Bytes of headers that the driver writes for one packet.
pub(crate) const HEADER: usize = 128;

/// Room for the headers of a part of the ring's packets, in one piece of memory.
const GROUP: usize = 32;

/// Offloads that a packet asks the device for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Work {
    /// Compute the checksums of IPv4 and of TCP or UDP in it.
    pub(crate) checksum: bool,
    /// Cut the packet into parts; `None` to send it whole.
    pub(crate) cut: Option<Cut>,
}

/// The sizes by which the device cuts a packet.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    /// Bytes of headers at the packet's beginning, which each of its parts gets.
    pub(crate) headers: usize,
    /// Bytes of data in each part, but for the last.
    pub(crate) size: usize,
}

impl Cut {
    /// Packets that come of one of so many bytes.
    fn packets(&self, length: usize) -> usize {
        length
            .saturating_sub(self.headers)
            .div_ceil(self.size.max(1))
            .max(1)
    }
}

/// Memory for the headers that the driver writes: a place for each slot of a ring, which does not
/// move.
pub(super) struct Headers(KVec<KBox<[[u8; HEADER]; GROUP]>>);

impl Headers {
    /// No memory: packets are cut by the device or not at all.
    pub(super) const NONE: Self = Self(KVec::new());

    /// Places for `count` slots.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(count: u32) -> Result<Self> {
        let mut groups = KVec::new();
        for _ in 0..(count as usize).div_ceil(GROUP) {
            groups.push(KBox::new([[0; HEADER]; GROUP], GFP_KERNEL)?, GFP_KERNEL)?;
        }
        Ok(Self(groups))
    }

    fn get(&mut self, slot: usize) -> Option<&mut [u8; HEADER]> {
        self.0.get_mut(slot / GROUP)?.get_mut(slot % GROUP)
    }

    pub(super) fn memory(&self) -> usize {
        self.0.len() * GROUP * HEADER
    }

    /// Leaves the memory to a device that may still read it: it is never freed.
    #[cold]
    pub(super) fn leave(self) {
        if !self.0.is_empty() {
            // SAFETY: The pointer is the beginning of an allocation, which is never freed.
            unsafe { bindings::oxib_not_leak(self.0.as_ptr().cast()) };
        }
        core::mem::forget(self);
    }
}

impl<B: Pieces, S: Notify, R: Notify> SendQueue<B, S, R> {
    /// Makes room for headers that the driver writes, for [`Self::push_parts`], if there is none.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn make_headers(&mut self) -> Result {
        // Requests with the device may name the room there is.
        if self.headers.memory() == 0 {
            self.headers = Headers::new(self.capacity())?;
        }
        Ok(())
    }

    /// Adds a packet of any shape to the chain, for the device to do `work` with. Returns the
    /// bytes that it is on the wire.
    ///
    /// # Errors
    ///
    /// The packet back, with the reason; the chain is as it was.
    pub(crate) fn push_pieces(
        &mut self,
        to: Destination,
        buffer: B,
        work: Work,
    ) -> core::result::Result<u32, Refused<B>> {
        let Some(handle) = self.handle(to.handle) else {
            return Err(Refused::Failed(buffer));
        };
        let Some(sequence) = self.ring.vacancy() else {
            return Err(Refused::Full(buffer));
        };
        let Some(slot) = self.slots.get_mut(self.ring.slot(sequence)) else {
            return Err(Refused::Full(buffer));
        };
        let length = buffer.length();
        let headers = work.cut.map_or(0, |cut| cut.headers);
        let (first, there) = buffer.piece(0);
        if headers > there {
            return Err(Refused::Failed(buffer));
        }
        let named = Cursor::at(headers).name(slot, 0, &buffer, length - headers);
        let Ok(count) = named.and_then(|n| if n > self.pieces { Err(TooMany) } else { Ok(n) })
        else {
            slot.narrow();
            return Err(Refused::Scattered(buffer));
        };
        slot.set_count(count);
        let inline = work.cut.is_none() && length <= self.inline_limit;
        slot.address(handle, to.qpn, sequence, inline);
        slot.order(&work, first.as_ptr());
        if !inline && !self.virtual_dma {
            // SAFETY: The slot keeps the buffer until the completion, where the mapping ends.
            if unsafe { slot.map(self.qp.device()) }.is_err() {
                slot.narrow();
                return Err(Refused::Failed(buffer));
            }
        }
        slot.packets = work.cut.map_or(1, |cut| cut.packets(length)) as u32;
        slot.bytes = (length + (slot.packets as usize - 1) * headers) as u32;
        slot.buffer = Some(buffer);
        self.inlined += u32::from(inline);
        let bytes = slot.bytes;
        self.ring.push();
        Ok(bytes)
    }

    /// Adds a packet to the chain in `count` parts, each a packet of its own. `part` writes the
    /// headers of the part of a number, and says how long these are and which of the packet's
    /// bytes come after them: those after the part before, for the first one those after its own
    /// headers. Returns the bytes of all on the wire.
    ///
    /// # Errors
    ///
    /// The packet back, with the reason; the chain is as it was.
    pub(crate) fn push_parts(
        &mut self,
        to: Destination,
        buffer: B,
        count: u32,
        mut part: impl FnMut(&B, u32, &mut [u8; HEADER]) -> Option<(usize, Range<usize>)>,
    ) -> core::result::Result<u32, Refused<B>> {
        if self.ring.free() < count || count == 0 {
            return Err(Refused::Full(buffer));
        }
        let mut bytes = 0;
        let mut cursor = None;
        for number in 0..count {
            match self.push_part(to, &buffer, number, &mut cursor, &mut part) {
                Ok(length) => bytes += length,
                Err(fault) => {
                    // The one that was not added, too.
                    let failed = self.ring.slot(self.ring.next());
                    if let Some(slot) = self.slots.get_mut(failed) {
                        slot.narrow();
                    }
                    self.withdraw(number);
                    return Err(match fault {
                        Fault::Scattered => Refused::Scattered(buffer),
                        Fault::Failed => Refused::Failed(buffer),
                    });
                }
            }
        }
        let last = self.ring.slot(self.ring.next().wrapping_sub(1));
        if let Some(slot) = self.slots.get_mut(last) {
            slot.buffer = Some(buffer);
        }
        Ok(bytes)
    }

    /// Adds one part. The packet's memory is to go into the last one's slot.
    fn push_part(
        &mut self,
        to: Destination,
        buffer: &B,
        number: u32,
        cursor: &mut Option<Cursor>,
        part: &mut impl FnMut(&B, u32, &mut [u8; HEADER]) -> Option<(usize, Range<usize>)>,
    ) -> core::result::Result<u32, Fault> {
        let handle = self.handle(to.handle).ok_or(Fault::Failed)?;
        let sequence = self.ring.vacancy().ok_or(Fault::Failed)?;
        let index = self.ring.slot(sequence);
        let room = self.headers.get(index).ok_or(Fault::Failed)?;
        let slot = self.slots.get_mut(index).ok_or(Fault::Failed)?;
        // The device reads the room and no more.
        let (headers, data) = part(buffer, number, room)
            .filter(|(headers, _)| *headers <= room.len())
            .ok_or(Fault::Failed)?;
        let cursor = cursor.get_or_insert_with(|| Cursor::at(data.start));
        slot.set_piece(0, room.as_ptr() as u64, headers as u32)?;
        let count = cursor.name(slot, 1, buffer, data.len())?;
        if count > self.pieces {
            return Err(Fault::Scattered);
        }
        slot.set_count(count);
        slot.address(handle, to.qpn, sequence, false);
        if !self.virtual_dma {
            // SAFETY: The headers' room stays as long as the ring, the packet until the
            // completion of its last part, which comes after this one's; there the mappings end.
            unsafe { slot.map(self.qp.device()) }.map_err(|_| Fault::Failed)?;
        }
        slot.packets = 1;
        slot.bytes = (headers + data.len()) as u32;
        slot.buffer = None;
        let bytes = slot.bytes;
        self.ring.push();
        Ok(bytes)
    }

    /// Takes the last `count` requests out of the chain again: parts of a packet that is given
    /// back.
    fn withdraw(&mut self, count: u32) {
        for sequence in self.ring.withdraw(count).iter() {
            if let Some(slot) = self.slots.get_mut(self.ring.slot(sequence)) {
                if !self.virtual_dma {
                    slot.unmap(self.qp.device());
                }
                slot.narrow();
            }
        }
    }
}

/// The reasons for which a part is not added.
enum Fault {
    /// Its memory lies in too many pieces.
    Scattered,
    Failed,
}

impl From<TooMany> for Fault {
    fn from(_: TooMany) -> Self {
        Self::Scattered
    }
}
