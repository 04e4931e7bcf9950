// SPDX-License-Identifier: GPL-2.0-only

//! Attributes of a port that a subnet manager may set: Set(PortInfo) (IBTA 14.2.5.6).
//!
//! All of a request is looked at before any of it is done.

use super::events::{
    Changes,
    Events,
    LinkCommand, //
};
use super::port::Port;
use super::wire::cm::mtu::Mtu;
use super::wire::lid::Lid;
use super::wire::smp::port::{
    Physical,
    PortInfo,
    State, //
};

/// The kind of node that a port is part of; some fields have a meaning only on some kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// A channel adapter or a router: it has addresses and a link.
    End,
    /// A switch's own port: it has an address and no link.
    SwitchOwn,
    /// A port of a switch to the outside: it has a link and no address.
    SwitchExternal,
}

impl Side {
    const fn has_address(self) -> bool {
        matches!(self, Side::End | Side::SwitchOwn)
    }

    const fn has_link(self) -> bool {
        matches!(self, Side::End | Side::SwitchExternal)
    }
}

/// A value that a port cannot have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BadField;

/// All widths, all speeds that are supported.
const ALL_WIDTHS: u8 = 0xff;
const ALL_SPEEDS: u8 = 0xf;

/// The step that the request takes with the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Stay,
    To(State),
    Down(Physical, LinkCommand),
}

impl Port {
    /// Sets the port, or changes nothing.
    pub(super) fn set(
        &mut self,
        number: u8,
        side: Side,
        wanted: &PortInfo,
    ) -> Result<Events, BadField> {
        let mut next = self.info;
        if side.has_address() {
            set_address(&mut next, wanted)?;
        }
        let step = if side.has_link() {
            set_link(&mut next, wanted)?;
            self.step(wanted)?
        } else {
            Step::Stay
        };
        if side == Side::SwitchExternal {
            next.set_inbound_enforcement(wanted.inbound_enforcement());
            next.set_outbound_enforcement(wanted.outbound_enforcement());
        }
        let mut changes = changes(&self.info, &next);
        changes =
            changes.and(Changes::REREGISTER.when(side.has_address() && wanted.client_reregister()));
        self.info = next;
        // After the fields, which have the state from before the request and would undo the step.
        let (moved, link) = self.take(step);
        Ok(Events {
            port: number,
            changes: changes.and(Changes::STATE.when(moved)),
            link,
        })
    }

    /// Returns the step that the request is for, if the port can take it from its state (IBTA
    /// 7.2.7).
    fn step(&self, wanted: &PortInfo) -> Result<Step, BadField> {
        let down = |physical| match physical {
            Physical::NoChange => Ok(Step::Down(self.info.down_default(), LinkCommand::Down)),
            Physical::Sleep => Ok(Step::Down(Physical::Sleep, LinkCommand::Disable)),
            Physical::Polling if self.is_linked() => {
                Ok(Step::Down(Physical::Polling, LinkCommand::Down))
            }
            Physical::Polling => Ok(Step::Down(Physical::Polling, LinkCommand::Enable)),
            Physical::Disabled => Ok(Step::Down(Physical::Disabled, LinkCommand::Disable)),
            _ => Err(BadField),
        };
        match (wanted.state(), self.info.state(), wanted.physical()) {
            (State::NoChange, _, Physical::NoChange) => Ok(Step::Stay),
            // A link that is to stay as it is is not taken down.
            (State::NoChange, _, Physical::LinkUp) if self.is_linked() => Ok(Step::Stay),
            (State::NoChange | State::Down, _, physical) => down(physical),
            (State::Armed, State::Init, _) => Ok(Step::To(State::Armed)),
            (State::Active, State::Armed, _) => Ok(Step::To(State::Active)),
            (State::Armed, State::Armed, _) | (State::Active, State::Active, _) => Ok(Step::Stay),
            _ => Err(BadField),
        }
    }

    /// Takes the step. Whether the state is another than before, and what is to be done about it.
    fn take(&mut self, step: Step) -> (bool, Option<LinkCommand>) {
        let before = self.info.state();
        let link = match step {
            Step::Stay => None,
            Step::To(state) => {
                self.info.set_state(state);
                None
            }
            Step::Down(physical, command) => {
                self.down(physical);
                Some(command)
            }
        };
        (before != self.info.state(), link)
    }
}

/// An address that a port can be given; the reserved one only to one that has none yet.
fn check_lid(wanted: Lid, now: Lid) -> Result<Lid, BadField> {
    if wanted.is_unicast() || wanted == now {
        Ok(wanted)
    } else {
        Err(BadField)
    }
}

/// The fields of a port that has an address.
fn set_address(next: &mut PortInfo, wanted: &PortInfo) -> Result<(), BadField> {
    next.set_lid(check_lid(wanted.lid(), next.lid())?);
    next.set_sm_lid(check_lid(wanted.sm_lid(), next.sm_lid())?);
    next.set_lmc(wanted.lmc());
    next.set_sm_sl(wanted.sm_sl());
    next.set_m_key(wanted.m_key());
    next.set_m_key_protect(wanted.m_key_protect());
    next.set_m_key_lease(wanted.m_key_lease());
    next.set_gid_prefix(wanted.gid_prefix());
    next.set_subnet_timeout(wanted.subnet_timeout());
    next.set_trap_suppression(wanted.trap_suppression());
    // The counters of violations can be cleared, and nothing else be made of them.
    if wanted.m_key_violations() == 0 {
        next.set_m_key_violations(0);
    }
    if wanted.q_key_violations() == 0 {
        next.set_q_key_violations(0);
    }
    if wanted.p_key_violations() == 0 {
        next.set_p_key_violations(0);
    }
    Ok(())
}

/// The fields of a port that has a link.
fn set_link(next: &mut PortInfo, wanted: &PortInfo) -> Result<(), BadField> {
    let widths = subset(
        wanted.width_enabled(),
        next.width_enabled(),
        next.width_supported(),
        ALL_WIDTHS,
    )?;
    next.set_width_enabled(widths);
    let speeds = subset(
        wanted.speed_enabled(),
        next.speed_enabled(),
        next.speed_supported(),
        ALL_SPEEDS,
    )?;
    next.set_speed_enabled(speeds);
    match wanted.down_default() {
        Physical::NoChange => {}
        default @ (Physical::Sleep | Physical::Polling) => next.set_down_default(default),
        _ => return Err(BadField),
    }
    let mtu = wanted.neighbor_mtu();
    if mtu < Mtu::new(1) || mtu > next.mtu_cap() {
        return Err(BadField);
    }
    next.set_neighbor_mtu(mtu);
    match wanted.operational_vls() {
        0 => {}
        vls if vls <= next.vl_cap() => next.set_operational_vls(vls),
        _ => return Err(BadField),
    }
    next.set_vl_high_limit(wanted.vl_high_limit());
    next.set_stall_count(wanted.stall_count());
    next.set_hoq_life(wanted.hoq_life());
    next.set_local_phy_errors(wanted.local_phy_errors());
    next.set_overrun_errors(wanted.overrun_errors());
    Ok(())
}

/// Returns the widths or speeds to be enabled: `now` for 0, all that are supported for `all`,
/// otherwise those wanted.
fn subset(wanted: u8, now: u8, supported: u8, all: u8) -> Result<u8, BadField> {
    match wanted {
        0 => Ok(now),
        wanted if wanted == all => Ok(supported),
        wanted if wanted & !supported == 0 => Ok(wanted),
        _ => Err(BadField),
    }
}

/// Returns those changes of the port that consumers have to be told.
fn changes(before: &PortInfo, after: &PortInfo) -> Changes {
    let lid = (before.lid(), before.lmc()) != (after.lid(), after.lmc());
    let sm = (before.sm_lid(), before.sm_sl()) != (after.sm_lid(), after.sm_sl());
    let gid = before.gid_prefix() != after.gid_prefix();
    Changes::LID
        .when(lid)
        .and(Changes::SM.when(sm))
        .and(Changes::GID.when(gid))
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_fabric_port_set))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::super::port::Profile;
    use super::*;

    /// A port with a link, and what its manager reads of it.
    fn linked() -> (Port, PortInfo) {
        let mut port = Port::new(&Profile::new(1));
        port.carrier(true);
        let mut wanted = *port.info();
        wanted.set_state(State::NoChange);
        wanted.set_physical(Physical::NoChange);
        wanted.set_lid(Lid::new(3));
        wanted.set_sm_lid(Lid::new(1));
        (port, wanted)
    }

    #[test]
    fn brought_up() {
        let (mut port, mut wanted) = linked();
        let events = port.set(1, Side::End, &wanted);
        let addressed = Changes::LID.and(Changes::SM);
        assert_eq!(events, Ok(Events::new(1, addressed)));
        // Not in one step.
        wanted.set_state(State::Active);
        assert_eq!(port.set(1, Side::End, &wanted), Err(BadField));
        for state in [State::Armed, State::Active] {
            wanted.set_state(state);
            let events = port.set(1, Side::End, &wanted);
            assert_eq!(events, Ok(Events::new(1, Changes::STATE)));
        }
        assert!(port.is_active());
        // Nor back but by the link.
        wanted.set_state(State::Init);
        assert_eq!(port.set(1, Side::End, &wanted), Err(BadField));
        wanted.set_state(State::Down);
        let link = port.set(1, Side::End, &wanted).map(|events| events.link);
        assert_eq!(link, Ok(Some(LinkCommand::Down)));
        assert!(!port.is_linked());
    }

    #[test]
    fn what_a_request_sets_of_the_link_outlives_its_reset() {
        let (mut port, mut wanted) = linked();
        let mtu = Mtu::new(2);
        wanted.set_neighbor_mtu(mtu);
        wanted.set_state(State::Down);
        let link = port.set(1, Side::End, &wanted).map(|events| events.link);
        assert_eq!(link, Ok(Some(LinkCommand::Down)));
        assert!(port.carrier(true));
        assert_eq!(port.info().state(), State::Init);
        assert_eq!(port.info().neighbor_mtu(), mtu);
    }

    #[test]
    fn nothing_of_a_bad_request_is_done() {
        let table: [fn(&mut PortInfo); 4] = [
            |wanted| wanted.set_lid(Lid::new(0xc000)),
            |wanted| wanted.set_neighbor_mtu(Mtu::new(6)),
            |wanted| wanted.set_operational_vls(2),
            |wanted| wanted.set_width_enabled(0x10),
        ];
        for spoil in table {
            let (mut port, mut wanted) = linked();
            let before = *port.info();
            spoil(&mut wanted);
            assert_eq!(port.set(1, Side::End, &wanted), Err(BadField));
            assert_eq!(*port.info(), before);
        }
    }
}
