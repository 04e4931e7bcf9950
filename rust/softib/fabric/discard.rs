// SPDX-License-Identifier: GPL-2.0-only

//! Causes for which a packet goes no further.

use core::fmt;

/// The cause for which a switch, a router or an agent drops a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Discard {
    /// Received by a port that does not exist.
    NoPort,
    /// Received by a port without a link.
    LinkDown,
    /// Received by a port that is not active, and not subnet management.
    NotActive,
    /// Subnet management off its lane (VL 15) or with a global route, or another packet on that
    /// lane.
    Lane,
    /// The destination is no address, or the permissive one.
    Destination,
    /// The tables have no port for its destination.
    NoRoute,
    /// The output port is the port that received the packet.
    Turn,
    /// The port by which it would leave is not active.
    OutNotActive,
    /// Longer than the link of the output port allows.
    Mtu,
    /// The port by which it came is not in its partition.
    PartitionIn,
    /// The port by which it would leave is not in its partition.
    PartitionOut,
    /// Its level has no lane on the link by which it would leave.
    NoLane,
    /// More switches passed than there are on any path: their tables lead it in a circle.
    Lifetime,
    /// A directed route of more than 63 hops.
    HopCount,
    /// A directed route with a pointer that is not possible here.
    HopPointer,
    /// A directed route by a port that there is not.
    HopPort,
    /// A management datagram of another form, class or queue pair.
    Management,
    /// A management request with a wrong M_Key.
    MKey,
    /// A response or a notice to a manager that is not here.
    NotHere,
    /// Sent to a router without a global route.
    NoGlobalRoute,
    /// Sent to a router with its last hop: a hop limit of 0 or 1.
    HopLimit,
    /// Sent to a router with a link-local source or destination.
    LinkLocal,
    /// Sent to a router with a multicast source or destination.
    Multicast,
    /// Sent to a router for a subnet that it does not know.
    NoSubnet,
    /// Sent to a router for the subnet from which it came.
    SameSubnet,
    /// Sent to a router for a port with a LID that it does not know.
    NoNeighbour,
}

/// The counter of the port at which a packet was dropped (IBTA 16.1.3.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortCounter {
    /// `PortRcvErrors`: packets that came by no usable port, or on a wrong lane.
    ReceiveErrors,
    /// `PortRcvSwitchRelayErrors`, of the port by which it came.
    RelayErrors,
    /// `PortXmitDiscards`, of the port by which it would have left; in a switch that drops before
    /// it knows which, of the port by which it came.
    TransmitDiscards,
    /// `PortRcvConstraintErrors`: packets of a partition that the input port is not in.
    ReceiveConstraint,
    /// `PortXmitConstraintErrors`: packets of a partition that the output port is not in.
    TransmitConstraint,
    /// `VL15Dropped`: datagrams of subnet management.
    Vl15Dropped,
    /// `QP1Dropped`: datagrams for the general services.
    Qp1Dropped,
}

impl Discard {
    /// The number of causes.
    pub const COUNT: usize = Discard::NoNeighbour as usize + 1;

    /// All causes, in the order of [`Discard::index`].
    pub const ALL: [Discard; Discard::COUNT] = [
        Discard::NoPort,
        Discard::LinkDown,
        Discard::NotActive,
        Discard::Lane,
        Discard::Destination,
        Discard::NoRoute,
        Discard::Turn,
        Discard::OutNotActive,
        Discard::Mtu,
        Discard::PartitionIn,
        Discard::PartitionOut,
        Discard::NoLane,
        Discard::Lifetime,
        Discard::HopCount,
        Discard::HopPointer,
        Discard::HopPort,
        Discard::Management,
        Discard::MKey,
        Discard::NotHere,
        Discard::NoGlobalRoute,
        Discard::HopLimit,
        Discard::LinkLocal,
        Discard::Multicast,
        Discard::NoSubnet,
        Discard::SameSubnet,
        Discard::NoNeighbour,
    ];

    /// The place of the cause among all of them.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The counter of the port.
    pub const fn counter(self) -> PortCounter {
        match self {
            Discard::NoPort | Discard::LinkDown | Discard::NotActive | Discard::Lane => {
                PortCounter::ReceiveErrors
            }
            Discard::Destination
            | Discard::NoRoute
            | Discard::Turn
            | Discard::NoGlobalRoute
            | Discard::HopLimit
            | Discard::LinkLocal
            | Discard::Multicast
            | Discard::NoSubnet
            | Discard::SameSubnet
            | Discard::NoNeighbour => PortCounter::RelayErrors,
            Discard::OutNotActive | Discard::Mtu | Discard::NoLane | Discard::Lifetime => {
                PortCounter::TransmitDiscards
            }
            Discard::PartitionIn => PortCounter::ReceiveConstraint,
            Discard::PartitionOut => PortCounter::TransmitConstraint,
            Discard::HopCount
            | Discard::HopPointer
            | Discard::HopPort
            | Discard::MKey
            | Discard::NotHere => PortCounter::Vl15Dropped,
            Discard::Management => PortCounter::Qp1Dropped,
        }
    }

    /// A name for a counter, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Discard::NoPort => "no_port",
            Discard::LinkDown => "link_down",
            Discard::NotActive => "not_active",
            Discard::Lane => "lane",
            Discard::Destination => "destination",
            Discard::NoRoute => "no_route",
            Discard::Turn => "turn",
            Discard::OutNotActive => "out_not_active",
            Discard::Mtu => "mtu",
            Discard::PartitionIn => "partition_in",
            Discard::PartitionOut => "partition_out",
            Discard::NoLane => "no_lane",
            Discard::Lifetime => "lifetime",
            Discard::HopCount => "hop_count",
            Discard::HopPointer => "hop_pointer",
            Discard::HopPort => "hop_port",
            Discard::Management => "management",
            Discard::MKey => "m_key",
            Discard::NotHere => "not_here",
            Discard::NoGlobalRoute => "no_global_route",
            Discard::HopLimit => "hop_limit",
            Discard::LinkLocal => "link_local",
            Discard::Multicast => "multicast",
            Discard::NoSubnet => "no_subnet",
            Discard::SameSubnet => "same_subnet",
            Discard::NoNeighbour => "no_neighbour",
        }
    }
}

impl fmt::Display for Discard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
