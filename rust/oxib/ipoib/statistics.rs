// SPDX-License-Identifier: GPL-2.0-only

//! Statistics of `ethtool -S`, summed over the queues.

use kernel::prelude::*;

use super::interface::Interface;
use crate::net::{
    device::Device,
    queue_statistics::{
        Received,
        Sent, //
    },
    statistics::Counter, //
};

macro_rules! statistics {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Counters of one interface, or of one of its queues.
        #[derive(Default)]
        pub(super) struct Statistics {
            $($(#[$doc])* pub(super) $field: Counter,)*
        }

        impl Statistics {
            /// The names, in the order of [`Self::add_to`].
            pub(super) const NAMES: &'static [&'static CStr] = &[
                $({
                    const NAME: &str = concat!(stringify!($field), "\0");
                    match CStr::from_bytes_with_nul(NAME.as_bytes()) {
                        Ok(name) => name,
                        Err(_) => c"",
                    }
                },)*
            ];

            /// Adds the values to `sums`.
            pub(super) fn add_to(&self, sums: &mut [u64]) {
                let values = [$(self.$field.get(),)*];
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum = sum.wrapping_add(value);
                }
            }
        }
    };
}

statistics! {
    /// Packets given to the device.
    tx_packets,
    /// Packets that the device has sent.
    tx_sent,
    /// Bytes sent, with encapsulation headers.
    tx_bytes,
    /// Long TCP segments that were cut, by the device or for it.
    tx_long,
    /// Segments that they were cut into.
    tx_parts,
    /// Calls of the device's `post_send`: doorbells.
    tx_posts,
    /// Calls of `post_send` with more than one packet.
    tx_chains,
    /// Packets with their data in the work request (inline).
    tx_inline,
    /// Send completions taken from completion queues.
    tx_completions,
    /// Times that the stack was told to stop.
    tx_stopped,
    /// Completions with an error.
    tx_errors,
    /// Packets dropped: the device refused them.
    tx_drop_refused,
    /// Packets dropped: no slot was free.
    tx_drop_full,
    /// Packets dropped: no memory, no room for the destination, or they could not be mapped.
    tx_drop_memory,
    /// Packets dropped: no link-layer header, or one that names nothing to send.
    tx_drop_header,
    /// Packets dropped: longer than the MTU.
    tx_drop_length,
    /// Packets dropped: too many wait for the same destination, one waited too long for its
    /// connection, or too many destinations are searched for.
    tx_drop_waiting,
    /// Packets dropped: the destination does not answer.
    tx_drop_unreachable,
    /// Questions for neighbours dropped: the address cache has to answer them and cannot.
    tx_drop_unresolved,
    /// Packets dropped: the interface was taken down before they went.
    tx_drop_down,
    /// Packets lost with their connection: the peer went, or was not ready.
    tx_drop_connection,
    /// Searches for destinations that found the path.
    address_resolved,
    /// Searches for destinations that failed.
    address_failed,
    /// Packets that had to ask the interface's table of destinations.
    address_misses,
    /// Destinations in the table now, found or not.
    address_count,
    /// Groups that the interface is a member of now.
    multicast_groups,
    /// Paths that the subnet administrator was asked for.
    sa_path_queries,
    /// Groups that it was asked to let the interface join, to receive or to send.
    sa_joins,
    /// Joins that the subnet administrator refused, or did not answer.
    sa_joins_failed,
    /// Answers of it that were about something else.
    sa_answers_wrong,
    /// Connections by which we send now.
    connections_out,
    /// Connections by which we receive now.
    connections_in,
    /// Packets handed to the stack.
    rx_packets,
    /// Bytes handed to the stack, with encapsulation headers.
    rx_bytes,
    /// Calls of the device's `post_recv`: doorbells.
    rx_posts,
    /// Receive completions taken from completion queues.
    rx_completions,
    /// Packets copied, their buffer posted again as it was.
    rx_copied,
    /// Completions with an error.
    rx_errors,
    /// Posts that the device refused.
    rx_post_errors,
    /// Packets dropped: our own, sent to a group.
    rx_drop_own,
    /// Packets dropped: shorter than the headers.
    rx_drop_short,
    /// Packets dropped: a global route header that contradicts itself.
    rx_drop_grh,
    /// Packets dropped: an encapsulation header that names nothing known.
    rx_drop_header,
    /// Packets dropped: no memory.
    rx_drop_memory,
    /// Bytes of memory in receive buffers.
    memory_buffers,
    /// Bytes of memory in rings and tables.
    memory_rings,
}

impl Statistics {
    /// Counts packets that were sent, for a transmit queue and for its interface. With the
    /// queue's lock.
    #[inline(always)]
    pub(super) fn count_sent(&self, device: &Device<Interface>, packets: u32, bytes: u32) {
        device.count_sent(packets, bytes);
        self.tx_sent.add(u64::from(packets));
        self.tx_bytes.add(u64::from(bytes));
    }

    /// Counts packets that the stack got, for what received them and for its interface. In its
    /// poll.
    #[inline(always)]
    pub(super) fn count_received(&self, device: &Device<Interface>, packets: u32, bytes: u32) {
        device.count_received(packets, bytes);
        self.rx_packets.add(u64::from(packets));
        self.rx_bytes.add(u64::from(bytes));
    }

    /// Returns the counters of a receive queue for the stack.
    pub(super) fn received(&self) -> Received {
        Received {
            packets: self.rx_packets.get(),
            bytes: self.rx_bytes.get(),
            no_memory: self.rx_drop_memory.get(),
        }
    }

    /// Returns the counters of a transmit queue for the stack.
    pub(super) fn sent(&self) -> Sent {
        Sent {
            packets: self.tx_sent.get(),
            bytes: self.tx_bytes.get(),
            stops: self.tx_stopped.get(),
            long: self.tx_long.get(),
            parts: self.tx_parts.get(),
        }
    }
}
