// SPDX-License-Identifier: GPL-2.0-only

//! The content of a trap: Notice (IBTA 13.4.8.2, 14.2.5.1).

use zerocopy::byteorder::big_endian::U16;
use zerocopy::{
    FromBytes as _,
    IntoBytes as _, //
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
    Field, //
};
use super::super::lid::Lid;
use super::node::NodeType;
use super::{
    attribute,
    Attribute,
    DATA_LEN, //
};

mod changes;
mod fault;
mod violation;

pub use self::changes::LocalChanges;
pub use self::fault::PortFault;
pub use self::violation::{
    BadKey,
    BadMKey,
    Culprit,
    Request,
    SwitchBadPKey,
    TRAP_HOPS, //
};

/// Length in bytes of what is particular to a trap.
pub const DETAILS_LEN: usize = 54;

const _: () = assert!(size_of::<Notice>() == DATA_LEN);

/// The urgency of a notice (IBTA 13.4.8.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A permanent failure.
    Fatal = 0,
    /// An event that needs action.
    Urgent = 1,
    /// A violation of a key.
    Security = 2,
    /// An event that the subnet manager should look at.
    SubnetManagement = 3,
    /// An event that needs no action.
    Informational = 4,
}

/// Numbers of the generic traps (IBTA 14.2.5.1).
pub mod trap {
    /// The state of a link of this switch has changed.
    pub const LINK_STATE: u16 = 128;
    /// Too many errors of a link's integrity.
    pub const LINK_INTEGRITY: u16 = 129;
    /// Too many overruns of a buffer.
    pub const BUFFER_OVERRUN: u16 = 130;
    /// The far end does not update its credits.
    pub const FLOW_CONTROL: u16 = 131;
    /// Capabilities or a description have changed.
    pub const LOCAL_CHANGES: u16 = 144;
    /// A request with a wrong M_Key.
    pub const BAD_M_KEY: u16 = 256;
    /// A packet with a wrong P_Key.
    pub const BAD_P_KEY: u16 = 257;
    /// A packet with a wrong Q_Key.
    pub const BAD_Q_KEY: u16 = 258;
    /// A packet with a wrong P_Key, seen by a switch.
    pub const SWITCH_BAD_P_KEY: u16 = 259;
}

/// A notice of the traps that the specification knows.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Notice {
    generic_kind: u8,
    producer: [u8; 3],
    number: U16,
    issuer: U16,
    toggle_count: U16,
    details: [u8; DETAILS_LEN],
}

impl Attribute for Notice {
    const ID: u16 = attribute::NOTICE;
}

impl Notice {
    /// Creates a generic notice, with the number of the trap that `details` are of.
    pub fn new(kind: Kind, producer: NodeType, issuer: Lid, details: &Details) -> Notice {
        let mut notice = Notice {
            generic_kind: 0,
            producer: [0, 0, producer as u8],
            number: U16::new(details.number()),
            issuer: U16::new(issuer.get()),
            toggle_count: U16::ZERO,
            details: [0; DETAILS_LEN],
        };
        notice.set_generic(true);
        notice.set_kind(kind as u8);
        details.write(&mut notice.details);
        notice
    }

    bit_fields! {
        /// Whether the trap is one of the specification, not of a vendor.
        is_generic, set_generic: bool = generic_kind[0, 1];
        /// The number of a [`Kind`], 7 bits.
        kind, set_kind: u8 = generic_kind[1, 7];
        /// Changes from one notice in the node's only slot to the next.
        toggle, set_toggle: bool = toggle_count[0, 1];
        /// The `NoticeCount` field, 15 bits.
        count, set_count: u16 = toggle_count[1, 15];
    }

    /// The kind of node that it is from: the number of a [`NodeType`].
    pub const fn producer(&self) -> u32 {
        let [high, middle, low] = self.producer;
        u32::from_be_bytes([0, high, middle, low])
    }

    /// The number of the trap.
    pub const fn number(&self) -> u16 {
        self.number.get()
    }

    /// The address of the port that it is from.
    pub const fn issuer(&self) -> Lid {
        Lid::new(self.issuer.get())
    }

    /// Returns the details of the trap; `None` if it is not one of those known here.
    pub fn details(&self) -> Option<Details> {
        Details::read(self.number(), &self.details)
    }
}

/// The details of each trap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Details {
    /// The details of trap 128, [`trap::LINK_STATE`].
    LinkState {
        /// The LID of the switch.
        lid: Lid,
    },
    /// The details of trap 129, [`trap::LINK_INTEGRITY`].
    LinkIntegrity(PortFault),
    /// The details of trap 130, [`trap::BUFFER_OVERRUN`].
    BufferOverrun(PortFault),
    /// The details of trap 131, [`trap::FLOW_CONTROL`].
    FlowControl(PortFault),
    /// The details of trap 144, [`trap::LOCAL_CHANGES`].
    LocalChanges(LocalChanges),
    /// The details of trap 256, [`trap::BAD_M_KEY`].
    BadMKey(BadMKey),
    /// The details of trap 257, [`trap::BAD_P_KEY`].
    BadPKey(BadKey),
    /// The details of trap 258, [`trap::BAD_Q_KEY`].
    BadQKey(BadKey),
    /// The details of trap 259, [`trap::SWITCH_BAD_P_KEY`].
    SwitchBadPKey(SwitchBadPKey),
}

impl Details {
    /// The number of the trap.
    pub const fn number(&self) -> u16 {
        match self {
            Details::LinkState { .. } => trap::LINK_STATE,
            Details::LinkIntegrity(_) => trap::LINK_INTEGRITY,
            Details::BufferOverrun(_) => trap::BUFFER_OVERRUN,
            Details::FlowControl(_) => trap::FLOW_CONTROL,
            Details::LocalChanges(_) => trap::LOCAL_CHANGES,
            Details::BadMKey(_) => trap::BAD_M_KEY,
            Details::BadPKey(_) => trap::BAD_P_KEY,
            Details::BadQKey(_) => trap::BAD_Q_KEY,
            Details::SwitchBadPKey(_) => trap::SWITCH_BAD_P_KEY,
        }
    }

    fn write(&self, bytes: &mut [u8; DETAILS_LEN]) {
        match self {
            Details::LinkState { lid } => fill(bytes, &lid.get().to_be_bytes()),
            Details::LinkIntegrity(fault)
            | Details::BufferOverrun(fault)
            | Details::FlowControl(fault) => fill(bytes, fault.as_bytes()),
            Details::LocalChanges(changes) => fill(bytes, changes.as_bytes()),
            Details::BadMKey(key) => fill(bytes, key.as_bytes()),
            Details::BadPKey(key) | Details::BadQKey(key) => fill(bytes, key.as_bytes()),
            Details::SwitchBadPKey(key) => fill(bytes, key.as_bytes()),
        }
    }

    fn read(number: u16, bytes: &[u8; DETAILS_LEN]) -> Option<Details> {
        fn form<T: zerocopy::FromBytes>(bytes: &[u8]) -> Option<T> {
            T::read_from_prefix(bytes).ok().map(|(form, _)| form)
        }
        Some(match number {
            trap::LINK_STATE => Details::LinkState {
                lid: Lid::new(U16::read_from_prefix(bytes).ok()?.0.get()),
            },
            trap::LINK_INTEGRITY => Details::LinkIntegrity(form(bytes)?),
            trap::BUFFER_OVERRUN => Details::BufferOverrun(form(bytes)?),
            trap::FLOW_CONTROL => Details::FlowControl(form(bytes)?),
            trap::LOCAL_CHANGES => Details::LocalChanges(form(bytes)?),
            trap::BAD_M_KEY => Details::BadMKey(form(bytes)?),
            trap::BAD_P_KEY => Details::BadPKey(form(bytes)?),
            trap::BAD_Q_KEY => Details::BadQKey(form(bytes)?),
            trap::SWITCH_BAD_P_KEY => Details::SwitchBadPKey(form(bytes)?),
            _ => return None,
        })
    }
}

/// Writes the bytes at the beginning of others. Every form of details fits into the 54.
fn fill(bytes: &mut [u8; DETAILS_LEN], form: &[u8]) {
    for (byte, value) in bytes.iter_mut().zip(form) {
        *byte = *value;
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_smp_notice))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    /// The beginning of a notice and of its details.
    fn head(notice: Notice) -> [u8; 24] {
        let bytes: [u8; DATA_LEN] = zerocopy::transmute!(notice);
        bytes.first_chunk().copied().unwrap_or([0; 24])
    }

    #[test]
    fn notices_on_the_wire() {
        let switch = NodeType::Switch;
        let link = Details::LinkState { lid: Lid::new(5) };
        let mut notice = Notice::new(Kind::Urgent, switch, Lid::new(5), &link);
        let golden = [
            0x81, 0x00, 0x00, 0x02, 0x00, 0x80, 0x00, 0x05, // kind, switch, 128, issuer
            0x00, 0x00, 0x00, 0x05, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(head(notice), golden);
        assert_eq!((notice.producer(), notice.kind()), (2, 1));
        assert_eq!(notice.details(), Some(link));
        notice.set_toggle(true);
        notice.set_count(3);
        assert_eq!(head(notice).get(8..10), Some(&[0x80, 3][..]));

        let adapter = NodeType::ChannelAdapter;
        let changes = Details::LocalChanges(LocalChanges::new(
            Lid::new(7),
            0x0241_084a,
            LocalChanges::DESCRIPTION,
        ));
        let notice = Notice::new(Kind::Informational, adapter, Lid::new(7), &changes);
        let golden = [
            0x84, 0x00, 0x00, 0x01, 0x00, 0x90, 0x00, 0x07, // kind, adapter, 144, issuer
            0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x01, // port, other changes
            0x02, 0x41, 0x08, 0x4a, 0x00, 0x01, 0x00, 0x00, // mask, flags
        ];
        assert_eq!(head(notice), golden);
        assert_eq!(notice.details(), Some(changes));

        let fault = Details::FlowControl(PortFault::new(Lid::new(0x102), 3));
        let notice = Notice::new(Kind::Urgent, switch, Lid::new(5), &fault);
        let golden = [
            0x81, 0x00, 0x00, 0x02, 0x00, 0x83, 0x00, 0x05, //
            0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(head(notice), golden);
    }

    #[test]
    fn unknown_traps() {
        let link = Details::LinkState { lid: Lid::new(5) };
        let mut notice = Notice::new(Kind::Urgent, NodeType::Switch, Lid::new(5), &link);
        notice.number.set(127);
        assert_eq!(notice.details(), None);
    }
}
