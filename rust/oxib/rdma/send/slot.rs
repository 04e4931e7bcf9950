// SPDX-License-Identifier: GPL-2.0-only

//! A slot of a send ring: a work request with its pieces of memory.

use kernel::prelude::*;

use super::{
    Work,
    FEW, //
};
use crate::{
    bindings,
    rdma::{
        device::Device,
        dma::{
            self,
            Pieces, //
        }, //
    },
    wire::qpn::Qpn, //
};

/// The flag of a send of memory that the device copies when it is posted.
const INLINE: bindings::ib_send_flags = bindings::ib_send_flags_IB_SEND_INLINE;

/// A work request with its pieces of memory, at a place of its own for good.
///
/// # Invariants
///
/// Once it is linked, `wr.wr.sg_list` points to the first element of `more` if `is_wide`, else of
/// `few`.
#[repr(C)]
pub(super) struct Slot<B> {
    pub(super) wr: bindings::ib_ud_wr,
    /// The pieces of most requests.
    few: [bindings::ib_sge; FEW],
    /// The pieces of requests that have more; empty if no request may.
    more: KVec<bindings::ib_sge>,
    /// The pieces are in `more`.
    is_wide: bool,
    /// Bytes on the wire, and packets there.
    pub(super) bytes: u32,
    pub(super) packets: u32,
    /// The memory, unless it went inline and is free already, or the request after this one has
    /// it.
    pub(super) buffer: Option<B>,
}

/// The bytes that the requests of one packet take off it, one after the other.
pub(super) struct Cursor {
    piece: usize,
    offset: usize,
}

/// A packet's memory lies in more pieces than a request takes.
pub(super) struct TooMany;

impl<B: Pieces> Slot<B> {
    /// Makes one for requests of up to `pieces` pieces.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(local_key: u32, qkey: u32, pieces: usize) -> Result<Self> {
        let mut wr: bindings::ib_ud_wr = pin_init::zeroed();
        wr.wr.num_sge = 1;
        wr.wr.opcode = bindings::ib_wr_opcode_IB_WR_SEND;
        wr.remote_qkey = qkey;
        let none = bindings::ib_sge {
            lkey: local_key,
            ..bindings::ib_sge::default()
        };
        let more = match pieces > FEW {
            true => KVec::from_elem(none, pieces, GFP_KERNEL)?,
            false => KVec::new(),
        };
        Ok(Self {
            wr,
            few: [none; FEW],
            more,
            is_wide: false,
            bytes: 0,
            packets: 0,
            buffer: None,
        })
    }

    /// Points the request to its memory and to the request after it.
    pub(super) fn link(&mut self, next: *mut bindings::ib_send_wr) -> *mut bindings::ib_send_wr {
        // INVARIANT: The slot does not move any more.
        self.wr.wr.sg_list = self.pieces_mut().as_mut_ptr();
        self.wr.wr.next = next;
        &raw mut self.wr.wr
    }

    #[inline(always)]
    pub(super) fn request(&self) -> *const bindings::ib_send_wr {
        &raw const self.wr.wr
    }

    #[inline(always)]
    pub(super) fn is_inline(&self) -> bool {
        self.wr.wr.send_flags & INLINE != 0
    }

    /// Returns whether the packet goes on in the next slot, which keeps its memory.
    pub(super) fn goes_on(&self) -> bool {
        self.buffer.is_none() && !self.is_inline()
    }

    fn pieces(&self) -> &[bindings::ib_sge] {
        match self.is_wide {
            true => &self.more,
            false => &self.few,
        }
    }

    fn pieces_mut(&mut self) -> &mut [bindings::ib_sge] {
        match self.is_wide {
            true => &mut self.more,
            false => &mut self.few,
        }
    }

    /// Moves the pieces to where there is room for more.
    #[cold]
    fn widen(&mut self) -> Result<(), TooMany> {
        let first = self.more.get_mut(..FEW).filter(|_| !self.is_wide);
        first.ok_or(TooMany)?.copy_from_slice(&self.few);
        self.is_wide = true;
        // INVARIANT: As it says.
        self.wr.wr.sg_list = self.more.as_mut_ptr();
        Ok(())
    }

    /// Makes the slot one for few pieces again, once the request is done.
    #[inline]
    pub(super) fn narrow(&mut self) {
        if core::mem::replace(&mut self.is_wide, false) {
            // INVARIANT: As it says.
            self.wr.wr.sg_list = self.few.as_mut_ptr();
        }
    }

    /// Names one piece of memory: an address as the device wants it. The slot is not wide.
    #[inline(always)]
    pub(super) fn set_whole(&mut self, address: u64, length: u32) {
        let [first, ..] = &mut self.few;
        first.addr = address;
        first.length = length;
        self.wr.wr.num_sge = 1;
        self.bytes = length;
        self.packets = 1;
    }

    /// Names several, in turn; their number is told by [`Self::set_count`].
    pub(super) fn set_piece(
        &mut self,
        index: usize,
        address: u64,
        length: u32,
    ) -> Result<(), TooMany> {
        if index >= self.pieces().len() {
            self.widen()?;
        }
        let sge = self.pieces_mut().get_mut(index).ok_or(TooMany)?;
        sge.addr = address;
        sge.length = length;
        Ok(())
    }

    pub(super) fn set_count(&mut self, count: usize) {
        self.wr.wr.num_sge = count as i32;
    }

    /// Says where the request goes, and what the device is to do with it.
    #[inline(always)]
    pub(super) fn address(
        &mut self,
        handle: *mut bindings::ib_ah,
        qpn: Qpn,
        sequence: u32,
        inline: bool,
    ) {
        self.wr.ah = handle;
        self.wr.remote_qpn = qpn.get();
        self.wr.wr.__bindgen_anon_1.wr_id = u64::from(sequence);
        self.wr.wr.send_flags = if inline { INLINE } else { 0 };
        self.wr.wr.opcode = bindings::ib_wr_opcode_IB_WR_SEND;
    }

    /// Sets the offloads that the device is to carry out for this request.
    pub(super) fn order(&mut self, work: &Work, header: *mut u8) {
        if work.checksum {
            self.wr.wr.send_flags |= bindings::ib_send_flags_IB_SEND_IP_CSUM;
        }
        if let Some(cut) = work.cut {
            self.wr.wr.opcode = bindings::ib_wr_opcode_IB_WR_LSO;
            self.wr.header = header.cast();
            self.wr.hlen = cut.headers as i32;
            self.wr.mss = cut.size as i32;
        }
    }

    /// Maps the memory that was named for `device` to read.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; nothing is mapped.
    ///
    /// # Safety
    ///
    /// The memory stays until [`Self::unmap`].
    pub(super) unsafe fn map(&mut self, device: &Device) -> Result {
        let count = self.wr.wr.num_sge as usize;
        for index in 0..count {
            let Some(sge) = self.pieces_mut().get_mut(index) else {
                break;
            };
            let address = core::ptr::NonNull::new(sge.addr as *mut u8).ok_or(EINVAL)?;
            // SAFETY: The caller guarantees that the memory stays until `unmap`.
            match unsafe { dma::map(device, address, sge.length as usize) } {
                Ok(mapped) => sge.addr = mapped,
                Err(error) => {
                    self.set_count(index);
                    self.unmap(device);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Ends the mappings of what was named and mapped; the device is done with it.
    pub(super) fn unmap(&self, device: &Device) {
        for sge in self.pieces().iter().take(self.wr.wr.num_sge as usize) {
            // SAFETY: Mapped by `map` with this length, or by the ring in its place.
            unsafe { dma::unmap(device, sge.addr, sge.length as usize) };
        }
    }
}

impl Cursor {
    /// Creates a cursor at byte `offset` of the first piece.
    pub(super) fn at(offset: usize) -> Self {
        Self { piece: 0, offset }
    }

    /// Names the next `length` bytes of `buffer` in `slot`, from piece `index` of that on. Returns
    /// the piece after them.
    pub(super) fn name<B: Pieces>(
        &mut self,
        slot: &mut Slot<B>,
        mut index: usize,
        buffer: &B,
        mut length: usize,
    ) -> Result<usize, TooMany> {
        while length != 0 {
            let (address, whole) = buffer.piece(self.piece);
            let there = whole.saturating_sub(self.offset);
            if there == 0 {
                if self.piece >= buffer.pieces() {
                    return Err(TooMany);
                }
                self.piece += 1;
                self.offset = 0;
                continue;
            }
            let taken = there.min(length);
            let address = address.as_ptr() as u64 + self.offset as u64;
            slot.set_piece(index, address, taken as u32)?;
            index += 1;
            length -= taken;
            self.offset += taken;
        }
        Ok(index)
    }
}

#[kernel::prelude::kunit_tests(oxib_send_slot)]
mod tests {
    use core::ptr::NonNull;

    use super::*;

    /// A packet with pieces at places that nobody looks at.
    struct Packet(&'static [(usize, usize)]);

    // SAFETY: Nobody reads the memory that is named.
    unsafe impl Pieces for Packet {
        fn pieces(&self) -> usize {
            self.0.len()
        }

        fn piece(&self, index: usize) -> (NonNull<u8>, usize) {
            let (address, length) = self.0.get(index).copied().unwrap_or((1, 0));
            let address = core::ptr::without_provenance_mut(address);
            (NonNull::new(address).unwrap_or(NonNull::dangling()), length)
        }

        fn length(&self) -> usize {
            self.0.iter().map(|(_, length)| length).sum()
        }

        fn done(self, _budget: i32) {}

        fn leave(self) {}
    }

    /// Returns address and length of the pieces that a slot names, from its second piece on.
    fn named(slot: &Slot<Packet>, count: usize) -> Option<KVec<(u64, u32)>> {
        let mut pieces = KVec::new();
        for sge in slot.pieces().get(1..count)? {
            pieces.push((sge.addr, sge.length), GFP_KERNEL).ok()?;
        }
        Some(pieces)
    }

    #[test]
    fn requests_take_one_after_the_other() -> Result {
        let packet = Packet(&[(0x1000, 10), (0x2000, 0), (0x3000, 5), (0x4000, 20)]);
        let mut slot = Slot::new(0, 0, FEW)?;
        let mut cursor = Cursor::at(4);
        let table: [(usize, &[(u64, u32)]); 4] = [
            (3, &[(0x1004, 3)]),
            (3, &[(0x1007, 3)]),
            (8, &[(0x3000, 5), (0x4000, 3)]),
            (17, &[(0x4003, 17)]),
        ];
        for (length, pieces) in table {
            let count = cursor
                .name(&mut slot, 1, &packet, length)
                .map_err(|TooMany| EINVAL)?;
            assert_eq!(named(&slot, count).as_deref(), Some(pieces));
        }
        assert!(cursor.name(&mut slot, 1, &packet, 1).is_err());
        Ok(())
    }

    #[test]
    fn there_are_only_so_many_pieces() -> Result {
        let packet = Packet(&[(0x1000, 1), (0x2000, 1), (0x3000, 1), (0x4000, 1)]);
        let mut slot = Slot::new(0, 0, FEW)?;
        assert!(Cursor::at(0).name(&mut slot, 1, &packet, 4).is_err());
        assert!(Cursor::at(0).name(&mut slot, 0, &packet, 4).is_ok());
        Ok(())
    }

    #[test]
    fn a_slot_is_wide_until_its_request_is_done() -> Result {
        let packet = Packet(&[
            (0x1000, 1),
            (0x2000, 1),
            (0x3000, 1),
            (0x4000, 1),
            (0x5000, 1),
        ]);
        let mut slot = Slot::new(7, 0, FEW + 1)?;
        slot.link(core::ptr::null_mut());
        let few = slot.wr.wr.sg_list;
        assert!(Cursor::at(0).name(&mut slot, 0, &packet, 5).is_ok());
        assert!(slot.wr.wr.sg_list != few);
        let expected: &[(u64, u32)] = &[(0x2000, 1), (0x3000, 1), (0x4000, 1), (0x5000, 1)];
        assert_eq!(named(&slot, 5).as_deref(), Some(expected));
        assert!(slot.pieces().iter().all(|sge| sge.lkey == 7));
        assert!(Cursor::at(0).name(&mut slot, 1, &packet, 5).is_err());
        slot.narrow();
        assert!(slot.wr.wr.sg_list == few);
        slot.set_whole(0x6000, 9);
        assert_eq!(slot.pieces().first().map(|sge| sge.addr), Some(0x6000));
        Ok(())
    }
}
