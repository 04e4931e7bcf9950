// SPDX-License-Identifier: GPL-2.0-only

//! Attributes of a port that packets need, kept beside the port so that reading them takes no
//! lock.
//!
//! A packet that comes while a subnet manager changes a port sees the port before or after the
//! change, in part or in whole, as with any hardware.

use core::sync::atomic::{
    AtomicU16,
    AtomicU64,
    Ordering, //
};

use super::port::PKEYS;
use crate::{
    fabric::port::Port,
    wire::{
        lid::Lid,
        pkey::Pkey, //
    }, //
};

const LMC: u32 = 16;
const LINKED: u64 = 1 << 24;
const ACTIVE: u64 = 1 << 25;
const MTU: u32 = 32;

/// A port, as packets see it.
pub(super) struct Link {
    /// The LID, the LMC, whether it is linked and active, and its MTU.
    word: AtomicU64,
    /// The GID prefix of the subnet.
    prefix: AtomicU64,
    /// The P_Key table; places beyond its end hold invalid keys.
    pkeys: [AtomicU16; PKEYS],
}

impl Link {
    /// Creates the attributes of a port that lets no packet pass.
    pub(super) const fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            prefix: AtomicU64::new(0),
            pkeys: [const { AtomicU16::new(0) }; PKEYS],
        }
    }

    /// Takes over what a port is now. With the ports locked.
    pub(super) fn follow(&self, port: &Port) {
        let info = port.info();
        let flag = |is: bool, bit: u64| if is { bit } else { 0 };
        let mtu = info.neighbor_mtu().bytes().unwrap_or(256);
        let word = u64::from(info.lid().get())
            | u64::from(info.lmc()) << LMC
            | flag(port.is_linked(), LINKED)
            | flag(port.is_active(), ACTIVE)
            | u64::from(mtu) << MTU;
        self.prefix.store(info.gid_prefix(), Ordering::Relaxed);
        for (place, key) in self.pkeys.iter().zip(port.pkeys()) {
            place.store(key.get(), Ordering::Relaxed);
        }
        // Release: a packet that sees this word sees what was stored before it, too.
        self.word.store(word, Ordering::Release);
    }

    /// The port as it is now.
    #[inline]
    pub(super) fn look(&self) -> View {
        // Pairs with the Release of `follow`.
        View(self.word.load(Ordering::Acquire))
    }

    /// Returns the GID prefix of the subnet.
    #[inline]
    pub(super) fn prefix(&self) -> u64 {
        self.prefix.load(Ordering::Relaxed)
    }

    /// The key at a place of the table.
    #[inline]
    pub(super) fn pkey(&self, index: u16) -> Option<Pkey> {
        let key = self.pkeys.get(usize::from(index))?;
        Some(Pkey::new(key.load(Ordering::Relaxed)))
    }

    /// Returns the index of the P_Key that lets a packet of that key in.
    pub(super) fn find_pkey(&self, pkey: Pkey) -> Option<u16> {
        (0..PKEYS as u16).find(|index| self.pkey(*index).is_some_and(|own| own.matches(pkey)))
    }
}

/// A port at one moment.
#[derive(Clone, Copy)]
pub(super) struct View(u64);

impl View {
    #[inline]
    pub(super) fn lid(self) -> Lid {
        Lid::new(self.0 as u16)
    }

    fn lmc(self) -> u32 {
        (self.0 >> LMC) as u32 & 7
    }

    /// The low bits of an address that tell the port's addresses from each other.
    #[inline]
    pub(super) fn path_bits(self, lid: Lid) -> u8 {
        lid.get() as u8 & ((1 << self.lmc()) - 1) as u8
    }

    /// Returns whether packets that manage the subnet can pass.
    #[inline]
    pub(super) fn is_linked(self) -> bool {
        self.0 & LINKED != 0
    }

    /// Returns whether every packet can pass.
    #[inline]
    pub(super) fn is_active(self) -> bool {
        self.0 & ACTIVE != 0
    }

    /// Bytes of data of a packet.
    #[inline]
    pub(super) fn mtu(self) -> usize {
        (self.0 >> MTU) as usize
    }

    /// Returns whether an address is one of the port's own.
    #[inline]
    pub(super) fn owns(self, lid: Lid) -> bool {
        let own = self.lid();
        own.is_unicast() && (own.get() ^ lid.get()) >> self.lmc() == 0
    }
}
