// SPDX-License-Identifier: GPL-2.0-only

//! The state of a subnet manager: SMInfo (IBTA 14.2.5.13).

use zerocopy::byteorder::big_endian::{
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

use super::super::bits::{
    bit_fields,
    words,
    Field, //
};
use super::{
    attribute,
    Attribute, //
};

const _: () = assert!(size_of::<SmInfo>() == 21);

/// A subnet manager and its state.
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
#[repr(C)]
pub struct SmInfo {
    guid: U64,
    sm_key: U64,
    activity: U32,
    priority_state: u8,
}

impl Attribute for SmInfo {
    const ID: u16 = attribute::SM_INFO;
}

impl SmInfo {
    words! {
        /// The GUID of the port that it runs on.
        guid, set_guid: u64;
        /// The key by which managers trust each other.
        sm_key, set_sm_key: u64;
        /// A counter of the manager's activity: a manager has died if its counter stands still.
        activity, set_activity: u32;
    }

    bit_fields! {
        /// The priority in the election of the master, where the highest wins, 4 bits.
        priority, set_priority: u8 = priority_state[0, 4];
        /// 0 not active, 1 discovering, 2 standby, 3 master, 4 bits.
        state, set_state: u8 = priority_state[4, 4];
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_smp_sm))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn manager_on_the_wire() {
        let golden: [u8; 21] = [
            0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x00, 0x01, // GUID
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09, // key
            0x00, 0x00, 0x01, 0x02, 0xe3, // activity, priority 14, master
        ];
        let mut info = SmInfo::default();
        info.set_guid(0x0002_c903_0000_0001);
        info.set_sm_key(9);
        info.set_activity(0x102);
        info.set_priority(14);
        info.set_state(3);
        let bytes: [u8; 21] = zerocopy::transmute!(info);
        assert_eq!(bytes, golden);
        assert_eq!((info.priority(), info.state()), (14, 3));
    }
}
