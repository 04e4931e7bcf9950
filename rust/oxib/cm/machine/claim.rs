// SPDX-License-Identifier: GPL-2.0-only

//! The names under which a connection stands in the tables of remote names: the identifier that
//! its peer chose, and the queue pair of its peer (IBTA 12.9.8).
//!
//! Any node may write any identifier, queue pair and GUID into its messages. So a name belongs to
//! the address that it came from: the same name from another address is another name. A node that
//! cannot send from the address of a peer takes no name from that peer, and a peer that comes back
//! with another address finds its names free.

use core::hash::{
    Hash,
    Hasher, //
};

use super::source::Source;
use super::wire::cm::comm_id::CommId;
use super::wire::qpn::Qpn;

/// A channel adapter at an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Adapter {
    /// The GUID that its messages say.
    pub guid: u64,
    /// The address that its messages come from.
    pub source: Source,
}

/// A name, and the channel adapter that chose it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Remote<T> {
    /// The identifier or queue pair.
    pub name: T,
    /// The channel adapter that it belongs to.
    pub adapter: Adapter,
}

/// Leaves the source out: the other parts spread the entries of a table well enough.
impl<T: Hash> Hash for Remote<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.adapter.guid.hash(state);
    }
}

/// A table of remote names with our identifiers of the connections.
pub trait Names<T> {
    /// The memory for one entry.
    type Memory;

    /// Enters `ours` under `name`.
    ///
    /// # Errors
    ///
    /// The identifier that has the name already.
    fn claim(&self, name: Remote<T>, ours: CommId, memory: Self::Memory) -> Result<(), CommId>;

    /// Removes `name` if it has `ours`.
    fn release(&self, name: &Remote<T>, ours: CommId);
}

/// The connection that has a name already, by our identifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Connection that has the identifier: the message is a duplicate.
    Id(CommId),
    /// Connection that has the queue pair: it is stale.
    Qpn(CommId),
}

/// The names of one connection, if it stands in the tables.
#[derive(Debug, Default)]
pub struct Claims(Option<Claimed>);

#[derive(Clone, Copy, Debug)]
struct Claimed {
    adapter: Adapter,
    id: CommId,
    qpn: Qpn,
}

impl Claims {
    /// Enters the connection `ours` into both tables.
    ///
    /// # Errors
    ///
    /// The connection that has one of the names. Then neither name is entered.
    pub fn claim<I: Names<CommId>, Q: Names<Qpn>>(
        &mut self,
        ours: CommId,
        adapter: Adapter,
        (ids, id, id_memory): (&I, CommId, I::Memory),
        (qpns, qpn, qpn_memory): (&Q, Qpn, Q::Memory),
    ) -> Result<(), Taken> {
        // The identifier is claimed first: a repeated REQ has both names, and is a duplicate, not
        // stale.
        let id_name = Remote { name: id, adapter };
        let qpn_name = Remote { name: qpn, adapter };
        ids.claim(id_name, ours, id_memory).map_err(Taken::Id)?;
        if let Err(other) = qpns.claim(qpn_name, ours, qpn_memory) {
            ids.release(&id_name, ours);
            return Err(Taken::Qpn(other));
        }
        self.0 = Some(Claimed { adapter, id, qpn });
        Ok(())
    }

    /// Removes the connection `ours` from both tables.
    pub fn release(&mut self, ours: CommId, ids: &impl Names<CommId>, qpns: &impl Names<Qpn>) {
        if let Some(Claimed { adapter, id, qpn }) = self.0.take() {
            ids.release(&Remote { name: id, adapter }, ours);
            qpns.release(&Remote { name: qpn, adapter }, ours);
        }
    }

    /// Returns whether the connection stands in the tables for another address than `source`.
    pub fn are_from_elsewhere(&self, source: Source) -> bool {
        self.0
            .is_some_and(|claimed| claimed.adapter.source != source)
    }
}
