// SPDX-License-Identifier: GPL-2.0-only

//! Records of a bulk load: entries in a packed array.

use core::fmt;
use core::net::Ipv6Addr;

use zerocopy::byteorder::big_endian::{
    U16,
    U32, //
};
use zerocopy::FromBytes as _;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::entry::{
    check_address,
    parse_gid,
    parse_pkey,
    parse_qpn,
    Entry,
    Fault, //
};

/// A record, in network byte order.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Record {
    address: [u8; 16],
    gid: [u8; 16],
    qpn: U32,
    pkey: U16,
    reserved: U16,
    lifetime: U32,
    reserved2: U32,
}

/// Why a record is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// A field of the entry that cannot stand in one.
    Entry(Fault),
    /// A reserved field is not zero.
    Reserved,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Entry(fault) => fmt::Display::fmt(fault, f),
            Wrong::Reserved => f.write_str("a reserved field is not zero"),
        }
    }
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Self {
        Wrong::Entry(fault)
    }
}

impl Record {
    /// Bytes of a record.
    pub const LEN: usize = 48;

    /// Takes an array of records; `None` if it does not end with one.
    pub fn all(bytes: &[u8]) -> Option<&[Record]> {
        <[Record]>::ref_from_bytes(bytes).ok()
    }

    /// The record of an entry.
    pub fn new(entry: &Entry) -> Record {
        Record {
            address: super::entry::to_key(entry.address),
            gid: entry.gid.bytes(),
            qpn: U32::new(entry.qpn.map_or(0, |qpn| qpn.get())),
            pkey: U16::new(entry.pkey.map_or(0, |pkey| pkey.get())),
            reserved: U16::new(0),
            lifetime: U32::new(entry.lifetime),
            reserved2: U32::new(0),
        }
    }

    /// Returns the entry of the record. An IPv4 address stands in the record as its IPv4-mapped
    /// IPv6 address, and 0 stands for no queue pair and for no partition.
    ///
    /// # Errors
    ///
    /// The first thing that cannot stand in an entry.
    pub fn entry(&self) -> Result<Entry, Wrong> {
        if self.reserved.get() != 0 || self.reserved2.get() != 0 {
            return Err(Wrong::Reserved);
        }
        Ok(Entry {
            address: check_address(Ipv6Addr::from(self.address).to_canonical())?,
            gid: parse_gid(&self.gid)?,
            qpn: match self.qpn.get() {
                0 => None,
                number => Some(parse_qpn(number)?),
            },
            pkey: match self.pkey.get() {
                0 => None,
                key => Some(parse_pkey(key)?),
            },
            lifetime: self.lifetime.get(),
        })
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_acm_record))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;
    use core::net::{
        IpAddr,
        Ipv4Addr, //
    };

    /// 10.1.2.3 → fec0::1:0:0:0:5, QPN 0x123456, P_Key 0x8001, ten seconds.
    const GOOD: [u8; Record::LEN] = [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3, // address
        0xfe, 0xc0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, // GID
        0, 0x12, 0x34, 0x56, 0x80, 1, 0, 0, // QPN, P_Key, reserved
        0, 0, 0, 10, 0, 0, 0, 0, // lifetime, reserved
    ];

    fn parse(bytes: &[u8]) -> Option<Result<Entry, Wrong>> {
        Record::all(bytes)?.first().map(Record::entry)
    }

    #[test]
    fn good_record_there_and_back() {
        let entry = parse(&GOOD).and_then(Result::ok);
        assert!(entry.is_some_and(|entry| {
            entry.address == IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3))
                && entry.qpn.is_some_and(|qpn| qpn.get() == 0x12_3456)
                && entry.pkey.is_some_and(|pkey| pkey.get() == 0x8001)
                && entry.lifetime == 10
        }));
        let back = entry.map(|entry| Record::new(&entry));
        assert_eq!(back.and_then(|record| record.entry().ok()), entry);
        assert!(Record::all(&GOOD[..47]).is_none());
        assert_eq!(Record::all(&[]).map(<[Record]>::len), Some(0));
    }

    #[test]
    fn each_field_is_checked() {
        for (place, bytes, wrong) in [
            (
                12,
                &[0, 0, 0, 0][..],
                Wrong::Entry(Fault::AddressUnspecified),
            ),
            (12, &[127, 0, 0, 1], Wrong::Entry(Fault::AddressLoopback)),
            (12, &[224, 0, 0, 1], Wrong::Entry(Fault::AddressMulticast)),
            (12, &[255; 4], Wrong::Entry(Fault::AddressBroadcast)),
            (0, &[0; 16], Wrong::Entry(Fault::AddressUnspecified)),
            (0, &[0xff, 2], Wrong::Entry(Fault::AddressMulticast)),
            (16, &[0; 16], Wrong::Entry(Fault::GidZero)),
            (16, &[0xff], Wrong::Entry(Fault::GidMulticast)),
            (
                16,
                &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
                Wrong::Entry(Fault::GidLoopback),
            ),
            (32, &[0, 0, 0, 1], Wrong::Entry(Fault::Qpn(1))),
            (32, &[1, 0, 0, 0], Wrong::Entry(Fault::Qpn(1 << 24))),
            (36, &[0x80, 0], Wrong::Entry(Fault::Pkey(0x8000))),
            (39, &[1], Wrong::Reserved),
            (44, &[1], Wrong::Reserved),
        ] {
            let mut record = GOOD;
            for (slot, byte) in record.iter_mut().skip(place).zip(bytes) {
                *slot = *byte;
            }
            assert_eq!(parse(&record), Some(Err(wrong)));
        }
        let mut record = GOOD;
        record[32..38].fill(0);
        assert!(parse(&record).is_some_and(|entry| {
            entry.is_ok_and(|entry| entry.qpn.is_none() && entry.pkey.is_none())
        }));
    }
}
