// SPDX-License-Identifier: GPL-2.0-only

//! Attributes of a port, as its queries return them.

use super::Ports;
use crate::wire::smp::port::{
    Physical,
    State, //
};

/// The attributes of a port, in the numbers of the verbs.
pub(crate) struct Attributes {
    pub(crate) state: u8,
    pub(crate) physical: u8,
    pub(crate) max_mtu: u8,
    pub(crate) active_mtu: u8,
    pub(crate) capabilities: u32,
    pub(crate) bad_pkeys: u32,
    pub(crate) bad_qkeys: u32,
    pub(crate) lid: u16,
    pub(crate) sm_lid: u16,
    pub(crate) lmc: u8,
    pub(crate) lanes: u8,
    pub(crate) sm_sl: u8,
    pub(crate) subnet_timeout: u8,
    pub(crate) width: u8,
    pub(crate) speed: u16,
}

impl Ports {
    /// Returns the attributes of a port; `None` if there is no such port.
    pub(crate) fn attributes(&self, port: u8) -> Option<Attributes> {
        self.look(port, |port| {
            let info = port.info();
            Attributes {
                state: state_number(info.state()),
                physical: physical_number(info.physical()),
                max_mtu: info.mtu_cap().get(),
                active_mtu: info.neighbor_mtu().get(),
                capabilities: info.capability_mask(),
                bad_pkeys: info.p_key_violations().into(),
                bad_qkeys: info.q_key_violations().into(),
                lid: info.lid().get(),
                sm_lid: info.sm_lid().get(),
                lmc: info.lmc(),
                lanes: info.vl_cap(),
                sm_sl: info.sm_sl(),
                subnet_timeout: info.subnet_timeout(),
                width: info.width_active(),
                speed: info.speed_active().into(),
            }
        })
    }
}

/// A state by its number in the verbs.
fn state_number(state: State) -> u8 {
    match state {
        State::NoChange => 0,
        State::Down => 1,
        State::Init => 2,
        State::Armed => 3,
        State::Active => 4,
        State::Reserved(other) => other,
    }
}

/// A link's state by its number in the verbs.
fn physical_number(physical: Physical) -> u8 {
    match physical {
        Physical::NoChange => 0,
        Physical::Sleep => 1,
        Physical::Polling => 2,
        Physical::Disabled => 3,
        Physical::Training => 4,
        Physical::LinkUp => 5,
        Physical::Recovery => 6,
        Physical::Reserved(other) => other,
    }
}
