// SPDX-License-Identifier: GPL-2.0-only

//! Counters of a port (IBTA 16.1.3.5). The shell counts each packet; this module holds only the
//! form in which agents read the counts.

/// The counters of a port. They begin at zero and never go back: what a manager has cleared is
/// remembered beside them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PortCounts {
    /// Words of four bytes sent, headers and CRC counted.
    pub transmit_data: u64,
    /// Words of four bytes taken.
    pub receive_data: u64,
    /// Packets sent, of all kinds (PortXmitPkts).
    pub transmit_packets: u64,
    /// Packets received, of all kinds (PortRcvPkts).
    pub receive_packets: u64,
    /// Unicast packets sent (PortUnicastXmitPkts).
    pub unicast_transmit_packets: u64,
    /// Unicast packets received (PortUnicastRcvPkts).
    pub unicast_receive_packets: u64,
    /// Multicast packets sent (PortMulticastXmitPkts).
    pub multicast_transmit_packets: u64,
    /// Multicast packets received (PortMulticastRcvPkts).
    pub multicast_receive_packets: u64,
    /// Number of times that the link went down (LinkDownedCounter).
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

/// Source of the counters of a node's ports.
pub trait Counters {
    /// Returns the counters of a port; zeros if there is no such port.
    fn read(&self, port: u8) -> PortCounts;
}

impl<F: Fn(u8) -> PortCounts> Counters for F {
    fn read(&self, port: u8) -> PortCounts {
        self(port)
    }
}
