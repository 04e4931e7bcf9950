// SPDX-License-Identifier: GPL-2.0-only

//! Options of a device: the better or worse hardware that it stands for.

use kernel::{
    prelude::*,
    str::CString, //
};

use super::limits;
use crate::wire::cm::mtu::Mtu;

/// The most that can be chosen of [`Options::max_inline`].
pub(crate) const MAX_INLINE: u32 = 1024;

/// The least of [`Options::max_wr`]: what the kernel's own queue pairs for management take.
pub(crate) const MIN_WR: u32 = 512;

/// The most of [`Options::command_ms`].
pub(crate) const MAX_COMMAND_MS: u32 = 1000;

/// Places of a port's GUID table that an alias can have: all but the first.
pub(crate) const ALIASES: usize = super::port::GIDS - 1;

/// The options of a device.
pub(crate) struct Options {
    /// Bytes of a send that may stand in the request itself.
    pub(crate) max_inline: u32,
    /// The number of the largest payload: 1 for 256 bytes to 5 for 4096.
    pub(crate) mtu: u8,
    /// The net device of a second port.
    pub(crate) port2: Option<CString>,
    /// The device that its first port is joined with in memory.
    pub(crate) peer: Option<CString>,
    /// Whether the events of a completion vector run on the processor of its number.
    pub(crate) affinity: bool,
    /// Whether it computes and checks the checksums of IP datagrams in IPoIB messages.
    pub(crate) checksum: bool,
    /// Whether its consumers map their memory for it, as for hardware: requests name the
    /// addresses that come of that.
    pub(crate) dma: bool,
    /// Whether it cuts long TCP segments in IPoIB messages.
    pub(crate) tso: bool,
    /// More GUIDs of the first port; zeros behind them.
    pub(crate) alias_guids: [u64; ALIASES],
    /// Pieces of memory in a work request, at most [`limits::SEGMENTS`].
    pub(crate) max_sge: u32,
    /// Work requests of a queue, at most [`limits::WORK_REQUESTS`].
    pub(crate) max_wr: u32,
    /// Whether it has shared receive queues.
    pub(crate) srq: bool,
    /// Milliseconds that each command takes.
    pub(crate) command_ms: u32,
    /// Whether its ports say that they are of Omni-Path.
    pub(crate) omni_path: bool,
    /// Whether queue pairs can be members of groups.
    pub(crate) multicast: bool,
    /// Whether address handles can be made only where one may sleep.
    pub(crate) sleeping_ah: bool,
    /// Whether completion events come with interrupts off.
    pub(crate) interrupts: bool,
    /// Whether completions of different queue pairs overtake each other.
    pub(crate) overtaking: bool,
    /// Whether queue pairs that do not ask to be spared it get what they send to groups of
    /// theirs.
    pub(crate) own_multicast: bool,
}

impl Options {
    /// The options of a device for which none are set.
    pub(crate) const DEFAULT: Self = Self {
        max_inline: 256,
        mtu: 5,
        port2: None,
        peer: None,
        affinity: true,
        checksum: false,
        dma: false,
        tso: false,
        alias_guids: [0; ALIASES],
        max_sge: limits::SEGMENTS,
        max_wr: limits::WORK_REQUESTS,
        srq: true,
        command_ms: 0,
        omni_path: false,
        multicast: true,
        sleeping_ah: false,
        interrupts: false,
        overtaking: false,
        own_multicast: false,
    };

    /// Returns the most bytes of payload that a packet of a port may have.
    #[inline]
    pub(crate) fn largest_payload(&self) -> usize {
        Mtu::new(self.mtu).bytes().unwrap_or(256).into()
    }

    /// Returns a copy of the options.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let port2 = self.port2.as_deref().map(CString::try_from).transpose()?;
        let peer = self.peer.as_deref().map(CString::try_from).transpose()?;
        Ok(Self {
            port2,
            peer,
            ..*self
        })
    }
}
