// SPDX-License-Identifier: GPL-2.0-only

//! Offloads that a better adapter has for the messages of IP over InfiniBand.

use kernel::sync::Arc;

use super::{
    counters::Counter,
    queue_pair::{
        Chain,
        Datagram,
        QueuePair, //
    }, //
};
use crate::{
    net::checksum::sum,
    transport::work::Status,
    wire::offload::{
        self,
        Cut,
        MAX_HEADER, //
    }, //
};

/// Writes the checksums of a message of which they are asked.
pub(super) fn fill(message: &mut [u8]) {
    offload::fill(message, sum);
}

/// Returns whether the checksums of a message are right.
pub(super) fn is_right(message: &[u8]) -> bool {
    offload::is_right(message, sum)
}

impl QueuePair {
    /// Sends a long segment as several datagrams, and says how that ended.
    pub(super) fn send_cut(
        self: &Arc<Self>,
        chain: &mut Chain,
        datagram: &Datagram<'_>,
        cut: &Cut<'_>,
    ) -> Status {
        let (counters, port) = (&self.hca.counters, chain.attributes.port);
        counters.add(port, Counter::CutSends, 1);
        counters.add(port, Counter::CutPackets, cut.count() as u64);
        let mut room = [0; MAX_HEADER];
        for number in 0..cut.count() {
            let data = cut.data(number);
            let piece = Datagram {
                header: cut.write_header(number, &mut room),
                from: data.start,
                length: data.len(),
                checksum: true,
                cut: None,
                ..*datagram
            };
            let status = self.send_datagram(chain, &piece);
            if status != Status::Success {
                return status;
            }
        }
        Status::Success
    }
}
