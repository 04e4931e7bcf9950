// SPDX-License-Identifier: GPL-2.0-only

//! The light of a port: LedInfo (IBTA 14.2.5.15).

use zerocopy::byteorder::big_endian::U32;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::bits::{
    bit_fields,
    Field, //
};
use super::{
    attribute,
    Attribute, //
};

const _: () = assert!(size_of::<LedInfo>() == 4);

/// Whether the light is on by which an administrator finds the port.
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
pub struct LedInfo {
    word: U32,
}

impl Attribute for LedInfo {
    const ID: u16 = attribute::LED_INFO;
}

impl LedInfo {
    bit_fields! {
        /// Whether it is on.
        is_on, set_on: bool = word[0, 1];
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_smp_led))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn light_is_the_highest_bit() {
        let mut led = LedInfo::default();
        led.set_on(true);
        let bytes: [u8; 4] = zerocopy::transmute!(led);
        assert_eq!(bytes, [0x80, 0, 0, 0]);
        assert!(led.is_on() && !LedInfo::default().is_on());
    }
}
