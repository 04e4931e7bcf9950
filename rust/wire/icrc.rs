// SPDX-License-Identifier: GPL-2.0-only

//! The invariant CRC (IBTA 7.8.1): over all that must not change between the two ends.
//!
//! It is the CRC-32 of Ethernet over the packet from its first byte to the last before the CRC
//! itself, but what switches and routers may change counts as ones:
//!
//! | header | in a subnet | with a global route header |
//! | --- | --- | --- |
//! | LRH | virtual lane | all |
//! | GRH | – | traffic class, flow label, hop limit |
//! | BTH | byte 4 (congestion marks) | byte 4 |
//!
//! The CRC-32 itself can be another's, the kernel's for instance: everything here takes the
//! function that continues one.

use super::{
    bth,
    grh,
    lrh, //
};

/// Length in bytes of the CRC.
pub const LEN: usize = 4;

/// The offset of the congestion marks in a base transport header.
const BTH_VARIANT: usize = 4;

/// The headers that are masked, at their longest.
const MASKED_LEN: usize = lrh::LEN + grh::LEN + bth::LEN;

/// The polynomial of CRC-32, lowest bit first.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// The number of bytes that one step of the table method takes.
const STEP: usize = 8;

/// `TABLES[n][b]`: what byte `b` does to the CRC when `n` bytes follow it in its step.
static TABLES: [[u32; 256]; STEP] = tables();

const fn tables() -> [[u32; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        // Lossless: below 256.
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg());
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut step = 1;
    while step < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[step - 1][byte];
            tables[step][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        step += 1;
    }
    tables
}

const fn entry(table: usize, byte: u8) -> u32 {
    // Constant tables and a byte: both indices are in range, and the compiler sees it.
    TABLES[table][byte as usize]
}

/// Continues a CRC-32, neither inverted at its begin nor at its end, as the kernel's `crc32_le`
/// does: eight bytes at a time, by tables.
pub fn crc32(mut crc: u32, bytes: &[u8]) -> u32 {
    let mut steps = bytes.chunks_exact(STEP);
    for step in &mut steps {
        let Some([a, b, c, d, e, f, g, h]) = step.first_chunk::<STEP>() else {
            break;
        };
        let [w, x, y, z] = crc.to_le_bytes();
        crc = entry(7, a ^ w)
            ^ entry(6, b ^ x)
            ^ entry(5, c ^ y)
            ^ entry(4, d ^ z)
            ^ entry(3, *e)
            ^ entry(2, *f)
            ^ entry(1, *g)
            ^ entry(0, *h);
    }
    for byte in steps.remainder() {
        crc = (crc >> 8) ^ entry(0, crc.to_le_bytes()[0] ^ byte);
    }
    crc
}

/// An invariant CRC that is being made, piece by piece.
#[derive(Clone, Copy)]
pub struct Icrc<F> {
    crc: u32,
    update: F,
}

impl<F: Fn(u32, &[u8]) -> u32> Icrc<F> {
    /// Begins with a packet's first bytes, which must hold all of its local route header, its
    /// global route header (if `global`) and its base transport header, and may hold more.
    /// `update` continues a CRC-32, as [`crc32`] does.
    ///
    /// `None` if they do not.
    #[inline]
    pub fn begin(bytes: &[u8], global: bool, update: F) -> Option<Icrc<F>> {
        let mut masked = [0; MASKED_LEN];
        let headers = if global {
            mask_global(&mut masked, bytes)?
        } else {
            mask_local(&mut masked, bytes)?
        };
        // All ones before the first byte, and inverted after the last, as with Ethernet's CRC-32.
        let crc = update(u32::MAX, masked.get(..headers)?);
        let crc = update(crc, bytes.get(headers..)?);
        Some(Icrc { crc, update })
    }

    /// Continues with the next bytes.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        self.crc = (self.update)(self.crc, bytes);
    }

    /// The four bytes as they stand on the wire.
    #[inline]
    pub fn finish(self) -> [u8; LEN] {
        (!self.crc).to_le_bytes()
    }
}

/// The invariant CRC of a packet within a subnet, as [`Icrc`] makes it, of which all that comes
/// before the CRC is there to be written to: it is masked where it stands, and is as it was
/// afterwards. `None` if it does not hold the headers.
pub fn of_local(bytes: &mut [u8], update: impl Fn(u32, &[u8]) -> u32) -> Option<[u8; LEN]> {
    const HEADERS: usize = lrh::LEN + bth::LEN;
    const VARIANT: usize = lrh::LEN + BTH_VARIANT;
    let headers = bytes.first_chunk_mut::<HEADERS>()?;
    let before = (headers[0], headers[VARIANT]);
    // The virtual lane is the high half of the first byte.
    headers[0] |= 0xf0;
    headers[VARIANT] = 0xff;
    let crc = update(u32::MAX, bytes);
    let headers = bytes.first_chunk_mut::<HEADERS>()?;
    (headers[0], headers[VARIANT]) = before;
    Some((!crc).to_le_bytes())
}

/// Copies the headers of a packet within a subnet and masks them. Answers their length.
fn mask_local(masked: &mut [u8], bytes: &[u8]) -> Option<usize> {
    const HEADERS: usize = lrh::LEN + bth::LEN;
    let masked = masked.first_chunk_mut::<HEADERS>()?;
    *masked = *bytes.first_chunk()?;
    masked[0] |= 0xf0;
    masked[lrh::LEN + BTH_VARIANT] = 0xff;
    Some(HEADERS)
}

/// Copies and masks the headers of a packet with a global route header. Returns their length.
fn mask_global(masked: &mut [u8], bytes: &[u8]) -> Option<usize> {
    const HEADERS: usize = lrh::LEN + grh::LEN + bth::LEN;
    const HOP_LIMIT: usize = lrh::LEN + 7;
    let masked = masked.first_chunk_mut::<HEADERS>()?;
    *masked = *bytes.first_chunk()?;
    if let Some(lrh) = masked.first_chunk_mut::<{ lrh::LEN }>() {
        *lrh = [0xff; lrh::LEN];
    }
    // The version stays, which is the high half of the first byte.
    masked[lrh::LEN] |= 0x0f;
    masked[lrh::LEN + 1] = 0xff;
    masked[lrh::LEN + 2] = 0xff;
    masked[lrh::LEN + 3] = 0xff;
    masked[HOP_LIMIT] = 0xff;
    masked[lrh::LEN + grh::LEN + BTH_VARIANT] = 0xff;
    Some(HEADERS)
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_icrc))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    /// The sample packet of IBTA 7.8.4, within a subnet.
    const LOCAL: [u8; 52] = [
        0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, // LRH
        0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, // BTH
        0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, // RETH
        0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, //
        0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, // payload
        0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00,
    ];

    /// The invariant CRC of `LOCAL`.
    const LOCAL_ICRC: [u8; LEN] = [0x96, 0x25, 0xb7, 0x5a];

    /// The sample packet with a global route header.
    const GLOBAL: [u8; 92] = [
        0x70, 0x13, 0x37, 0x5c, 0x00, 0x18, 0x17, 0xd2, // LRH
        0x60, 0x00, 0x00, 0x00, 0x00, 0x30, 0x1b, 0x10, // GRH
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x25, //
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x26, //
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x17, //
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x96, //
        0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, // BTH
        0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, // RETH
        0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, //
        0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, // payload
        0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00,
    ];

    /// The CRC of `GLOBAL` by another CRC-32, masked by hand.
    const GLOBAL_ICRC: [u8; LEN] = [0xad, 0xbf, 0x9e, 0x56];

    fn of(packet: &[u8], global: bool) -> Option<[u8; LEN]> {
        Icrc::begin(packet, global, crc32).map(Icrc::finish)
    }

    #[test]
    fn published_checks() {
        let table: [(&[u8], u32); 4] = [
            (b"", 0),
            (b"a", 0xe8b7_be43),
            (b"123456789", 0xcbf4_3926),
            (b"The quick brown fox jumps over the lazy dog", 0x414f_a339),
        ];
        for (bytes, crc) in table {
            assert_eq!(!crc32(u32::MAX, bytes), crc);
        }
    }

    #[test]
    fn sample_packets() {
        assert_eq!(of(&LOCAL, false), Some(LOCAL_ICRC));
        assert_eq!(of(&GLOBAL, true), Some(GLOBAL_ICRC));
    }

    /// Returns the bits of the byte at `index` that do not change a packet's CRC.
    fn ignored(index: usize, global: bool) -> u8 {
        match (index, global) {
            (0, false) => 0xf0,
            (12, false) => 0xff,
            (0..=7 | 9..=11 | 15 | 52, true) => 0xff,
            (8, true) => 0x0f,
            _ => 0,
        }
    }

    #[test]
    fn variant_fields_do_not_count() {
        let packets: [(&[u8], bool); 2] = [(&LOCAL, false), (&GLOBAL, true)];
        for (packet, global) in packets {
            let golden = of(packet, global);
            for (index, _) in packet.iter().enumerate() {
                for bit in 0..8 {
                    let mut changed = [0; GLOBAL.len()];
                    let Some(changed) = changed.get_mut(..packet.len()) else {
                        continue;
                    };
                    changed.copy_from_slice(packet);
                    if let Some(byte) = changed.get_mut(index) {
                        *byte ^= 1 << bit;
                    }
                    // What is ignored counts as ones, so clearing it changes nothing either.
                    let same = ignored(index, global) & (1 << bit) != 0;
                    let unchanged = of(changed, global) == golden;
                    assert_eq!(unchanged, same);
                }
            }
        }
    }

    #[test]
    fn in_place() {
        let mut packet = LOCAL;
        assert_eq!(of_local(&mut packet, crc32), Some(LOCAL_ICRC));
        assert_eq!(packet, LOCAL);
        assert_eq!(
            of_local(packet.get_mut(..19).unwrap_or_default(), crc32),
            None
        );
    }

    #[test]
    fn piece_by_piece() {
        let pieces: (&[u8], &[u8]) = LOCAL.split_at(37);
        let mut icrc = Icrc::begin(pieces.0, false, crc32);
        if let Some(icrc) = &mut icrc {
            icrc.update(pieces.1);
        }
        assert_eq!(icrc.map(Icrc::finish), Some(LOCAL_ICRC));
        assert_eq!(of(LOCAL.get(..19).unwrap_or_default(), false), None);
        assert_eq!(of(GLOBAL.get(..59).unwrap_or_default(), true), None);
    }
}
