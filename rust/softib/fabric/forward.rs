// SPDX-License-Identifier: GPL-2.0-only

//! Forwarding in a switch (IBTA 18.2.4): the ports by which a packet leaves.

use super::datagram::SUBNET_QP;
use super::discard::Discard;
use super::port::Port;
use super::switch::{
    PortMask,
    Storage,
    Switch, //
};
use super::wire::lid::Lid;
use super::wire::lrh::VL_MANAGEMENT;
use super::wire::packet::Head;
use super::wire::smp::forwarding::NO_PORT;

/// Bytes of headers and CRC by which a packet may be longer than the MTU of its link (IBTA
/// 7.7.8).
const MAX_OVERHEAD: usize = 124;

/// Returns whether the packet is for subnet management: it is on the lane for that, and for the
/// queue pair for that.
///
/// # Errors
///
/// [`Discard::Lane`] if only one of them holds, or it has a global route, which none of them has
/// (C14-1).
fn is_management(head: &Head<'_>) -> Result<bool, Discard> {
    let lane = head.lrh.vl() == VL_MANAGEMENT;
    let queue_pair = head.bth.destination() == SUBNET_QP;
    match (lane, queue_pair, head.grh) {
        (false, false, _) => Ok(false),
        (true, true, None) => Ok(true),
        _ => Err(Discard::Lane),
    }
}

/// Checks whether a packet may leave by that port.
fn may_leave(port: &Port, head: &Head<'_>, management: bool) -> Result<(), Discard> {
    let open = if management {
        port.is_linked()
    } else {
        port.is_active()
    };
    if !open {
        return Err(Discard::OutNotActive);
    }
    let mtu = port.info().neighbor_mtu().bytes().unwrap_or(0);
    if head.bytes.len() > usize::from(mtu) + MAX_OVERHEAD {
        return Err(Discard::Mtu);
    }
    let checked = !management && port.info().outbound_enforcement();
    if checked && !port.is_in_partition(head.bth.pkey()) {
        return Err(Discard::PartitionOut);
    }
    Ok(())
}

impl<S: Storage> Switch<S> {
    /// Returns the ports by which a packet that came by `in_port` leaves. Port 0 is the switch
    /// itself: the packet is for the switch's own management.
    ///
    /// # Errors
    ///
    /// [`Discard`] if there is none. A multicast packet that may leave by some ports only is not
    /// passed on by the others, which is no error.
    pub fn forward(&self, in_port: u8, head: &Head<'_>) -> Result<PortMask, Discard> {
        let port = match in_port {
            0 => None,
            in_port => self.node().port(in_port),
        };
        let port = port.ok_or(Discard::NoPort)?;
        if !port.is_linked() {
            return Err(Discard::LinkDown);
        }
        let management = is_management(head)?;
        let dlid = head.lrh.dlid();
        // A directed route: the switch itself moves the packet on.
        if management && dlid == Lid::PERMISSIVE {
            return Ok(PortMask::OWN);
        }
        if !management && !port.is_active() {
            return Err(Discard::NotActive);
        }
        let checked = !management && port.info().inbound_enforcement();
        if checked && !port.is_in_partition(head.bth.pkey()) {
            return Err(Discard::PartitionIn);
        }
        if dlid.is_unicast() {
            self.forward_unicast(in_port, head, management)
        } else if dlid == Lid::ZERO || dlid == Lid::PERMISSIVE || management {
            Err(Discard::Destination)
        } else {
            self.forward_multicast(in_port, head)
        }
    }

    fn forward_unicast(
        &self,
        in_port: u8,
        head: &Head<'_>,
        management: bool,
    ) -> Result<PortMask, Discard> {
        match self.route(head.lrh.dlid()).ok_or(Discard::NoRoute)? {
            0 => Ok(PortMask::OWN),
            out if out == in_port => Err(Discard::Turn),
            out => {
                let port = self.node().port(out).ok_or(Discard::NoRoute)?;
                may_leave(port, head, management)?;
                Ok(PortMask::of(out))
            }
        }
    }

    fn forward_multicast(&self, in_port: u8, head: &Head<'_>) -> Result<PortMask, Discard> {
        // Not back to where it came from, nor to the switch itself, which is in no group.
        let wanted = self
            .group(in_port, head.lrh.dlid())
            .without(in_port)
            .without(0);
        if wanted.is_empty() {
            return Err(Discard::NoRoute);
        }
        let mut open = PortMask::NONE;
        let mut refused = Discard::OutNotActive;
        for out in wanted {
            let may = self
                .node()
                .port(out)
                .ok_or(Discard::NoRoute)
                .and_then(|port| may_leave(port, head, false));
            match may {
                Ok(()) => open = open.with(out),
                Err(discard) => refused = discard,
            }
        }
        if open.is_empty() {
            Err(refused)
        } else {
            Ok(open)
        }
    }

    /// The port of an address: 0 for the switch's own.
    pub(super) fn route(&self, lid: Lid) -> Option<u8> {
        if self.node().port(0).is_some_and(|port| port.owns_lid(lid)) {
            return Some(0);
        }
        if lid.get() > self.info.linear_top() {
            return None;
        }
        let port = *self.linear.get(usize::from(lid.get()))?;
        (port != NO_PORT).then_some(port)
    }

    /// The ports of a group: those of its entry, or, if the table has no room for it, the default
    /// one.
    fn group(&self, in_port: u8, lid: Lid) -> PortMask {
        let index = usize::from(lid.get().wrapping_sub(Lid::FIRST_MULTICAST.get()));
        if let Some(entry) = self.multicast.get(index) {
            return *entry;
        }
        let primary = self.info.default_multicast_primary();
        let port = if in_port == primary {
            self.info.default_multicast_other()
        } else {
            primary
        };
        PortMask::of(port)
    }

    /// The lane on which the packet that came by one port leaves by another: it is to be written
    /// into the header, which the invariant CRC leaves out.
    ///
    /// # Errors
    ///
    /// [`Discard::NoLane`] if its level has none there (IBTA 7.6.6).
    pub fn lane(&self, in_port: u8, out_port: u8, head: &Head<'_>) -> Result<u8, Discard> {
        if head.lrh.vl() == VL_MANAGEMENT {
            return Ok(VL_MANAGEMENT);
        }
        let port = self.node().port(out_port).ok_or(Discard::NoRoute)?;
        let vls = port.info().operational_vls();
        if vls <= 1 {
            return Ok(0);
        }
        let lane = self
            .mapping(in_port, out_port)
            .map_or(0, |mapping| mapping.lane(head.lrh.sl()));
        // 2 is for two lanes, 3 for four, 4 for eight, 5 for fifteen.
        let lanes = if vls >= 5 { 15 } else { 1 << (vls - 1) };
        if lane < lanes {
            Ok(lane)
        } else {
            Err(Discard::NoLane)
        }
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_fabric_forward))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::super::node::Identity;
    use super::super::port::Profile;
    use super::super::switch::Tables;
    use super::super::wire::bth::Transport;
    use super::super::wire::icrc;
    use super::super::wire::opcode::{
        Opcode,
        Operation,
        Service, //
    };
    use super::super::wire::packet::{
        Extension,
        Outgoing, //
    };
    use super::super::wire::pkey::Pkey;
    use super::super::wire::psn::Psn;
    use super::super::wire::qpn::Qpn;
    use super::super::wire::smp::lanes::SlToVl;
    use super::super::wire::smp::node::{
        NodeType,
        DESCRIPTION_LEN, //
    };
    use super::super::wire::smp::port::State;
    use super::*;

    /// Tables that another owner has.
    #[derive(Debug)]
    struct Lent<'a>(core::marker::PhantomData<&'a ()>);

    impl<'a> Storage for Lent<'a> {
        type Ports = &'a mut [Port];
        type Linear = &'a mut [u8];
        type Multicast = &'a mut [PortMask];
        type Lanes = &'a mut [SlToVl];
    }

    /// A packet without payload to that address.
    fn packet(dlid: u16) -> [u8; 24] {
        let outgoing = Outgoing {
            vl: 0,
            sl: 0,
            dlid: Lid::new(dlid),
            slid: Lid::new(1),
            global: None,
            transport: Transport {
                opcode: Opcode {
                    service: Service::Rc,
                    operation: Operation::SendMiddle,
                },
                solicited: false,
                migrated: true,
                pad: 0,
                pkey: Pkey::DEFAULT,
                destination: Qpn::from_bytes([0, 0, 7]),
                ack_request: false,
                psn: Psn::from_bytes([0; 3]),
            },
            extension: Extension::default(),
        };
        let mut bytes = [0; 24];
        assert_eq!(outgoing.build(&[], &mut bytes, icrc::crc32), Ok(24));
        bytes
    }

    #[test]
    fn tables_decide() {
        let profile = Profile::new(1);
        let mut ports = [
            Port::of_switch(&profile),
            Port::new(&profile),
            Port::new(&profile),
            Port::new(&profile),
            Port::new(&profile),
        ];
        // The last has no link.
        for port in ports.iter_mut().take(4) {
            port.carrier(true);
            port.info.set_state(State::Active);
        }
        let tables = Tables {
            ports: &mut ports[..],
            linear: &mut [0; 64][..],
            multicast: &mut [PortMask::NONE; 32][..],
            lanes: &mut [][..],
        };
        let identity = Identity {
            node_type: NodeType::Switch,
            node_guid: 1,
            system_guid: 1,
            device: 0,
            revision: 0,
            vendor: 0,
            description: [0; DESCRIPTION_LEN],
        };
        let switch = Switch::<Lent<'_>>::new(identity, tables);
        assert!(switch.is_some());
        let Some(mut switch) = switch else {
            return;
        };
        switch.info.set_linear_top(10);
        for (entry, port) in switch.linear.iter_mut().zip([NO_PORT, 1, 2, 3, 4, 9]) {
            *entry = port;
        }
        if let Some(group) = switch.multicast.get_mut(1) {
            *group = PortMask::of(1).with(2).with(3).with(4);
        }
        let table = [
            (2, Ok(PortMask::of(2))),
            (1, Err(Discard::Turn)),
            (4, Err(Discard::OutNotActive)),
            (5, Err(Discard::NoRoute)),
            (6, Err(Discard::NoRoute)),
            (11, Err(Discard::NoRoute)),
            (0, Err(Discard::Destination)),
            (0xffff, Err(Discard::Destination)),
            // A group: all of it that is active, but not back.
            (0xc001, Ok(PortMask::of(2).with(3))),
            (0xc002, Err(Discard::NoRoute)),
            (0xc020, Err(Discard::NoRoute)),
        ];
        for (dlid, way) in table {
            let bytes = packet(dlid);
            let found = Head::parse(&bytes).map(|head| switch.forward(1, &head));
            assert_eq!(found, Ok(way));
        }
        let bytes = packet(1);
        let from_down = Head::parse(&bytes).map(|head| switch.forward(4, &head));
        assert_eq!(from_down, Ok(Err(Discard::LinkDown)));
    }
}
