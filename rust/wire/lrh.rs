// SPDX-License-Identifier: GPL-2.0-only

//! The local route header, with which every packet begins (IBTA 7.7).

use core::fmt;
use zerocopy::byteorder::big_endian::U16;
use zerocopy::FromBytes as _;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::bits::Field;
use super::lid::Lid;

/// Length in bytes of the header.
pub const LEN: usize = 8;

/// The virtual lane of subnet management, which no data may use (IBTA 7.6.3).
pub const VL_MANAGEMENT: u8 = 15;

/// The only version of the link (IBTA 7.7.2).
pub const VERSION: u8 = 0;

/// The unit of the packet length in bytes (IBTA 7.7.8).
pub const WORD: usize = 4;

const _: () = assert!(size_of::<Lrh>() == LEN);

/// `LNH`: what follows the header (IBTA 7.7.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// 0: a raw packet with an ethertype.
    Raw,
    /// 1: a raw packet with an IPv6 header.
    RawIpv6,
    /// 2: a transport header: the packet stays in its subnet.
    Transport,
    /// 3: a global route header, then a transport header.
    Global,
}

impl Next {
    const fn from_bits(bits: u8) -> Next {
        match bits & 3 {
            0 => Next::Raw,
            1 => Next::RawIpv6,
            2 => Next::Transport,
            _ => Next::Global,
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Next::Raw => 0,
            Next::RawIpv6 => 1,
            Next::Transport => 2,
            Next::Global => 3,
        }
    }
}

/// The fields of a local route header. Values that do not fit their field lose the bits above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Virtual lane, 4 bits.
    pub vl: u8,
    /// Service level, 4 bits.
    pub sl: u8,
    /// The header that follows.
    pub next: Next,
    /// The LID that the packet goes to.
    pub dlid: Lid,
    /// The LID that the packet comes from.
    pub slid: Lid,
    /// The length of the packet in words of four bytes, from this header to the invariant CRC
    /// with both counted, 11 bits.
    pub words: u16,
}

/// Byte 0, the high half.
type Vl = Field<u8, 0, 4>;
/// Byte 0, the low half.
type Version = Field<u8, 4, 4>;
/// Byte 1, the high half.
type Sl = Field<u8, 0, 4>;
/// Byte 1, the lowest two bits.
type NextHeader = Field<u8, 6, 2>;
/// Bytes 4 and 5 without the five highest bits, which are reserved.
type Words = Field<u16, 5, 11>;

/// A local route header.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Lrh {
    lane: u8,
    service: u8,
    dlid: U16,
    length: U16,
    slid: U16,
}

impl Lrh {
    /// A header of version 0.
    pub fn new(link: Link) -> Lrh {
        let mut lrh = Lrh {
            lane: 0,
            service: 0,
            dlid: U16::new(link.dlid.get()),
            length: U16::ZERO,
            slid: U16::new(link.slid.get()),
        };
        Vl::set(&mut lrh.lane, link.vl);
        Sl::set(&mut lrh.service, link.sl);
        NextHeader::set(&mut lrh.service, link.next.bits());
        Words::set(&mut lrh.length, link.words);
        lrh
    }

    /// The header at the beginning of a packet, and the rest.
    ///
    /// # Errors
    ///
    /// [`LrhError`] if the header is not all there or of another version.
    pub fn parse(packet: &[u8]) -> Result<(&Lrh, &[u8]), LrhError> {
        let (lrh, rest) =
            Lrh::ref_from_prefix(packet).map_err(|_| LrhError::Short(packet.len()))?;
        match lrh.version() {
            VERSION => Ok((lrh, rest)),
            version => Err(LrhError::Version(version)),
        }
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// The link version, which should be [`VERSION`].
    pub fn version(&self) -> u8 {
        Version::get(self.lane)
    }

    /// All but the version.
    pub fn link(&self) -> Link {
        Link {
            vl: self.vl(),
            sl: self.sl(),
            next: self.next(),
            dlid: self.dlid(),
            slid: self.slid(),
            words: Words::get(self.length),
        }
    }

    /// The virtual lane, 4 bits.
    pub fn vl(&self) -> u8 {
        Vl::get(self.lane)
    }

    /// The service level, 4 bits.
    pub fn sl(&self) -> u8 {
        Sl::get(self.service)
    }

    /// The header that follows.
    pub fn next(&self) -> Next {
        Next::from_bits(NextHeader::get(self.service))
    }

    /// The LID that the packet goes to.
    pub const fn dlid(&self) -> Lid {
        Lid::new(self.dlid.get())
    }

    /// The LID that the packet comes from.
    pub const fn slid(&self) -> Lid {
        Lid::new(self.slid.get())
    }

    /// The length of the packet in bytes, with this header and the invariant CRC.
    pub fn packet_len(&self) -> usize {
        usize::from(Words::get(self.length)) * WORD
    }
}

/// Why a packet does not begin with a local route header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LrhError {
    /// A packet that ends within the header; its length in bytes.
    Short(usize),
    /// A packet of another version of the link; that version.
    Version(u8),
}

impl fmt::Display for LrhError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LrhError::Short(length) => write!(
                f,
                "packet of {length} bytes is shorter than the {LEN} bytes of the local route header"
            ),
            LrhError::Version(version) => {
                write!(f, "packet of link version {version}, not {VERSION}")
            }
        }
    }
}

impl core::error::Error for LrhError {}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_lrh))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    /// The sample packet of IBTA 7.8.4: lane 7, level 1, 14 words from 0x17d2 to 0x375c.
    const SAMPLE: [u8; LEN] = [0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2];

    #[test]
    fn fields_of_the_sample() {
        let link = Link {
            vl: 7,
            sl: 1,
            next: Next::Transport,
            dlid: Lid::new(0x375c),
            slid: Lid::new(0x17d2),
            words: 14,
        };
        let empty: &[u8] = &[];
        assert_eq!(Lrh::new(link).bytes(), SAMPLE);
        let parsed = Lrh::parse(&SAMPLE);
        assert_eq!(
            parsed.map(|(lrh, rest)| (lrh.link(), rest)),
            Ok((link, empty))
        );
        assert_eq!(Lrh::new(link).packet_len(), 56);
    }

    #[test]
    fn fields_do_not_run_into_each_other() {
        let none = Link {
            vl: 0,
            sl: 0,
            next: Next::Raw,
            dlid: Lid::ZERO,
            slid: Lid::ZERO,
            words: 0,
        };
        let table = [
            (Link { vl: 0xff, ..none }, [0xf0, 0, 0, 0, 0, 0, 0, 0]),
            (Link { sl: 0xff, ..none }, [0, 0xf0, 0, 0, 0, 0, 0, 0]),
            (
                Link {
                    next: Next::Global,
                    ..none
                },
                [0, 3, 0, 0, 0, 0, 0, 0],
            ),
            (
                Link {
                    next: Next::RawIpv6,
                    ..none
                },
                [0, 1, 0, 0, 0, 0, 0, 0],
            ),
            (
                Link {
                    dlid: Lid::PERMISSIVE,
                    ..none
                },
                [0, 0, 0xff, 0xff, 0, 0, 0, 0],
            ),
            (
                Link {
                    words: 0xffff,
                    ..none
                },
                [0, 0, 0, 0, 0x07, 0xff, 0, 0],
            ),
            (
                Link {
                    slid: Lid::PERMISSIVE,
                    ..none
                },
                [0, 0, 0, 0, 0, 0, 0xff, 0xff],
            ),
        ];
        for (link, bytes) in table {
            assert_eq!(Lrh::new(link).bytes(), bytes);
        }
    }

    #[test]
    fn what_is_no_header() {
        for length in 0..LEN {
            let short = SAMPLE.get(..length).unwrap_or(&SAMPLE);
            assert_eq!(Lrh::parse(short), Err(LrhError::Short(length)));
        }
        let mut bytes = SAMPLE;
        if let Some(first) = bytes.first_mut() {
            *first = 0x71;
        }
        assert_eq!(Lrh::parse(&bytes), Err(LrhError::Version(1)));
    }
}
