// SPDX-License-Identifier: GPL-2.0-only

//! The records of which the attribute `entries` of a load is an array.

use oxib_data_file::Entry;
use std::net::IpAddr;

/// The length of a record in bytes.
pub const LENGTH: usize = 48;

/// Encodes an entry as a record: the address (an IPv4 one as IPv4-mapped), the GID, then in network
/// byte order the queue pair number and the P_Key (0 if the entry has none), two zero bytes, the
/// lifetime, four zero bytes.
pub fn encode(entry: &Entry) -> [u8; LENGTH] {
    let address = match entry.address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let mut record = [0; LENGTH];
    let parts: [&[u8]; 6] = [
        &address.octets(),
        &entry.gid.bytes(),
        &entry.qpn.unwrap_or(0).to_be_bytes(),
        &entry.pkey.unwrap_or(0).to_be_bytes(),
        &[0; 2],
        &entry.lifetime.to_be_bytes(),
    ];
    for (place, byte) in record.iter_mut().zip(parts.into_iter().flatten()) {
        *place = *byte;
    }
    record
}

/// Encodes entries as an array of records.
pub fn encode_all(entries: &[Entry]) -> Vec<u8> {
    entries.iter().flat_map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxib_wire::gid::Gid;

    #[test]
    fn a_record_is_laid_out_as_agreed() {
        let entry = Entry {
            address: "10.0.0.1".parse().unwrap(),
            gid: Gid::from_bytes([0xfe, 0xc0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
            qpn: Some(0x48_49_4a),
            pkey: Some(0x8001),
            lifetime: 0x0102_0304,
        };
        let wanted = [
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1, //
            0xfe, 0xc0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, //
            0, 0x48, 0x49, 0x4a, 0x80, 0x01, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0,
        ];
        assert_eq!(encode(&entry), wanted);
        let bare = Entry {
            address: "fd00::1".parse().unwrap(),
            qpn: None,
            pkey: None,
            lifetime: 0,
            ..entry
        };
        let record = encode(&bare);
        assert_eq!(record[..2], [0xfd, 0]);
        assert_eq!(record[32..], [0; 16]);
        assert_eq!(encode_all(&[entry, bare]).len(), 2 * LENGTH);
    }
}
