// SPDX-License-Identifier: GPL-2.0-only

//! What `ethtool -S` shows, summed over the queues.

use kernel::prelude::*;

use crate::net::statistics::Counter;

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
    /// Calls of the device's `post_send`: doorbells.
    tx_posts,
    /// Of them, with more than one packet.
    tx_chains,
    /// Packets sent inline.
    tx_inline,
    /// Completions taken.
    tx_completions,
    /// Times that the stack was told to stop.
    tx_stopped,
    /// Completions with an error.
    tx_errors,
    /// Packets dropped: the device refused them.
    tx_drop_refused,
    /// Packets dropped: no slot was free.
    tx_drop_full,
    /// Packets dropped: no memory, or they could not be mapped.
    tx_drop_memory,
    /// Packets dropped: no link-layer header, or one that names nothing to send.
    tx_drop_header,
    /// Packets dropped: longer than the MTU.
    tx_drop_length,
    /// Packets dropped: too many wait for the same destination.
    tx_drop_waiting,
    /// Packets dropped: the destination does not answer.
    tx_drop_unreachable,
    /// Packets dropped: the interface was taken down before they went.
    tx_drop_down,
    /// Destinations resolved.
    address_resolved,
    /// Destinations not found.
    address_failed,
    /// Packets that had to ask the interface's table of destinations.
    address_misses,
    /// Destinations known now.
    address_count,
    /// Groups that the interface is a member of now.
    multicast_groups,
    /// Packets handed to the stack.
    rx_packets,
    /// Calls of the device's `post_recv`: doorbells.
    rx_posts,
    /// Completions taken.
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
