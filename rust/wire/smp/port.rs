// SPDX-License-Identifier: GPL-2.0-only

//! The state, capabilities and settings of a port: PortInfo (IBTA 14.2.5.6).

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

use super::super::bits::{
    bit_fields,
    octets,
    words,
    Field,
    Value, //
};
use super::super::cm::mtu::Mtu;
use super::super::lid::Lid;
use super::{
    attribute,
    Attribute,
    DATA_LEN, //
};

const _: () = assert!(size_of::<PortInfo>() == DATA_LEN);

/// `PortState`: how far a port has come (IBTA 7.2.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// 0: to be left as it is.
    NoChange,
    /// 1: there is no link.
    Down,
    /// 2: a link, for subnet management alone.
    Init,
    /// 3: configured, but not yet for all packets.
    Armed,
    /// 4: for all packets.
    Active,
    /// Any other number, which is reserved.
    Reserved(u8),
}

impl Value for State {
    const BITS: u32 = 4;

    fn from_bits(bits: u32) -> State {
        match bits {
            0 => State::NoChange,
            1 => State::Down,
            2 => State::Init,
            3 => State::Armed,
            4 => State::Active,
            other => State::Reserved(other as u8),
        }
    }

    fn bits(self) -> u32 {
        match self {
            State::NoChange => 0,
            State::Down => 1,
            State::Init => 2,
            State::Armed => 3,
            State::Active => 4,
            State::Reserved(other) => u32::from(other),
        }
    }
}

/// `PortPhysicalState` and `LinkDownDefaultState`: what the link does (IBTA 14.2.5.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Physical {
    /// 0: to be left as it is.
    NoChange,
    /// 1: it sends nothing.
    Sleep,
    /// 2: it looks for its far end.
    Polling,
    /// 3: nothing, until it is told to look.
    Disabled,
    /// 4: it agrees on width and speed.
    Training,
    /// 5: it carries packets.
    LinkUp,
    /// 6: it gets over errors.
    Recovery,
    /// Any other number, which is reserved.
    Reserved(u8),
}

impl Value for Physical {
    const BITS: u32 = 4;

    fn from_bits(bits: u32) -> Physical {
        match bits {
            0 => Physical::NoChange,
            1 => Physical::Sleep,
            2 => Physical::Polling,
            3 => Physical::Disabled,
            4 => Physical::Training,
            5 => Physical::LinkUp,
            6 => Physical::Recovery,
            other => Physical::Reserved(other as u8),
        }
    }

    fn bits(self) -> u32 {
        match self {
            Physical::NoChange => 0,
            Physical::Sleep => 1,
            Physical::Polling => 2,
            Physical::Disabled => 3,
            Physical::Training => 4,
            Physical::LinkUp => 5,
            Physical::Recovery => 6,
            Physical::Reserved(other) => u32::from(other),
        }
    }
}

/// Bits of the capability mask.
pub mod capability {
    /// A subnet manager runs here.
    pub const SM: u32 = 1 << 1;
    /// The agent sends traps.
    pub const TRAP: u32 = 1 << 3;
    /// Connections can move to their alternate path.
    pub const AUTOMATIC_MIGRATION: u32 = 1 << 5;
    /// Service levels can be mapped to lanes.
    pub const SL_MAPPING: u32 = 1 << 6;
    /// The port has a LED for an administrator to find it by.
    pub const LED_INFO: u32 = 1 << 9;
    /// No subnet manager may run here.
    pub const SM_DISABLED: u32 = 1 << 10;
    /// The node says to which system it belongs.
    pub const SYSTEM_IMAGE_GUID: u32 = 1 << 11;
    /// The switch sends trap 259.
    pub const P_KEY_SWITCH_TRAP: u32 = 1 << 12;
    /// A connection manager runs here.
    pub const COMMUNICATION_MANAGEMENT: u32 = 1 << 16;
    /// The agent sends trap 144.
    pub const CAPABILITY_MASK_NOTICE: u32 = 1 << 22;
    /// The consumers can be asked to register again what they have registered.
    pub const CLIENT_REREGISTRATION: u32 = 1 << 25;
    /// Trap 144 also tells of other changes.
    pub const OTHER_LOCAL_CHANGES_NOTICE: u32 = 1 << 26;
}

/// The port itself, its link, its addresses and its subnet manager.
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
pub struct PortInfo {
    m_key: U64,
    gid_prefix: U64,
    lid: U16,
    sm_lid: U16,
    capability_mask: U32,
    diag_code: U16,
    m_key_lease: U16,
    local_port: u8,
    width_enabled: u8,
    width_supported: u8,
    width_active: u8,
    speed_state: u8,
    physical_default: u8,
    protect_lmc: u8,
    speeds: u8,
    mtu_sm_sl: u8,
    vl_cap_init: u8,
    vl_high_limit: u8,
    vl_arbitration_high_cap: u8,
    vl_arbitration_low_cap: u8,
    init_reply_mtu_cap: u8,
    stall_hoq: u8,
    vls_enforcement: u8,
    m_key_violations: U16,
    p_key_violations: U16,
    q_key_violations: U16,
    guid_cap: u8,
    reregister_timeout: u8,
    response_time: u8,
    error_thresholds: u8,
    max_credit_hint: U16,
    round_trip: U32,
    capability_mask2: U16,
    speeds_ext: u8,
    speed_ext_enabled: u8,
}

impl Attribute for PortInfo {
    const ID: u16 = attribute::PORT_INFO;
}

impl PortInfo {
    words! {
        /// The key that requests must have.
        m_key, set_m_key: u64;
        /// The first half of the port's GIDs.
        gid_prefix, set_gid_prefix: u64;
        /// The capabilities of the port: bits of [`capability`].
        capability_mask, set_capability_mask: u32;
        /// The diagnostic code of the port, 0 if nothing is wrong.
        diag_code, set_diag_code: u16;
        /// Seconds for which the key protects after a request with a wrong one; 0 for ever.
        m_key_lease, set_m_key_lease: u16;
        /// The number of requests with a wrong M_Key.
        m_key_violations, set_m_key_violations: u16;
        /// The number of packets with a wrong P_Key.
        p_key_violations, set_p_key_violations: u16;
        /// The number of packets with a wrong Q_Key.
        q_key_violations, set_q_key_violations: u16;
        /// The largest number of flow control credits.
        max_credit_hint, set_max_credit_hint: u16;
        /// More of what the port can do.
        capability_mask2, set_capability_mask2: u16;
    }

    octets! {
        /// The port by which the request came.
        local_port, set_local_port;
        /// Widths that the link may have, one bit each.
        width_enabled, set_width_enabled;
        /// Widths that the link can have.
        width_supported, set_width_supported;
        /// The width that the link has.
        width_active, set_width_active;
        /// The amount that the high-priority lanes may send before the others.
        vl_high_limit, set_vl_high_limit;
        /// The number of entries in the high-priority arbitration table.
        vl_arbitration_high_cap, set_vl_arbitration_high_cap;
        /// The number of entries in the low-priority arbitration table.
        vl_arbitration_low_cap, set_vl_arbitration_low_cap;
        /// The number of entries in the GUID table.
        guid_cap, set_guid_cap;
    }

    bit_fields! {
        /// Speeds that the link can have, one bit each, 4 bits.
        speed_supported, set_speed_supported: u8 = speed_state[0, 4];
        /// The logical state of the port.
        state, set_state: State = speed_state[4, 4];
        /// The physical state of the link.
        physical, set_physical: Physical = physical_default[0, 4];
        /// The physical state of the link after it has gone down: sleep or poll.
        down_default, set_down_default: Physical = physical_default[4, 4];
        /// The level at which the key protects what is read, 2 bits (IBTA 14.2.4.1).
        m_key_protect, set_m_key_protect: u8 = protect_lmc[0, 2];
        /// The number of low bits of its LID that the port ignores, 3 bits.
        lmc, set_lmc: u8 = protect_lmc[5, 3];
        /// The speed that the link has, 4 bits.
        speed_active, set_speed_active: u8 = speeds[0, 4];
        /// Speeds that the link may have, 4 bits.
        speed_enabled, set_speed_enabled: u8 = speeds[4, 4];
        /// The largest payload that a packet may have on this link.
        neighbor_mtu, set_neighbor_mtu: Mtu = mtu_sm_sl[0, 4];
        /// The service level of the way to the subnet manager, 4 bits.
        sm_sl, set_sm_sl: u8 = mtu_sm_sl[4, 4];
        /// The number for how many data lanes the port has, 4 bits.
        vl_cap, set_vl_cap: u8 = vl_cap_init[0, 4];
        /// The kind of initialisation that is asked for, 4 bits.
        init_type, set_init_type: u8 = vl_cap_init[4, 4];
        /// The part of that initialisation that was done, 4 bits.
        init_type_reply, set_init_type_reply: u8 = init_reply_mtu_cap[0, 4];
        /// The largest payload of a packet that the port supports.
        mtu_cap, set_mtu_cap: Mtu = init_reply_mtu_cap[4, 4];
        /// The number of packets dropped in a row after which a lane counts as stalled, 3 bits.
        stall_count, set_stall_count: u8 = stall_hoq[0, 3];
        /// The time that a packet may be the first of its lane, 5 bits.
        hoq_life, set_hoq_life: u8 = stall_hoq[3, 5];
        /// The number for how many data lanes are used, 4 bits.
        operational_vls, set_operational_vls: u8 = vls_enforcement[0, 4];
        /// Whether packets that come in are checked for their partition.
        inbound_enforcement, set_inbound_enforcement: bool = vls_enforcement[4, 1];
        /// Whether packets that go out are.
        outbound_enforcement, set_outbound_enforcement: bool = vls_enforcement[5, 1];
        /// Whether raw packets that come in are refused.
        filter_raw_inbound, set_filter_raw_inbound: bool = vls_enforcement[6, 1];
        /// Whether raw packets that go out are.
        filter_raw_outbound, set_filter_raw_outbound: bool = vls_enforcement[7, 1];
        /// Asks the consumers to register again what they have registered.
        client_reregister, set_client_reregister: bool = reregister_timeout[0, 1];
        /// Whether traps of wrong P_Keys in multicast packets are kept back, 2 bits.
        trap_suppression, set_trap_suppression: u8 = reregister_timeout[1, 2];
        /// The time of a packet through the subnet: 4.096 µs shifted left by this number, 5 bits.
        subnet_timeout, set_subnet_timeout: u8 = reregister_timeout[3, 5];
        /// The time that the port needs to answer, in the same way, 5 bits.
        response_time_value, set_response_time_value: u8 = response_time[3, 5];
        /// The number of link errors that cause a trap, 4 bits.
        local_phy_errors, set_local_phy_errors: u8 = error_thresholds[0, 4];
        /// The number of overruns that cause a trap, 4 bits.
        overrun_errors, set_overrun_errors: u8 = error_thresholds[4, 4];
        /// The round-trip latency of the link, 24 bits.
        link_round_trip_latency, set_link_round_trip_latency: u32 = round_trip[8, 24];
        /// The speed that the link has, of the extended ones, 4 bits.
        speed_ext_active, set_speed_ext_active: u8 = speeds_ext[0, 4];
        /// Extended speeds that the link can have, 4 bits.
        speed_ext_supported, set_speed_ext_supported: u8 = speeds_ext[4, 4];
        /// Extended speeds that the link may have, 5 bits.
        speed_ext_enabled_bits, set_speed_ext_enabled_bits: u8 = speed_ext_enabled[3, 5];
    }

    /// The address of the port, zero if it has none yet.
    pub const fn lid(&self) -> Lid {
        Lid::new(self.lid.get())
    }

    /// Writes what [`PortInfo::lid`] reads.
    pub fn set_lid(&mut self, lid: Lid) {
        self.lid.set(lid.get());
    }

    /// The address of the master subnet manager, zero if it is not known yet.
    pub const fn sm_lid(&self) -> Lid {
        Lid::new(self.sm_lid.get())
    }

    /// Writes what [`PortInfo::sm_lid`] reads.
    pub fn set_sm_lid(&mut self, lid: Lid) {
        self.sm_lid.set(lid.get());
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_smp_port))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    /// Byte by byte as the table of the specification has it.
    const GOLDEN: [u8; DATA_LEN] = [
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, // 0: M_Key
        0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // 8: prefix
        0x00, 0x10, 0x00, 0x01, // 16: LID, SM LID
        0x02, 0x01, 0x08, 0x4a, // 20: capabilities
        0x00, 0x02, 0x00, 0x3c, // 24: diagnosis, lease
        0x01, 0x03, 0x0f, 0x02, // 28: port, widths
        0x74, 0x52, 0x82, 0x47, // 32: speed, state; physical; protection, LMC; speeds
        0x43, 0x48, 0x05, 0x08, // 36: MTU, SL; VLs, init; limit; high
        0x06, 0x15, 0xf2, 0x3c, // 40: low; reply, MTU; stall, life; VLs, enforcement
        0x00, 0x01, 0x00, 0x02, // 44: violations of M_Key, P_Key
        0x00, 0x03, 0x08, 0xb2, // 48: of Q_Key; GUIDs; re-register, suppression, timeout
        0x10, 0x8f, 0x00, 0x05, // 52: response; thresholds; credits
        0x00, 0x00, 0x01, 0x02, // 56: round trip
        0x00, 0x02, 0x12, 0x01, // 60: capabilities 2; extended speeds
    ];

    #[test]
    fn fields_are_read_where_the_table_has_them() {
        let info: PortInfo = zerocopy::transmute!(GOLDEN);
        assert_eq!(info.m_key(), 0x1122_3344_5566_7788);
        assert_eq!(info.gid_prefix(), 0xfe80_0000_0000_0000);
        assert_eq!((info.lid(), info.sm_lid()), (Lid::new(16), Lid::new(1)));
        assert_eq!(info.capability_mask(), 0x0201_084a);
        assert_eq!((info.diag_code(), info.m_key_lease()), (2, 60));
        let widths = [
            info.width_enabled(),
            info.width_supported(),
            info.width_active(),
        ];
        assert_eq!((info.local_port(), widths), (1, [3, 15, 2]));
        assert_eq!((info.speed_supported(), info.state()), (7, State::Active));
        assert_eq!(info.physical(), Physical::LinkUp);
        assert_eq!(info.down_default(), Physical::Polling);
        assert_eq!((info.m_key_protect(), info.lmc()), (2, 2));
        assert_eq!((info.speed_active(), info.speed_enabled()), (4, 7));
        assert_eq!((info.neighbor_mtu(), info.sm_sl()), (Mtu::new(4), 3));
        assert_eq!((info.vl_cap(), info.init_type()), (4, 8));
        assert_eq!(info.vl_high_limit(), 5);
        assert_eq!(info.vl_arbitration_high_cap(), 8);
        assert_eq!(info.vl_arbitration_low_cap(), 6);
        assert_eq!((info.init_type_reply(), info.mtu_cap()), (1, Mtu::new(5)));
        assert_eq!((info.stall_count(), info.hoq_life()), (7, 18));
        assert_eq!(info.operational_vls(), 3);
        assert!(info.inbound_enforcement() && info.outbound_enforcement());
        assert!(!info.filter_raw_inbound() && !info.filter_raw_outbound());
        assert_eq!(info.m_key_violations(), 1);
        assert_eq!(info.p_key_violations(), 2);
        assert_eq!(info.q_key_violations(), 3);
        assert_eq!(info.guid_cap(), 8);
        assert!(info.client_reregister());
        assert_eq!((info.trap_suppression(), info.subnet_timeout()), (1, 18));
        assert_eq!(info.response_time_value(), 16);
        assert_eq!((info.local_phy_errors(), info.overrun_errors()), (8, 15));
        assert_eq!(info.max_credit_hint(), 5);
        assert_eq!(info.link_round_trip_latency(), 0x102);
        assert_eq!(info.capability_mask2(), 2);
        assert_eq!(
            (info.speed_ext_active(), info.speed_ext_supported()),
            (1, 2)
        );
        assert_eq!(info.speed_ext_enabled_bits(), 1);
    }

    #[test]
    fn fields_are_written_where_they_are_read() {
        let from: PortInfo = zerocopy::transmute!(GOLDEN);
        let mut to = PortInfo::default();
        to.set_m_key(from.m_key());
        to.set_gid_prefix(from.gid_prefix());
        to.set_lid(from.lid());
        to.set_sm_lid(from.sm_lid());
        to.set_capability_mask(from.capability_mask());
        to.set_diag_code(from.diag_code());
        to.set_m_key_lease(from.m_key_lease());
        to.set_local_port(from.local_port());
        to.set_width_enabled(from.width_enabled());
        to.set_width_supported(from.width_supported());
        to.set_width_active(from.width_active());
        to.set_speed_supported(from.speed_supported());
        to.set_state(from.state());
        to.set_physical(from.physical());
        to.set_down_default(from.down_default());
        to.set_m_key_protect(from.m_key_protect());
        to.set_lmc(from.lmc());
        to.set_speed_active(from.speed_active());
        to.set_speed_enabled(from.speed_enabled());
        to.set_neighbor_mtu(from.neighbor_mtu());
        to.set_sm_sl(from.sm_sl());
        to.set_vl_cap(from.vl_cap());
        to.set_init_type(from.init_type());
        to.set_vl_high_limit(from.vl_high_limit());
        to.set_vl_arbitration_high_cap(from.vl_arbitration_high_cap());
        to.set_vl_arbitration_low_cap(from.vl_arbitration_low_cap());
        to.set_init_type_reply(from.init_type_reply());
        to.set_mtu_cap(from.mtu_cap());
        to.set_stall_count(from.stall_count());
        to.set_hoq_life(from.hoq_life());
        to.set_operational_vls(from.operational_vls());
        to.set_inbound_enforcement(from.inbound_enforcement());
        to.set_outbound_enforcement(from.outbound_enforcement());
        to.set_filter_raw_inbound(from.filter_raw_inbound());
        to.set_filter_raw_outbound(from.filter_raw_outbound());
        to.set_m_key_violations(from.m_key_violations());
        to.set_p_key_violations(from.p_key_violations());
        to.set_q_key_violations(from.q_key_violations());
        to.set_guid_cap(from.guid_cap());
        to.set_client_reregister(from.client_reregister());
        to.set_trap_suppression(from.trap_suppression());
        to.set_subnet_timeout(from.subnet_timeout());
        to.set_response_time_value(from.response_time_value());
        to.set_local_phy_errors(from.local_phy_errors());
        to.set_overrun_errors(from.overrun_errors());
        to.set_max_credit_hint(from.max_credit_hint());
        to.set_link_round_trip_latency(from.link_round_trip_latency());
        to.set_capability_mask2(from.capability_mask2());
        to.set_speed_ext_active(from.speed_ext_active());
        to.set_speed_ext_supported(from.speed_ext_supported());
        to.set_speed_ext_enabled_bits(from.speed_ext_enabled_bits());
        let bytes: [u8; DATA_LEN] = zerocopy::transmute!(to);
        assert_eq!(bytes, GOLDEN);
    }

    #[test]
    fn numbers_of_states() {
        for bits in 0..16 {
            assert_eq!(State::from_bits(bits).bits(), bits);
            assert_eq!(Physical::from_bits(bits).bits(), bits);
        }
    }
}
