// SPDX-License-Identifier: GPL-2.0-only

//! The traps 256 to 259: a request or a packet with a wrong key.

use zerocopy::byteorder::big_endian::{
    U16,
    U32,
    U64, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::super::bits::Field;
use super::super::super::gid::Gid;
use super::super::super::lid::Lid;
use super::super::super::qpn::Qpn;
use super::DETAILS_LEN;

/// The number of hops of a returning path that a trap about a wrong M_Key has room for.
pub const TRAP_HOPS: usize = 30;

/// The request that trap 256 reports.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct BadMKey {
    reserved: U16,
    lid: U16,
    dr_slid: U16,
    method: u8,
    reserved2: u8,
    attribute: U16,
    modifier: U32,
    m_key: U64,
    reserved3: u8,
    directed: u8,
    path: [u8; TRAP_HOPS],
}

/// The request with a wrong M_Key that a trap is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The LID of the requester.
    pub lid: Lid,
    /// The method of the request.
    pub method: u8,
    /// The attribute of the request.
    pub attribute: u16,
    /// The modifier of the attribute.
    pub modifier: u32,
    /// The M_Key that was wrong.
    pub m_key: u64,
}

impl BadMKey {
    /// A request that came by local identifiers, or by a directed route with a way back that
    /// begins with these ports.
    pub fn new(request: Request, directed: Option<(Lid, &[u8])>) -> BadMKey {
        let (dr_slid, back) = directed.unwrap_or((Lid::ZERO, &[]));
        let mut path = [0; TRAP_HOPS];
        for (to, from) in path.iter_mut().zip(back) {
            *to = *from;
        }
        let mut bad = BadMKey {
            reserved: U16::ZERO,
            lid: U16::new(request.lid.get()),
            dr_slid: U16::new(dr_slid.get()),
            method: request.method,
            reserved2: 0,
            attribute: U16::new(request.attribute),
            modifier: U32::new(request.modifier),
            m_key: U64::new(request.m_key),
            reserved3: 0,
            directed: 0,
            path,
        };
        Field::<bool, 0, 1>::set(&mut bad.directed, directed.is_some());
        Field::<bool, 1, 1>::set(&mut bad.directed, back.len() > TRAP_HOPS);
        let hops = u8::try_from(back.len().min(TRAP_HOPS)).unwrap_or(0);
        Field::<u8, 2, 6>::set(&mut bad.directed, hops);
        bad
    }
}

/// The packet that the traps 257 and 258 report.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct BadKey {
    reserved: U16,
    slid: U16,
    dlid: U16,
    key: U32,
    sl_source: U32,
    destination: U32,
    sgid: Gid,
    dgid: Gid,
}

/// The packet with a wrong key that a trap is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Culprit {
    /// The LID that the packet came from.
    pub slid: Lid,
    /// The LID that the packet went to.
    pub dlid: Lid,
    /// The P_Key or Q_Key of the packet.
    pub key: u32,
    /// The service level of the packet, 4 bits.
    pub sl: u8,
    /// The queue pair that sent it.
    pub source: Qpn,
    /// The queue pair that it was for.
    pub destination: Qpn,
    /// The first GID of its route header, zero if it has none.
    pub sgid: Gid,
    /// The second GID of its route header, zero if it has none.
    pub dgid: Gid,
}

impl Culprit {
    fn sl_source(&self) -> U32 {
        let mut word = U32::ZERO;
        Field::<u8, 0, 4>::set(&mut word, self.sl);
        Field::<u32, 8, 24>::set(&mut word, self.source.get());
        word
    }
}

impl BadKey {
    /// Creates the details for that packet.
    pub fn new(culprit: &Culprit) -> BadKey {
        BadKey {
            reserved: U16::ZERO,
            slid: U16::new(culprit.slid.get()),
            dlid: U16::new(culprit.dlid.get()),
            key: U32::new(culprit.key),
            sl_source: culprit.sl_source(),
            destination: U32::new(culprit.destination.get()),
            sgid: culprit.sgid,
            dgid: culprit.dgid,
        }
    }
}

/// The packet that trap 259 reports, and the place where it was seen.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct SwitchBadPKey {
    valid: U16,
    slid: U16,
    dlid: U16,
    key: U16,
    sl_source: U32,
    destination: U32,
    sgid: Gid,
    dgid: Gid,
    switch: U16,
    port: u8,
}

impl SwitchBadPKey {
    /// The bits for the packet's fields that are always known: identifiers, key, level, queue
    /// pairs.
    const VALID: u16 = 0b1_1111;

    /// The bits for the packet's GIDs.
    const VALID_GIDS: u16 = 0b11 << 5;

    /// Creates the details for that packet at that port of that switch.
    pub fn new(culprit: &Culprit, switch: Lid, port: u8) -> SwitchBadPKey {
        let gids = if culprit.sgid.is_zero() {
            0
        } else {
            Self::VALID_GIDS
        };
        SwitchBadPKey {
            valid: U16::new(Self::VALID | gids),
            slid: U16::new(culprit.slid.get()),
            dlid: U16::new(culprit.dlid.get()),
            key: U16::new(culprit.key as u16),
            sl_source: culprit.sl_source(),
            destination: U32::new(culprit.destination.get()),
            sgid: culprit.sgid,
            dgid: culprit.dgid,
            switch: U16::new(switch.get()),
            port,
        }
    }
}

const _: () = assert!(size_of::<BadMKey>() == DETAILS_LEN);
const _: () = assert!(size_of::<BadKey>() == 50);
const _: () = assert!(size_of::<SwitchBadPKey>() == 51);

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_smp_violation))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn wrong_keys_on_the_wire() {
        let request = Request {
            lid: Lid::new(0x10),
            method: 2,
            attribute: 0x15,
            modifier: 0x0102_0304,
            m_key: 0x1112_1314_1516_1718,
        };
        let bad = BadMKey::new(request, Some((Lid::PERMISSIVE, &[4, 5])));
        let bytes: [u8; DETAILS_LEN] = zerocopy::transmute!(bad);
        let golden = [
            0x00, 0x00, 0x00, 0x10, 0xff, 0xff, 0x02, 0x00, // sender, way, method
            0x00, 0x15, 0x01, 0x02, 0x03, 0x04, // attribute
            0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, // key
            0x00, 0x82, 0x04, 0x05, 0x00, // directed, two hops
        ];
        assert!(bytes.starts_with(&golden));
        let long = BadMKey::new(request, Some((Lid::PERMISSIVE, &[1; 40])));
        assert_eq!(long.directed, 0x80 | 0x40 | 30);

        let culprit = Culprit {
            slid: Lid::new(1),
            dlid: Lid::new(2),
            key: 0x8001,
            sl: 3,
            source: Qpn::from_bytes([1, 2, 3]),
            destination: Qpn::from_bytes([4, 5, 6]),
            sgid: Gid::ZERO,
            dgid: Gid::ZERO,
        };
        let bytes: [u8; 50] = zerocopy::transmute!(BadKey::new(&culprit));
        let golden = [
            0x00, 0x00, 0x00, 0x01, 0x00, 0x02, 0x00, 0x00, 0x80, 0x01, //
            0x30, 0x01, 0x02, 0x03, 0x00, 0x04, 0x05, 0x06,
        ];
        assert!(bytes.starts_with(&golden));
        let seen = SwitchBadPKey::new(&culprit, Lid::new(9), 12);
        let bytes: [u8; 51] = zerocopy::transmute!(seen);
        let golden = [
            0x00, 0x1f, 0x00, 0x01, 0x00, 0x02, 0x80, 0x01, //
            0x30, 0x01, 0x02, 0x03, 0x00, 0x04, 0x05, 0x06,
        ];
        assert!(bytes.starts_with(&golden));
        assert!(bytes.ends_with(&[0, 0, 9, 12]));
    }
}
