// SPDX-License-Identifier: GPL-2.0-only

//! The forwarding tables of a switch, a block at a time: LinearForwardingTable and
//! MulticastForwardingTable (IBTA 14.2.5.10, 14.2.5.12).

use zerocopy::byteorder::big_endian::U16;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::bits::Field;
use super::{
    attribute,
    Attribute,
    DATA_LEN, //
};

/// The number of entries in a block of a linear table.
pub const LINEAR_BLOCK: usize = 64;

/// The number of entries in a block of a multicast table.
pub const MULTICAST_BLOCK: usize = 32;

/// The number of ports that one entry of a block of a multicast table covers.
pub const MULTICAST_PORTS: u8 = 16;

/// The port of an entry that has none: packets to that address are dropped.
pub const NO_PORT: u8 = 0xff;

const _: () = assert!(size_of::<Linear>() == DATA_LEN);
const _: () = assert!(size_of::<Multicast>() == DATA_LEN);

/// The ports by which to leave for 64 addresses; the attribute modifier says which addresses.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct Linear(pub [u8; LINEAR_BLOCK]);

impl Attribute for Linear {
    const ID: u16 = attribute::LINEAR_FORWARDING;
}

/// The ports, out of 16, by which to leave for each of 32 multicast addresses, the lowest port in
/// the lowest bit. The attribute modifier says which ports and which addresses:
/// [`MulticastBlock`].
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Debug,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct Multicast([U16; MULTICAST_BLOCK]);

impl Attribute for Multicast {
    const ID: u16 = attribute::MULTICAST_FORWARDING;
}

impl Multicast {
    /// A block of these sets of ports.
    pub fn new(ports: [u16; MULTICAST_BLOCK]) -> Multicast {
        Multicast(ports.map(U16::new))
    }

    /// The sets of ports.
    pub fn ports(&self) -> [u16; MULTICAST_BLOCK] {
        self.0.map(U16::get)
    }
}

/// The part of a multicast forwarding table that a block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MulticastBlock {
    /// The number of the group of 16 ports, 4 bits.
    pub position: u8,
    /// The number of the group of 32 addresses, 9 bits.
    pub block: u16,
}

/// The highest four bits of the modifier.
type Position = Field<u8, 0, 4>;
/// The lowest nine bits of the modifier.
type Block = Field<u16, 23, 9>;

impl MulticastBlock {
    /// The part that an attribute modifier says.
    pub fn from_modifier(modifier: u32) -> MulticastBlock {
        let word = zerocopy::byteorder::big_endian::U32::new(modifier);
        MulticastBlock {
            position: Position::get(word),
            block: Block::get(word),
        }
    }

    /// Returns the attribute modifier of this part.
    pub fn modifier(self) -> u32 {
        let mut word = zerocopy::byteorder::big_endian::U32::ZERO;
        Position::set(&mut word, self.position);
        Block::set(&mut word, self.block);
        word.get()
    }
}

#[cfg_attr(
    KUNIT_OF_SHARED,
    kernel::prelude::kunit_tests(oxib_wire_smp_forwarding)
)]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn modifiers() {
        let table = [
            (0, 0, 0),
            (0x0000_01ff, 0, 0x1ff),
            (0xf000_0003, 15, 3),
            (0x2000_0040, 2, 0x40),
        ];
        for (modifier, position, block) in table {
            let part = MulticastBlock { position, block };
            assert_eq!(MulticastBlock::from_modifier(modifier), part);
            assert_eq!(part.modifier(), modifier);
        }
        // What is between the two is reserved.
        assert_eq!(MulticastBlock::from_modifier(0x0fff_fe00).modifier(), 0);
    }
}
