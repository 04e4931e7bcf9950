// SPDX-License-Identifier: GPL-2.0-only

//! The capabilities and settings of a switch: SwitchInfo (IBTA 14.2.5.4).

use zerocopy::byteorder::big_endian::U16;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::bits::{
    bit_fields,
    octets,
    words,
    Field, //
};
use super::{
    attribute,
    Attribute, //
};

const _: () = assert!(size_of::<SwitchInfo>() == 20);

/// The tables of a switch and what becomes of packets that they say nothing of.
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
pub struct SwitchInfo {
    linear_cap: U16,
    random_cap: U16,
    multicast_cap: U16,
    linear_top: U16,
    default_port: u8,
    default_multicast_primary: u8,
    default_multicast_other: u8,
    life_time: u8,
    lids_per_port: U16,
    enforcement_cap: U16,
    capabilities: u8,
    reserved: u8,
    multicast_top: U16,
}

impl Attribute for SwitchInfo {
    const ID: u16 = attribute::SWITCH_INFO;
}

impl SwitchInfo {
    words! {
        /// The number of entries that the linear forwarding table has room for.
        linear_cap, set_linear_cap: u16;
        /// The number of entries that the random forwarding table has room for.
        random_cap, set_random_cap: u16;
        /// The number of entries that the multicast forwarding table has room for.
        multicast_cap, set_multicast_cap: u16;
        /// The last entry of the linear forwarding table that is used.
        linear_top, set_linear_top: u16;
        /// The number of LIDs that each port of a random forwarding table has.
        lids_per_port, set_lids_per_port: u16;
        /// The number of entries in the P_Key table of each external port.
        enforcement_cap, set_enforcement_cap: u16;
        /// The last entry of the multicast forwarding table that is used.
        multicast_top, set_multicast_top: u16;
    }

    octets! {
        /// The port for packets that no entry of a random forwarding table matches.
        default_port, set_default_port;
        /// The port for multicast packets that no entry matches.
        default_multicast_primary, set_default_multicast_primary;
        /// The port for such multicast packets that have come in by the primary port.
        default_multicast_other, set_default_multicast_other;
    }

    bit_fields! {
        /// The lifetime of a packet in the switch: 4.096 µs shifted left by this number, 5 bits.
        life_time_value, set_life_time_value: u8 = life_time[0, 5];
        /// Whether the state of a port has changed since this was last written with a one.
        port_state_change, set_port_state_change: bool = life_time[5, 1];
        /// Whether tables of levels to lanes can be written many at once, 2 bits.
        optimized_sl_to_vl, set_optimized_sl_to_vl: u8 = life_time[6, 2];
        /// Whether packets can be checked for their partition when they come in.
        inbound_enforcement_cap, set_inbound_enforcement_cap: bool = capabilities[0, 1];
        /// Whether they can be when they go out.
        outbound_enforcement_cap, set_outbound_enforcement_cap: bool = capabilities[1, 1];
        /// Whether raw packets can be refused when they come in.
        filter_raw_inbound_cap, set_filter_raw_inbound_cap: bool = capabilities[2, 1];
        /// Whether they can be when they go out.
        filter_raw_outbound_cap, set_filter_raw_outbound_cap: bool = capabilities[3, 1];
        /// Whether port 0 does what a port of a channel adapter does.
        enhanced_port0, set_enhanced_port0: bool = capabilities[4, 1];
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_smp_switch))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn switch_on_the_wire() {
        let golden: [u8; 20] = [
            0xc0, 0x00, 0x00, 0x01, 0x10, 0x00, 0x00, 0x30, // tables
            0xff, 0x02, 0x03, 0x94, // ports, life time 18 and a change
            0x00, 0x05, 0x00, 0x20, // identifiers of a port, partitions
            0xc8, 0x00, 0xc0, 0x08, // capabilities, top of the multicast table
        ];
        let mut info = SwitchInfo::default();
        info.set_linear_cap(0xc000);
        info.set_random_cap(1);
        info.set_multicast_cap(0x1000);
        info.set_linear_top(0x30);
        info.set_default_port(0xff);
        info.set_default_multicast_primary(2);
        info.set_default_multicast_other(3);
        info.set_life_time_value(18);
        info.set_port_state_change(true);
        info.set_lids_per_port(5);
        info.set_enforcement_cap(32);
        info.set_inbound_enforcement_cap(true);
        info.set_outbound_enforcement_cap(true);
        info.set_enhanced_port0(true);
        info.set_multicast_top(0xc008);
        let bytes: [u8; 20] = zerocopy::transmute!(info);
        assert_eq!(bytes, golden);
        assert_eq!(info.optimized_sl_to_vl(), 0);
        assert!(!info.filter_raw_inbound_cap() && !info.filter_raw_outbound_cap());
        assert_eq!(info.life_time_value(), 18);
    }
}
