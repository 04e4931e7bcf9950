// SPDX-License-Identifier: GPL-2.0-only

//! Signals between the ends of a cable, besides packets: that a subnet manager has taken the link
//! down at one end, or that the owner of that end has gone or come, which electricity would tell
//! on a real cable.

use kernel::prelude::*;

use super::frame::Frame;
use crate::fabric::events::LinkCommand;

/// The first byte of a signal, in place of a local route header's: a version that no packet has.
const MARK: u8 = 0x0f;

/// The shortest frame that every net device carries as it is.
const LENGTH: usize = 46;

/// The state of the link at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signal {
    Down = 0,
    Up = 1,
}

impl Signal {
    /// Returns the signals for the other end that a command causes, in this order.
    pub(crate) fn of(command: LinkCommand) -> &'static [Self] {
        match command {
            LinkCommand::Down => &[Self::Down, Self::Up],
            LinkCommand::Disable => &[Self::Down],
            LinkCommand::Enable => &[Self::Up],
        }
    }

    /// Makes a frame that says so.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn frame(self) -> Result<Frame> {
        let mut frame = Frame::new(LENGTH)?;
        let bytes = frame.bytes_mut()?;
        bytes.fill(0);
        if let Some([mark, signal]) = bytes.first_chunk_mut() {
            *mark = MARK;
            *signal = self as u8;
        }
        Ok(frame)
    }

    /// Reads a frame; `None` if it is a packet, or nothing that is known.
    #[inline]
    pub(crate) fn read(frame: &[u8]) -> Option<Self> {
        match frame {
            [MARK, 0, ..] => Some(Self::Down),
            [MARK, 1, ..] => Some(Self::Up),
            _ => None,
        }
    }
}
