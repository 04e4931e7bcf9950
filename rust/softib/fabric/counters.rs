// SPDX-License-Identifier: GPL-2.0-only

//! What a port has counted (IBTA 16.1.3.5). The shell counts, on each packet; here is only what
//! has to be known to answer for it.

/// The counters of a port. They begin at zero and never go back: what a manager has cleared is
/// remembered beside them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PortCounts {
    /// Words of four bytes sent, headers and CRC counted.
    pub transmit_data: u64,
    /// Words of four bytes taken.
    pub receive_data: u64,
    /// Packets sent.
    pub transmit_packets: u64,
    /// Packets taken.
    pub receive_packets: u64,
    /// Of these to one port.
    pub unicast_transmit_packets: u64,
    /// Of these to one port.
    pub unicast_receive_packets: u64,
    /// Of these to a group.
    pub multicast_transmit_packets: u64,
    /// Of these to a group.
    pub multicast_receive_packets: u64,
    /// How often the link went down.
    pub link_downed: u64,
    /// Packets that came malformed.
    pub receive_errors: u64,
    /// Packets that could not be forwarded.
    pub relay_errors: u64,
    /// Packets that could not be sent.
    pub transmit_discards: u64,
    /// Packets not sent because of their partition.
    pub transmit_constraint: u64,
    /// Packets not taken because of their partition.
    pub receive_constraint: u64,
    /// Packets for subnet management that were dropped.
    pub vl15_dropped: u64,
    /// Packets for the general services that were dropped.
    pub qp1_dropped: u64,
}

/// Where the counters of a node's ports are.
pub trait Counters {
    /// Those of a port; of one that there is not, zeros.
    fn read(&self, port: u8) -> PortCounts;
}

impl<F: Fn(u8) -> PortCounts> Counters for F {
    fn read(&self, port: u8) -> PortCounts {
        self(port)
    }
}
