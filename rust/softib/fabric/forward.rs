// SPDX-License-Identifier: GPL-2.0-only

//! By which ports a switch passes a packet on (IBTA 18.2.4).

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

/// How much longer than the payload that a link allows a packet may be, by its headers and its
/// CRC (IBTA 7.7.8).
const MAX_OVERHEAD: usize = 124;

/// The first of the addresses of multicast groups.
const FIRST_MULTICAST: u16 = 0xc000;

/// Whether the packet is for subnet management: it is on the lane for that, and for the queue pair
/// for that.
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

/// Whether a packet may leave by that port.
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
    /// By which ports the packet that came by that one leaves. Port 0 is the switch itself: it is
    /// for [`Switch::receive`].
    ///
    /// # Errors
    ///
    /// [`Discard`] if by none. Of a multicast packet that leaves by some ports those that it may
    /// not leave by are left out.
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
        let index = usize::from(lid.get().wrapping_sub(FIRST_MULTICAST));
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
