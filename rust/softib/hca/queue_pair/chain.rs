// SPDX-License-Identifier: GPL-2.0-only

//! Datagrams and their chains: those that a consumer posts in one call leave in their order, by the
//! state and the attributes that the queue pair had when the chain began. One that fails stops the
//! send queue (IBTA 10.3.1).

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    Attributes,
    Inner,
    QueuePair,
    State, //
};
use crate::{
    hca::{
        address::AddressVector,
        completion::{
            Completion,
            Extra,
            Kind,
            Origin, //
        },
        port::Path, //
    },
    provider::memory::Segment,
    transport::work::Status,
    wire::{
        immdt::ImmDt,
        offload::Cut,
        qpn::Qpn, //
    }, //
};

/// A datagram's destination: address, queue pair and keys.
#[derive(Clone, Copy)]
pub(crate) struct Destination<'a> {
    pub(crate) address: &'a AddressVector,
    pub(crate) queue_pair: Qpn,
    /// The Q_Key; with its highest bit, the sender's own is meant (IBTA 10.2.5).
    pub(crate) qkey: u32,
    /// The P_Key's index, for the general services interface only.
    pub(crate) pkey_index: u16,
}

/// A datagram to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Datagram<'a> {
    pub(crate) request: u64,
    pub(crate) signalled: bool,
    pub(crate) solicited: bool,
    pub(crate) immediate: Option<ImmDt>,
    /// Whether the data is inline: then the keys of the segments do not matter.
    pub(crate) inline: bool,
    /// The first bytes of the data. `length` bytes of the segments follow, from the offset `from`
    /// on.
    pub(crate) header: &'a [u8],
    pub(crate) from: usize,
    pub(crate) length: usize,
    pub(crate) segments: &'a [Segment],
    /// Whether the checksums of the IP datagram in it are to be filled in.
    pub(crate) checksum: bool,
    /// The cut of a long TCP segment that is to be sent as several.
    pub(crate) cut: Option<Cut<'a>>,
    pub(crate) to: Destination<'a>,
}

/// State that datagrams of one chain share.
pub(crate) struct Chain {
    /// The queue pair's count of resets when it began.
    reset_count: u32,
    state: State,
    pub(in crate::hca) attributes: Attributes,
    /// Whether its datagrams wait behind others.
    waits: bool,
    /// The address of the last one, by its place in memory, and how it left.
    pub(in crate::hca) path: Option<(*const AddressVector, u16, Path)>,
    pub(in crate::hca) far: HandedOver,
}

impl Chain {
    /// Takes over the state and the attributes of a queue pair that sends at once what is posted.
    pub(in crate::hca) fn follow(&mut self, inner: &Inner) {
        self.reset_count = inner.reset_count;
        self.state = inner.state;
        self.attributes = inner.attributes;
        self.waits = false;
    }
}

/// State of those datagrams of a chain that go to a peer in memory.
pub(in crate::hca) struct HandedOver {
    /// The queue pair to which the last one went.
    pub(in crate::hca) pair: Option<Arc<QueuePair>>,
    /// Packets and bytes that went there and are not counted yet.
    pub(in crate::hca) uncounted: (u64, u64),
}

impl HandedOver {
    /// Notes a packet of so many bytes.
    #[inline]
    pub(in crate::hca) fn count(&mut self, bytes: usize) {
        self.uncounted.0 = self.uncounted.0.wrapping_add(1);
        self.uncounted.1 = self.uncounted.1.wrapping_add(bytes as u64);
    }
}

impl Inner {
    /// Begins a chain of datagrams.
    #[inline]
    pub(in crate::hca) fn begin_chain(&self) -> Chain {
        // A copy for the whole chain: what is modified meanwhile counts from the next one on.
        Chain {
            reset_count: self.reset_count,
            state: self.state,
            attributes: self.attributes,
            waits: self.postponed.is_some(),
            path: None,
            far: HandedOver {
                pair: None,
                uncounted: (0, 0),
            },
        }
    }

    /// Returns whether the queue pair was not reset since the chain began.
    fn is_of_chain(&self, chain: &Chain) -> bool {
        self.reset_count == chain.reset_count
    }
}

impl QueuePair {
    /// Begins a chain of datagrams.
    pub(crate) fn begin_chain(&self) -> Chain {
        self.inner.with(|inner| inner.begin_chain())
    }

    /// Ends to send datagrams.
    pub(crate) fn end_chain(&self, mut chain: Chain) {
        self.count_handed_over(chain.attributes.port, &mut chain.far);
    }

    /// Stops the send queue after a datagram that failed (IBTA 10.3.1): those behind it are
    /// flushed until the consumer makes the queue pair Ready to Send again. Receives go on.
    #[cold]
    fn stop_sending(&self, chain: &mut Chain) {
        chain.state = State::SendQueueError;
        self.inner.with(|inner| {
            // The consumer may have chosen another state since the chain began.
            let sends = matches!(inner.state, State::ReadyToSend | State::SendQueueDrained);
            if sends && inner.is_of_chain(chain) {
                inner.state = State::SendQueueError;
            }
        });
    }

    /// Sends a datagram as the next one of a chain, or lets it wait. One that fails stops the send
    /// queue.
    ///
    /// # Errors
    ///
    /// `EINVAL` in a state that sends none; `ENOMEM` if it is to wait and too many do.
    pub(crate) fn post_datagram(
        self: &Arc<Self>,
        chain: &mut Chain,
        datagram: &Datagram<'_>,
    ) -> Result {
        if chain.waits && self.postpone(chain, datagram)? {
            return Ok(());
        }
        if !self.send_next(chain, datagram)? {
            // The consumer may have let others wait meanwhile: they are behind this one.
            self.send_postponed();
        }
        Ok(())
    }

    /// Sends a datagram as the next one of a chain. Returns whether it did not fail, and so did not
    /// stop the send queue.
    ///
    /// # Errors
    ///
    /// `EINVAL` in a state that sends none.
    #[inline]
    pub(in crate::hca) fn send_next(
        self: &Arc<Self>,
        chain: &mut Chain,
        datagram: &Datagram<'_>,
    ) -> Result<bool> {
        let status = match chain.state {
            State::ReadyToSend => match &datagram.cut {
                None => self.send_datagram(chain, datagram),
                Some(cut) => self.send_cut(chain, datagram, cut),
            },
            State::Error | State::SendQueueError => Status::Flushed,
            _ => return Err(EINVAL),
        };
        let failed = !matches!(status, Status::Success | Status::Flushed);
        // Before the completion: its consumer resumes the queue pair from that state.
        if failed {
            self.stop_sending(chain);
        }
        if status != Status::Success || datagram.signalled || self.signal_all {
            let completion = Completion {
                request: datagram.request,
                status,
                kind: match datagram.cut {
                    None => Kind::Send,
                    Some(_) => Kind::Cut,
                },
                length: 0,
                extra: Extra::Nothing,
                source: self.number,
                origin: Origin::default(),
                queue_pair: self.handle,
            };
            // A reset takes out the completions that are there, so none may come after it.
            let event = self.inner.with(|inner| {
                if !inner.is_of_chain(chain) {
                    return None;
                }
                Some(self.send_queue.push(&completion, false))
            });
            // The consumer may hold its locks.
            if let Some(event) = event {
                event.raise_later();
            }
        }
        Ok(!failed)
    }
}

#[kernel::prelude::kunit_tests(softib_chain)]
mod tests {
    use super::*;
    use crate::hca::queue_pair::tests::{
        inner,
        make_ready, //
    };

    #[test]
    fn a_chain_lasts_until_a_reset() -> Result {
        let mut inner = inner()?;
        make_ready(&mut inner);
        let mut chain = inner.begin_chain();
        for state in [State::SendQueueDrained, State::ReadyToSend, State::Error] {
            inner.set_state(state);
            assert!(inner.is_of_chain(&chain));
        }
        inner.set_state(State::Reset);
        assert!(!inner.is_of_chain(&chain));
        // Ready once more, the queue pair is another one to those who still have the chain.
        make_ready(&mut inner);
        assert!(!inner.is_of_chain(&chain));
        chain.follow(&inner);
        assert!(inner.is_of_chain(&chain));
        Ok(())
    }
}
