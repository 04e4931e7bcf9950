// SPDX-License-Identifier: GPL-2.0-only

//! A port: its state, its addresses, its partitions.

use super::counters::PortCounts;
use super::events::{
    Changes,
    Events, //
};
use super::wire::cm::mtu::Mtu;
use super::wire::gid::Gid;
use super::wire::lid::Lid;
use super::wire::pkey::Pkey;
use super::wire::smp::lanes::{
    SlToVl,
    VlArbitration, //
};
use super::wire::smp::port::{
    capability,
    Physical,
    PortInfo,
    State, //
};

/// The largest P_Key table.
pub const MAX_PKEYS: usize = 32;

/// The largest GUID table.
pub const MAX_GUIDS: usize = 16;

/// Entries of each half of an arbitration table, on a port with several data lanes.
const ARBITRATION_CAP: u8 = 32;

/// The link's width: one lane, and four.
const WIDTH_1X_4X: u8 = 0b11;
const WIDTH_4X: u8 = 0b10;

/// The link's speed: 2.5, 5 and 10 Gbit/s for each lane.
const SPEED_ALL: u8 = 0b111;
const SPEED_QDR: u8 = 0b100;

/// The SubnetTimeOut that a subnet manager would set: 4.096 µs shifted left so often are about a
/// second.
const SUBNET_TIMEOUT: u8 = 18;

/// The RespTimeValue of agents, about a quarter of a second, however slow the machine is.
const RESPONSE_TIME: u8 = 16;

/// The thresholds LocalPhyErrors and OverrunErrors, above which link errors are worth a trap: the
/// largest value.
const ERROR_THRESHOLD: u8 = 15;

/// The initial properties of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Its GUID; on a switch all ports have that of port 0.
    pub guid: u64,
    /// The largest MTU (MTUCap).
    pub mtu: Mtu,
    /// The number for how many data lanes it has: 1 for one, 2 for two, 3 for four, 4 for eight, 5
    /// for fifteen.
    pub vl_cap: u8,
    /// The size of the GUID table (GUIDCap), at most [`MAX_GUIDS`].
    pub guids: u8,
    /// The size of the P_Key table (PartitionCap), at most [`MAX_PKEYS`].
    pub pkeys: u8,
    /// Bits of the CapabilityMask besides those that every port here has.
    pub capability_mask: u32,
}

impl Profile {
    /// Creates a profile with one data lane, 4096 bytes, and all tables as large as they go.
    pub const fn new(guid: u64) -> Profile {
        Profile {
            guid,
            mtu: Mtu::new(5),
            vl_cap: 1,
            guids: MAX_GUIDS as u8,
            pkeys: MAX_PKEYS as u8,
            capability_mask: 0,
        }
    }
}

/// Bits of the CapabilityMask that every port has.
const CAPABILITIES: u32 = capability::TRAP
    | capability::SYSTEM_IMAGE_GUID
    | capability::CLIENT_REREGISTRATION
    | capability::CAPABILITY_MASK_NOTICE
    | capability::OTHER_LOCAL_CHANGES_NOTICE
    | capability::LED_INFO;

/// A port, as its node's agents manage it.
#[derive(Clone, Debug)]
pub struct Port {
    /// The PortInfo that a subnet manager reads. The other fields are not part of it.
    pub(super) info: PortInfo,
    pub(super) pkeys: [Pkey; MAX_PKEYS],
    pub(super) pkey_cap: u8,
    /// The first is the port's own, the others are zero or aliases.
    pub(super) guids: [u64; MAX_GUIDS],
    pub(super) lanes: SlToVl,
    /// The low and the high half.
    pub(super) arbitration: [VlArbitration; 2],
    pub(super) led: bool,
    /// The time at which the lease of the M_Key protection ends, in nanoseconds; `None` if none
    /// runs.
    pub(super) lease: Option<u64>,
    /// Values of the counters when a manager last cleared them.
    pub(super) cleared: PortCounts,
}

impl Port {
    /// A port without a link.
    pub fn new(profile: &Profile) -> Port {
        let mut guids = [0; MAX_GUIDS];
        if let Some(first) = guids.first_mut() {
            *first = profile.guid;
        }
        let mut pkeys = [Pkey::new(0); MAX_PKEYS];
        if let Some(first) = pkeys.first_mut() {
            *first = Pkey::DEFAULT;
        }
        Port {
            info: Self::first_info(profile),
            pkeys,
            pkey_cap: profile.pkeys.clamp(1, MAX_PKEYS as u8),
            guids,
            lanes: SlToVl::default(),
            arbitration: [VlArbitration::default(); 2],
            led: false,
            lease: None,
            cleared: PortCounts::default(),
        }
    }

    /// Adds alias GUIDs, as many as there are places for; a zero leaves its place empty.
    pub fn with_aliases(mut self, aliases: &[u64]) -> Port {
        for (place, alias) in self.guids.iter_mut().skip(1).zip(aliases) {
            *place = *alias;
        }
        self
    }

    /// The port by which a switch is managed, which has no link and is always active.
    pub fn of_switch(profile: &Profile) -> Port {
        let mut port = Self::new(profile);
        port.info.set_physical(Physical::LinkUp);
        port.info.set_state(State::Active);
        port
    }

    /// The link is preset to what a subnet manager would set it to, which takes links down if it
    /// has to change their setting.
    fn first_info(profile: &Profile) -> PortInfo {
        let mut info = PortInfo::default();
        let mut mask = CAPABILITIES | profile.capability_mask;
        let vl_cap = profile.vl_cap.clamp(1, 5);
        if vl_cap > 1 {
            mask |= capability::SL_MAPPING;
            info.set_vl_arbitration_high_cap(ARBITRATION_CAP);
            info.set_vl_arbitration_low_cap(ARBITRATION_CAP);
        }
        info.set_capability_mask(mask);
        info.set_gid_prefix(Self::DEFAULT_PREFIX);
        info.set_width_supported(WIDTH_1X_4X);
        info.set_width_enabled(WIDTH_1X_4X);
        info.set_width_active(WIDTH_4X);
        info.set_speed_supported(SPEED_ALL);
        info.set_speed_enabled(SPEED_ALL);
        info.set_speed_active(SPEED_QDR);
        info.set_state(State::Down);
        info.set_physical(Physical::Polling);
        info.set_down_default(Physical::Polling);
        info.set_mtu_cap(profile.mtu);
        info.set_neighbor_mtu(profile.mtu);
        info.set_vl_cap(vl_cap);
        info.set_operational_vls(vl_cap);
        info.set_guid_cap(profile.guids.clamp(1, MAX_GUIDS as u8));
        info.set_subnet_timeout(SUBNET_TIMEOUT);
        info.set_response_time_value(RESPONSE_TIME);
        info.set_local_phy_errors(ERROR_THRESHOLD);
        info.set_overrun_errors(ERROR_THRESHOLD);
        info
    }

    /// The prefix of a subnet that has not been given another (IBTA 4.1.1).
    const DEFAULT_PREFIX: u64 = 0xfe80_0000_0000_0000;

    /// Returns the PortInfo that a subnet manager reads.
    pub const fn info(&self) -> &PortInfo {
        &self.info
    }

    /// Returns the P_Key table, unused entries included.
    pub fn pkeys(&self) -> &[Pkey] {
        self.pkeys
            .get(..usize::from(self.pkey_cap))
            .unwrap_or(&self.pkeys)
    }

    /// Returns the port's GUID, the first of its table.
    pub fn guid(&self) -> u64 {
        self.guids.first().copied().unwrap_or(0)
    }

    /// Returns the GID of that index; `None` if the table has no such entry or nothing in it.
    pub fn gid(&self, index: usize) -> Option<Gid> {
        let cap = usize::from(self.info.guid_cap());
        let guid = *self.guids.get(..cap)?.get(index)?;
        (guid != 0).then(|| gid(self.info.gid_prefix(), guid))
    }

    /// Returns whether the GID is one of its own.
    pub fn owns_gid(&self, wanted: &Gid) -> bool {
        (0..usize::from(self.info.guid_cap())).any(|index| self.gid(index) == Some(*wanted))
    }

    /// Returns whether there is a link, so that subnet management can pass.
    pub fn is_linked(&self) -> bool {
        self.info.physical() == Physical::LinkUp
    }

    /// Returns whether every packet can pass.
    pub fn is_active(&self) -> bool {
        self.info.state() == State::Active
    }

    /// Returns whether a subnet manager is known that the port can send to.
    pub(super) fn has_manager(&self) -> bool {
        self.is_linked() && self.info.lid().is_unicast() && self.info.sm_lid().is_unicast()
    }

    /// Returns whether packets to that address are for this port: its own and those that its mask
    /// makes its own.
    pub fn owns_lid(&self, lid: Lid) -> bool {
        let own = self.info.lid();
        let mask = u16::MAX << self.info.lmc();
        own.is_unicast() && own.get() & mask == lid.get() & mask
    }

    /// Returns whether it is in the partition of that key. The two ends judge by which kind of
    /// membership: nodes between them know neither's.
    pub fn is_in_partition(&self, pkey: Pkey) -> bool {
        pkey.is_valid() && self.pkeys().iter().any(|own| own.base() == pkey.base())
    }

    /// Counts a packet with a wrong P_Key.
    pub fn count_bad_p_key(&mut self) {
        let count = self.info.p_key_violations().saturating_add(1);
        self.info.set_p_key_violations(count);
    }

    /// Counts a packet with a wrong Q_Key.
    pub fn count_bad_q_key(&mut self) {
        let count = self.info.q_key_violations().saturating_add(1);
        self.info.set_q_key_violations(count);
    }

    /// The link carries packets, or has stopped to. Whether that has changed anything.
    pub(super) fn carrier(&mut self, up: bool) -> bool {
        match (up, self.info.physical()) {
            // A disabled port stays so, whatever the cable says, until a subnet manager enables
            // it.
            (true, Physical::LinkUp | Physical::Disabled) => false,
            (true, _) => {
                self.info.set_physical(Physical::LinkUp);
                // Attributes that the subnet manager has set of the link stay: OpenSM sets the
                // neighbour's MTU and takes the link down in one request, and would do so again
                // for ever.
                self.info.set_state(State::Init);
                true
            }
            (false, Physical::LinkUp) => {
                self.down(self.info.down_default());
                true
            }
            (false, _) => false,
        }
    }

    /// Takes the link down, to that physical state.
    pub(super) fn down(&mut self, physical: Physical) {
        self.info.set_physical(physical);
        self.info.set_state(State::Down);
    }

    /// Replaces a block of the P_Key table.
    pub(super) fn set_pkeys(&mut self, number: u8, keys: &[Pkey; MAX_PKEYS]) -> Events {
        let mut changed = false;
        let cap = usize::from(self.pkey_cap);
        for (own, key) in self.pkeys.iter_mut().zip(keys).take(cap) {
            changed |= own != key;
            *own = *key;
        }
        Events::new(number, Changes::PKEY.when(changed))
    }
}

/// The GID of a prefix and a GUID.
pub(super) fn gid(prefix: u64, guid: u64) -> Gid {
    Gid::from_bytes(((u128::from(prefix) << 64) | u128::from(guid)).to_be_bytes())
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_fabric_port))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    fn port() -> Port {
        Port::new(&Profile::new(0x0202_00ff_fe00_0001))
    }

    #[test]
    fn addresses() {
        let mut port = port();
        assert!(!port.owns_lid(Lid::ZERO));
        port.info.set_lid(Lid::new(8));
        port.info.set_lmc(2);
        let table = [(7, false), (8, true), (11, true), (12, false)];
        for (number, own) in table {
            assert_eq!(port.owns_lid(Lid::new(number)), own);
        }
        let own = gid(Port::DEFAULT_PREFIX, port.guid());
        assert_eq!((port.gid(0), port.gid(1)), (Some(own), None));
        assert!(port.owns_gid(&own));
        assert!(!port.owns_gid(&gid(1, port.guid())));
    }

    #[test]
    fn partitions() {
        let mut port = port();
        let mut keys = [Pkey::new(0); MAX_PKEYS];
        for (key, number) in keys.iter_mut().zip([0xffff, 0x8001, 0x0002]) {
            *key = Pkey::new(number);
        }
        assert_eq!(port.set_pkeys(1, &keys).changes, Changes::PKEY);
        assert!(port.set_pkeys(1, &keys).changes.is_none());
        let table = [(0x0001, true), (0x8002, true), (0x8003, false), (0, false)];
        for (number, member) in table {
            assert_eq!(port.is_in_partition(Pkey::new(number)), member);
        }
    }

    #[test]
    fn links() {
        let mut port = port();
        assert!(!port.is_linked());
        assert!(port.carrier(true));
        assert!(!port.carrier(true));
        assert_eq!((port.is_linked(), port.is_active()), (true, false));
        assert_eq!(port.info.state(), State::Init);
        assert!(port.carrier(false));
        assert!(!port.carrier(false));
        port.down(Physical::Disabled);
        assert!(!port.carrier(true));
    }
}
