// SPDX-License-Identifier: GPL-2.0-only

//! The link-layer address option of neighbour discovery (RFC 4861 §4.6.1) with IPoIB's hardware
//! addresses (RFC 4391 §9.3).

use core::fmt;
use zerocopy::FromBytes as _;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::hwaddr::HwAddr;

/// Length in bytes of the option.
pub const LEN: usize = 24;

/// Options count their length in units of this many bytes (RFC 4861 §4.6).
const UNIT: usize = 8;

/// The option's own length field.
const UNITS: u8 = (LEN / UNIT) as u8;

const _: () = assert!(size_of::<LinkLayerOption>() == LEN);
const _: () = assert!(UNITS as usize * UNIT == LEN);

/// An option type that means something to nobody outside of an experiment (RFC 4727 §5).
const EXPERIMENT: u8 = 253;

/// The owner of the address that the option gives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// The sender's: in solicitations and router advertisements.
    Source = 1,
    /// The target's: in neighbour advertisements and redirects.
    Target = 2,
}

impl Kind {
    /// The option type, 1 or 2 (RFC 4861 §4.6.1).
    pub const fn get(self) -> u8 {
        self as u8
    }
}

/// The option as IPoIB lays it out: the address ends with the option, and two zero bytes stand
/// before it.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct LinkLayerOption {
    kind: u8,
    /// The length of the option in units of 8 bytes.
    length: u8,
    /// Sent as zero and ignored by the receiver.
    reserved: [u8; 2],
    address: HwAddr,
}

impl LinkLayerOption {
    /// The option that gives this address.
    pub const fn new(kind: Kind, address: HwAddr) -> LinkLayerOption {
        LinkLayerOption {
            kind: kind.get(),
            length: UNITS,
            reserved: [0; 2],
            address,
        }
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// The address that the option gives.
    pub const fn address(&self) -> HwAddr {
        self.address
    }

    /// Makes it give another address.
    pub const fn set_address(&mut self, address: HwAddr) {
        self.address = address;
    }

    /// Makes it an option that receivers pass over (RFC 4861 §4.6) and that gives no address.
    pub const fn hide(&mut self) {
        *self = LinkLayerOption {
            kind: EXPERIMENT,
            length: UNITS,
            reserved: [0; 2],
            address: HwAddr::from_bytes([0; HwAddr::LEN]),
        };
    }
}

/// Finds the address of this kind among the options of a neighbour discovery message: what follows
/// its fixed part. Options of other types are passed over (RFC 4861 §4.6); of several of this one
/// the first counts.
///
/// # Errors
///
/// [`NdError`] if the options up to the one sought are not well-formed (the receiver must then
/// drop the whole message, RFC 4861 §6.1 and §7.1), or if the one sought has another length than
/// IPoIB's.
pub fn find(options: &[u8], kind: Kind) -> Result<Option<HwAddr>, NdError> {
    Ok(locate(options, kind)?.map(|(_, option)| option.address))
}

/// [`find`], of an option that is to be changed.
///
/// # Errors
///
/// The same.
pub fn find_mut(options: &mut [u8], kind: Kind) -> Result<Option<&mut LinkLayerOption>, NdError> {
    let Some((at, _)) = locate(options, kind)? else {
        return Ok(None);
    };
    let option = options.get_mut(at..).unwrap_or_default();
    Ok(LinkLayerOption::mut_from_prefix(option)
        .ok()
        .map(|(option, _)| option))
}

/// Finds the option, and its offset in the options.
fn locate(options: &[u8], kind: Kind) -> Result<Option<(usize, &LinkLayerOption)>, NdError> {
    let mut rest = options;
    while let [number, units, ..] = *rest {
        let length = usize::from(units) * UNIT;
        if length == 0 {
            return Err(NdError::ZeroLength(number));
        }
        let (option, after) = rest
            .split_at_checked(length)
            .ok_or(NdError::Short(number))?;
        if number == kind.get() {
            return LinkLayerOption::ref_from_bytes(option)
                .map(|found| Some((options.len() - rest.len(), found)))
                .map_err(|_| NdError::AddressLength(units));
        }
        rest = after;
    }
    match *rest {
        [number] => Err(NdError::Short(number)),
        _ => Ok(None),
    }
}

/// Why the options of a neighbour discovery message are not usable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NdError {
    /// The message ends within an option; the option's type.
    Short(u8),
    /// An option claims the length zero; the option's type.
    ZeroLength(u8),
    /// A link-layer address of another length than IPoIB's; its units of 8 bytes.
    AddressLength(u8),
}

impl fmt::Display for NdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NdError::Short(number) => {
                write!(f, "neighbour discovery message ends within option {number}")
            }
            NdError::ZeroLength(number) => {
                write!(f, "neighbour discovery option {number} of length 0")
            }
            NdError::AddressLength(units) => write!(
                f,
                "link-layer address option of length {units}, where IPoIB's has {UNITS}"
            ),
        }
    }
}

impl core::error::Error for NdError {}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_nd))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::super::gid::Gid;
    use super::super::qpn::Qpn;
    use super::*;

    const ADDRESS: HwAddr = HwAddr::new(
        Qpn::from_bytes([0x12, 0x34, 0x56]),
        Gid::from_bytes([
            0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x0f, 0xa1, 0xb1,
        ]),
    );

    const SOURCE: [u8; LEN] = [
        1, 3, 0, 0, 0x00, 0x12, 0x34, 0x56, //
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x0f, 0xa1, 0xb1,
    ];

    /// An MTU option of 1020 before a target address.
    const MTU_THEN_TARGET: [u8; 32] = [
        5, 1, 0, 0, 0, 0, 0x03, 0xfc, //
        2, 3, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, // reserved bytes that are not zero
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x0f, 0xa1, 0xb1,
    ];

    #[test]
    fn options_on_the_wire() {
        let option = LinkLayerOption::new(Kind::Source, ADDRESS);
        assert_eq!(option.bytes(), SOURCE);
        assert_eq!(option.address(), ADDRESS);
        let [kind, ..] = LinkLayerOption::new(Kind::Target, ADDRESS).bytes();
        assert_eq!(kind, 2);
    }

    #[test]
    fn finding() {
        let table: [(&[u8], Kind, Option<HwAddr>); 6] = [
            (&[], Kind::Source, None),
            (&SOURCE, Kind::Source, Some(ADDRESS)),
            (&SOURCE, Kind::Target, None),
            (&MTU_THEN_TARGET, Kind::Target, Some(ADDRESS)),
            (&MTU_THEN_TARGET, Kind::Source, None),
            // Ethernet's form of the other kind is none of this one's business.
            (&[1, 1, 2, 0, 0, 0, 0, 1], Kind::Target, None),
        ];
        for (options, kind, address) in table {
            assert_eq!(find(options, kind), Ok(address));
        }
    }

    #[test]
    fn malformed_options() {
        let cut = SOURCE.split_last().map_or(&[][..], |(_, cut)| cut);
        let table: [(&[u8], NdError); 6] = [
            (&[1], NdError::Short(1)),
            (&[5, 1, 0, 0], NdError::Short(5)),
            (cut, NdError::Short(1)),
            (&[5, 0, 0, 0, 0, 0, 0, 0], NdError::ZeroLength(5)),
            (&[1, 1, 2, 0, 0, 0, 0, 1], NdError::AddressLength(1)),
            // A good option, then one that is cut off.
            (&[5, 1, 0, 0, 0, 0, 3, 0xfc, 14], NdError::Short(14)),
        ];
        for (options, error) in table {
            assert_eq!(find(options, Kind::Source), Err(error));
        }
    }
}
