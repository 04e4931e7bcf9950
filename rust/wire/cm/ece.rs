// SPDX-License-Identifier: GPL-2.0-only

//! Enhanced connection establishment: options of a vendor that both sides agree on.

use super::super::mad::Header;

/// The vendor's options that one side offers or accepts in a REQ, REP or SIDR_REP. The vendor
/// stands in bytes of the message that were reserved before, the options in the attribute
/// modifier of the header. All are zero where there are none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ece {
    /// The vendor: 24 bits, those above are lost.
    pub vendor_id: u32,
    /// The options, as the vendor defines them.
    pub options: u32,
}

impl Ece {
    /// Puts together the bytes of the vendor, highest first, and the options in the header.
    pub(super) const fn new([high, middle, low]: [u8; 3], header: &Header) -> Ece {
        Ece {
            vendor_id: u32::from_be_bytes([0, high, middle, low]),
            options: header.modifier(),
        }
    }

    /// The bytes of the vendor, highest first.
    pub(super) const fn vendor(self) -> [u8; 3] {
        let [_, high, middle, low] = self.vendor_id.to_be_bytes();
        [high, middle, low]
    }
}
