// SPDX-License-Identifier: GPL-2.0-only

//! Path records, as the kernel passes them around.

use super::gid::Entry;
use crate::{
    bindings,
    wire::{
        gid::Gid,
        local_service::PATH_RECORD, //
    }, //
};

/// The network that a path leads through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PathKind {
    /// An InfiniBand subnet: LIDs of 16 bits.
    Infiniband,
    /// Ethernet, RoCE version 1.
    RoceV1,
    /// Ethernet, RoCE version 2.
    RoceV2,
    /// Omni-Path: LIDs of 32 bits. oxib makes no address vectors of those.
    Opa,
}

impl PathKind {
    /// Returns whether it leads through Ethernet.
    pub(crate) fn is_roce(self) -> bool {
        matches!(self, Self::RoceV1 | Self::RoceV2)
    }

    /// The kind of paths from the GID `entry` of a RoCE port.
    pub(crate) fn of_roce(entry: &Entry) -> Self {
        if entry.is_roce_v2() {
            Self::RoceV2
        } else {
            Self::RoceV1
        }
    }

    fn from_raw(raw: bindings::sa_path_rec_type) -> Self {
        match raw {
            bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V1 => Self::RoceV1,
            bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V2 => Self::RoceV2,
            bindings::sa_path_rec_type_SA_PATH_REC_TYPE_OPA => Self::Opa,
            _ => Self::Infiniband,
        }
    }

    fn as_raw(self) -> bindings::sa_path_rec_type {
        match self {
            Self::Infiniband => bindings::sa_path_rec_type_SA_PATH_REC_TYPE_IB,
            Self::RoceV1 => bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V1,
            Self::RoceV2 => bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V2,
            Self::Opa => bindings::sa_path_rec_type_SA_PATH_REC_TYPE_OPA,
        }
    }

    pub(super) fn gid_type(self) -> bindings::ib_gid_type {
        match self {
            Self::RoceV1 => bindings::ib_gid_type_IB_GID_TYPE_ROCE,
            Self::RoceV2 => bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP,
            Self::Infiniband | Self::Opa => bindings::ib_gid_type_IB_GID_TYPE_IB,
        }
    }
}

/// A path record (IBTA 15.2.5.16), as the kernel passes it around (`struct sa_path_rec`).
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct PathRecord(bindings::sa_path_rec);

impl PathRecord {
    /// A record of which nothing but its kind is known.
    pub(crate) fn new(kind: PathKind) -> Self {
        let mut raw: bindings::sa_path_rec = pin_init::zeroed();
        raw.rec_type = kind.as_raw();
        Self(raw)
    }

    /// The record at `raw`, if that is not null.
    ///
    /// # Safety
    ///
    /// Null, or a valid record that does not change during `'a`.
    pub(crate) unsafe fn borrow<'a>(raw: *const bindings::sa_path_rec) -> Option<&'a Self> {
        // SAFETY: The caller gives null, or a valid record that does not change during `'a`; this
        // type is transparent.
        unsafe { raw.cast::<Self>().as_ref() }
    }

    /// The C object, for the wrappers.
    pub(crate) fn as_raw(&mut self) -> *mut bindings::sa_path_rec {
        &raw mut self.0
    }

    /// The GID of its beginning, for the wrappers.
    pub(super) fn sgid_ptr(&self) -> *const bindings::ib_gid {
        &raw const self.0.sgid
    }

    /// The network that the path leads through.
    pub(crate) fn kind(&self) -> PathKind {
        PathKind::from_raw(self.0.rec_type)
    }

    /// The GID of its end.
    pub(crate) fn dgid(&self) -> Gid {
        // SAFETY: `raw` is the union's plain view.
        Gid::from_bytes(unsafe { self.0.dgid.raw })
    }

    /// Sets the GID of its end.
    pub(crate) fn set_dgid(&mut self, gid: Gid) {
        self.0.dgid.raw = gid.bytes();
    }

    /// The GID of its beginning.
    pub(crate) fn sgid(&self) -> Gid {
        // SAFETY: `raw` is the union's plain view.
        Gid::from_bytes(unsafe { self.0.sgid.raw })
    }

    /// Sets the GID of its beginning.
    pub(crate) fn set_sgid(&mut self, gid: Gid) {
        self.0.sgid.raw = gid.bytes();
    }

    /// The LID of its end; 0 on RoCE.
    pub(crate) fn dlid(&self) -> u32 {
        // SAFETY: The kind says which of the union's views is in use; all are plain numbers.
        unsafe {
            match self.kind() {
                PathKind::Infiniband => u16::from_be(self.0.__bindgen_anon_1.ib.dlid).into(),
                PathKind::Opa => u32::from_be(self.0.__bindgen_anon_1.opa.dlid),
                PathKind::RoceV1 | PathKind::RoceV2 => 0,
            }
        }
    }

    /// Sets the LID of its end. Nothing is set on RoCE, nor on Omni-Path.
    pub(crate) fn set_dlid(&mut self, lid: u16) {
        if self.kind() == PathKind::Infiniband {
            self.0.__bindgen_anon_1.ib.dlid = lid.to_be();
        }
    }

    /// The LID of its beginning; 0 on RoCE.
    pub(crate) fn slid(&self) -> u32 {
        // SAFETY: The kind says which of the union's views is in use; all are plain numbers.
        unsafe {
            match self.kind() {
                PathKind::Infiniband => u16::from_be(self.0.__bindgen_anon_1.ib.slid).into(),
                PathKind::Opa => u32::from_be(self.0.__bindgen_anon_1.opa.slid),
                PathKind::RoceV1 | PathKind::RoceV2 => 0,
            }
        }
    }

    /// Sets the LID of its beginning. Nothing is set on RoCE, nor on Omni-Path.
    pub(crate) fn set_slid(&mut self, lid: u16) {
        if self.kind() == PathKind::Infiniband {
            self.0.__bindgen_anon_1.ib.slid = lid.to_be();
        }
    }

    /// Sets the Ethernet address of the next hop, on RoCE. The route to it is still to be looked
    /// up.
    pub(crate) fn set_dmac(&mut self, dmac: [u8; 6]) {
        if self.kind().is_roce() {
            self.0.__bindgen_anon_1.roce = bindings::sa_path_rec_roce {
                route_resolved: false,
                dmac,
            };
        }
    }

    /// The record as the subnet administrator sends it.
    pub(crate) fn bytes(&self) -> [u8; PATH_RECORD] {
        let mut raw = self.0;
        let mut bytes = [0; PATH_RECORD];
        // SAFETY: The record is read, and the attribute of that length written.
        unsafe { bindings::ib_sa_pack_path(&mut raw, bytes.as_mut_ptr().cast()) };
        bytes
    }

    /// Returns whether the way back is the same.
    pub(crate) fn is_reversible(&self) -> bool {
        self.0.reversible != 0
    }

    /// Sets the class of the quality of service that the path was asked for.
    pub(crate) fn set_qos_class(&mut self, class: u16) {
        self.0.qos_class = class.to_be();
    }

    /// Sets the service that the path was asked for.
    pub(crate) fn set_service_id(&mut self, id: u64) {
        self.0.service_id = id.to_be();
    }

    /// Flow label, 20 bits.
    pub(crate) fn flow_label(&self) -> u32 {
        u32::from_be(self.0.flow_label)
    }

    /// Sets the flow label.
    pub(crate) fn set_flow_label(&mut self, label: u32) {
        self.0.flow_label = label.to_be();
    }

    /// Routers a packet may pass; up to 1, none.
    pub(crate) fn hop_limit(&self) -> u8 {
        self.0.hop_limit
    }

    /// Sets the number of routers a packet may pass.
    pub(crate) fn set_hop_limit(&mut self, limit: u8) {
        self.0.hop_limit = limit;
    }

    /// Traffic class (TClass) of the global route header.
    pub(crate) fn traffic_class(&self) -> u8 {
        self.0.traffic_class
    }

    /// Sets the traffic class.
    pub(crate) fn set_traffic_class(&mut self, class: u8) {
        self.0.traffic_class = class;
    }

    /// Sets that one path is enough for an answer.
    pub(super) fn set_one_path(&mut self) {
        self.0.numb_path = 1;
    }

    /// Sets that the way back is the same.
    pub(crate) fn set_reversible(&mut self) {
        self.0.reversible = 1;
    }

    /// P_Key of the path, in host byte order.
    pub(crate) fn pkey(&self) -> u16 {
        u16::from_be(self.0.pkey)
    }

    /// Sets the P_Key, given in host byte order.
    pub(crate) fn set_pkey(&mut self, key: u16) {
        self.0.pkey = key.to_be();
    }

    /// Service level (SL) of packets on the path.
    pub(crate) fn sl(&self) -> u8 {
        self.0.sl
    }

    /// Sets the service level.
    pub(crate) fn set_sl(&mut self, sl: u8) {
        self.0.sl = sl;
    }

    /// The path's MTU, encoded (IBTA 15.2.5.16: 1 is 256 bytes, 5 is 4096).
    pub(crate) fn mtu(&self) -> u8 {
        self.0.mtu
    }

    /// Sets the MTU to exactly this code.
    pub(crate) fn set_mtu(&mut self, mtu: u8) {
        self.0.mtu_selector = EXACTLY;
        self.0.mtu = mtu;
    }

    /// The path's rate, encoded.
    pub(crate) fn rate(&self) -> u8 {
        self.0.rate
    }

    /// Sets the rate to exactly this code.
    pub(crate) fn set_rate(&mut self, rate: u8) {
        self.0.rate_selector = EXACTLY;
        self.0.rate = rate;
    }

    /// Longest time that a packet is on its way: 4.096 µs times two to the power of this.
    pub(crate) fn packet_life_time(&self) -> u8 {
        self.0.packet_life_time
    }

    /// Sets the packet life time to exactly this exponent.
    pub(crate) fn set_packet_life_time(&mut self, exponent: u8) {
        self.0.packet_life_time_selector = EXACTLY;
        self.0.packet_life_time = exponent;
    }
}

/// The selector that says that a component is meant exactly (IBTA 15.2.5.16).
pub(super) const EXACTLY: u8 = bindings::ib_sa_selector_IB_SA_EQ as u8;

#[kernel::prelude::kunit_tests(oxib_path)]
mod tests {
    use super::*;

    const KINDS: [PathKind; 4] = [
        PathKind::Infiniband,
        PathKind::RoceV1,
        PathKind::RoceV2,
        PathKind::Opa,
    ];

    #[test]
    fn records_say_what_was_set() {
        let near = Gid::from_ipv4([10, 0, 0, 1]);
        let far = Gid::from_bytes([0xfe; 16]);
        for kind in KINDS {
            let mut path = PathRecord::new(kind);
            assert_eq!(path.kind(), kind);
            path.set_sgid(near);
            path.set_dgid(far);
            path.set_flow_label(0x000a_bcde);
            path.set_hop_limit(64);
            path.set_traffic_class(0x1c);
            path.set_pkey(0x8001);
            path.set_sl(3);
            path.set_mtu(5);
            path.set_rate(7);
            path.set_packet_life_time(18);
            path.set_service_id(0x0102_0304_0506_0708);
            assert!(path.sgid() == near && path.dgid() == far);
            assert_eq!(path.flow_label(), 0x000a_bcde);
            assert_eq!((path.hop_limit(), path.traffic_class()), (64, 0x1c));
            assert_eq!((path.pkey(), path.sl()), (0x8001, 3));
            assert_eq!((path.mtu(), path.rate()), (5, 7));
            assert_eq!(path.packet_life_time(), 18);
            // What C reads stands in network byte order, and as exact.
            assert_eq!(path.0.pkey.to_ne_bytes(), [0x80, 0x01]);
            assert_eq!(path.0.service_id.to_ne_bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
            assert_eq!(path.0.mtu_selector, EXACTLY);
        }
    }

    #[test]
    fn only_infiniband_has_lids_to_set() {
        for kind in KINDS {
            let mut path = PathRecord::new(kind);
            path.set_slid(0x0102);
            path.set_dlid(0xc000);
            let lids = (path.slid(), path.dlid());
            match kind {
                PathKind::Infiniband => assert_eq!(lids, (0x0102, 0xc000)),
                _ => assert_eq!(lids, (0, 0)),
            }
        }
    }

    #[test]
    fn only_roce_has_an_ethernet_address_to_set() {
        for kind in KINDS {
            let mut path = PathRecord::new(kind);
            path.set_dmac([1, 2, 3, 4, 5, 6]);
            // SAFETY: All views of the union are plain bytes.
            let dmac = unsafe { path.0.__bindgen_anon_1.roce.dmac };
            let is_there = dmac == [1, 2, 3, 4, 5, 6];
            assert_eq!(is_there, kind.is_roce());
        }
    }
}
