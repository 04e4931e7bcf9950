// SPDX-License-Identifier: GPL-2.0-only

//! The crossing of frames from one end of a cable to the other, where both are in this kernel.

use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::bindings;

/// The crossing while it is open: a part of the module that outlives all cables and all frames.
pub(crate) struct Crossing(());

impl Crossing {
    /// Opens the crossing. One at a time. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Ended by the drop.
        to_result(unsafe { bindings::softib_crossing_begin() })?;
        Ok(Self(()))
    }
}

impl Drop for Crossing {
    fn drop(&mut self) {
        // SAFETY: Begun by `new`; there are no cables any more.
        unsafe { bindings::softib_crossing_end() };
    }
}

#[kernel::prelude::kunit_tests(softib_crossing)]
mod tests {
    use super::*;
    use crate::net::{
        frame::{
            Frame,
            VL15, //
        },
        signal::Signal, //
    };

    /// Returns the bit of the queue of a frame to the end of that address.
    fn queue(frame: &Frame, end: usize) -> u64 {
        // SAFETY: The function reads the frame, and of the end nothing but its address.
        let number = unsafe { bindings::softib_crossing_queue(frame.as_raw(), end as *const _) };
        1 << number
    }

    /// Makes a packet on a lane, to a queue pair.
    fn packet(lane: u8, pair: u32) -> Result<Frame> {
        let mut frame = Frame::new(64)?;
        let bytes = frame.bytes_mut()?;
        bytes.fill(0);
        bytes[0] = lane << 4;
        bytes[12..16].copy_from_slice(&pair.to_be_bytes());
        Ok(frame)
    }

    #[test]
    fn management_has_queues_of_its_own() -> Result {
        let ends = || (0..64).map(|number| number << 12);
        let (managing, signal) = (packet(VL15, 0)?, Signal::Down.frame()?);
        let (mut management, mut data) = (0u64, 0u64);
        for end in ends() {
            management |= queue(&managing, end);
            // A signal stays behind the answer to the command that caused it.
            assert_eq!(queue(&signal, end), queue(&managing, end));
        }
        // Also what a program sends to queue pair 0.
        for pair in 0..64 {
            let datagram = packet(0, pair)?;
            for end in ends() {
                data |= queue(&datagram, end);
            }
        }
        assert_eq!(management & data, 0);
        // Each of both kinds has several.
        assert!(management.count_ones() > 1);
        assert!(data.count_ones() > 1);
        Ok(())
    }
}
