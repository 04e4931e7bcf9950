// SPDX-License-Identifier: GPL-2.0-only

//! Switches: the fabric's decisions, carried out on cables.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    fabric::{
        port::{
            Port,
            Profile, //
        },
        switch::{
            PortMask,
            Storage,
            Switch,
            Tables,
            MAX_LINEAR,
            MAX_PORTS, //
        },
        Discard,
    },
    identity::{
        culprit,
        identity, //
    },
    net::{
        cable::NetDevice,
        frame::Frame, //
    },
    relay::{
        Cause,
        Decide,
        Relay,
        Running, //
    },
    wire::{
        packet::{
            Head,
            Packet, //
        },
        smp::{
            lanes::SlToVl,
            node::NodeType, //
        }, //
    }, //
};

/// Entries of the multicast forwarding table. OpenSM gives addresses from the first on.
const MULTICAST: usize = 1024;

/// Storage of a switch's tables in the kernel's memory.
pub(crate) struct Memory;

impl Storage for Memory {
    type Ports = KVec<Port>;
    type Linear = KVVec<u8>;
    type Multicast = KVec<PortMask>;
    type Lanes = KVec<SlToVl>;
}

/// A switch that is on.
pub(crate) type On = Running<Switch<Memory>>;

/// Starts a switch with a port for each net device.
///
/// # Errors
///
/// `EINVAL` without ports or with too many; as [`Running::new`].
pub(crate) fn start(name: &[u8], guid: Option<u64>, devices: &[NetDevice]) -> Result<On> {
    if devices.is_empty() || devices.len() > usize::from(MAX_PORTS) {
        return Err(EINVAL);
    }
    let guid = match (guid, devices.first()) {
        (Some(guid), _) => guid,
        // Not that of a device on the other end: the first net device's address may be that one.
        (None, Some(first)) => first.guid(1),
        (None, None) => return Err(EINVAL),
    };
    let profile = Profile::new(guid);
    let mut ports = KVec::with_capacity(devices.len() + 1, GFP_KERNEL)?;
    ports.push(Port::of_switch(&profile), GFP_KERNEL)?;
    for _ in devices {
        ports.push(Port::new(&profile), GFP_KERNEL)?;
    }
    let tables = Tables {
        ports,
        linear: KVVec::from_elem(0, MAX_LINEAR, GFP_KERNEL)?,
        multicast: KVec::from_elem(PortMask::NONE, MULTICAST, GFP_KERNEL)?,
        lanes: KVec::new(),
    };
    let identity = identity(NodeType::Switch, guid, name);
    let switch = Switch::new(identity, tables).ok_or(EINVAL)?;
    Running::new(switch, devices)
}

impl Decide for Switch<Memory> {
    fn pass(relay: &Arc<Relay<Self>>, port: u8, mut frame: Frame) -> Result<(), Cause> {
        if !frame.come_to_switch() {
            return Err(Discard::Lifetime.into());
        }
        let head = Head::parse(frame.bytes())?;
        match relay.with(|switch| Decision::find(switch, port, &head)) {
            Ok(Decision::Out(out)) => {
                relay.send(out, frame);
                Ok(())
            }
            Ok(Decision::Several(ports)) => several(relay, ports, frame),
            Ok(Decision::Own) => relay.serve(port, &frame),
            Ok(Decision::Lane(out, lane)) => {
                relay.send(out, relane(frame, lane)?);
                Ok(())
            }
            Err(discard) => {
                if discard == Discard::PartitionIn {
                    report(relay, port, &frame);
                }
                Err(discard.into())
            }
        }
    }
}

/// The forwarding decision about a packet.
enum Decision {
    /// Out by a port, as it came.
    Out(u8),
    /// Out by a port, on another lane.
    Lane(u8, u8),
    /// Copies out by several ports, as it came.
    Several(PortMask),
    /// Delivery to the switch itself.
    Own,
}

impl Decision {
    fn find(switch: &Switch<Memory>, port: u8, head: &Head<'_>) -> Result<Self, Discard> {
        let mask = switch.forward(port, head)?;
        if mask.has(0) {
            return Ok(Self::Own);
        }
        let mut ports = mask;
        match (ports.next(), ports.is_empty()) {
            (Some(out), true) => {
                let lane = switch.lane(port, out, head)?;
                if lane == head.lrh.vl() {
                    Ok(Self::Out(out))
                } else {
                    Ok(Self::Lane(out, lane))
                }
            }
            // All data lanes of a switch here are one.
            _ => Ok(Self::Several(mask)),
        }
    }
}

/// Sends a packet by each of the ports.
fn several(relay: &Arc<Relay<Switch<Memory>>>, ports: PortMask, frame: Frame) -> Result<(), Cause> {
    let mut ports = ports;
    let Some(mut port) = ports.next() else {
        return Ok(());
    };
    for next in ports {
        // Without memory the ports that are left get no copy, and the packet counts as dropped.
        let copy = frame.try_clone().map_err(|_| Cause::Memory)?;
        relay.send(port, copy);
        port = next;
    }
    relay.send(port, frame);
    Ok(())
}

/// Writes another lane into a packet's local route header, which no CRC that is carried here
/// covers.
fn relane(mut frame: Frame, lane: u8) -> Result<Frame, Cause> {
    let bytes = frame.bytes_mut().map_err(|_| Cause::Memory)?;
    if let Some(first) = bytes.first_mut() {
        *first = (*first & 0x0f) | (lane << 4);
    }
    Ok(frame)
}

/// Tells the subnet manager of a packet of a partition that its port is not in.
fn report(relay: &Arc<Relay<Switch<Memory>>>, port: u8, frame: &Frame) {
    let Ok(packet) = Packet::parse(frame.bytes()) else {
        return;
    };
    let culprit = culprit(&packet, packet.transport.pkey.get().into());
    let now = relay.now();
    let events = relay.with(|switch| switch.bad_p_key(port, &culprit, now));
    relay.follow(&events);
}
