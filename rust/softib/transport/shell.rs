// SPDX-License-Identifier: GPL-2.0-only

//! The interface of a queue pair to the shell around it.
//!
//! The shell holds the lock of the queue pair during each call, so what it is asked for here may
//! not take that lock again, and may not call the queue pair.
//!
//! A send is named by its index: how many were posted before it since the queue pair was reset.
//! Indices go around after 2^32, so that a ring of 2^n slots finds the slot in the low bits. The
//! queue pair asks only for sends from the oldest that is not reported as [`Reports::sent`].

use super::packet::{
    Atomic,
    Outgoing,
    Remote, //
};
use super::work::{
    Event,
    Received,
    Status,
    Work, //
};

/// The memory that was named is not there or may not be used so: wrong key, protection domain,
/// bounds or access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Denied;

/// The access that is wanted to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Writing into it (`IB_ACCESS_REMOTE_WRITE`).
    Write,
    /// Reading from it (`IB_ACCESS_REMOTE_READ`).
    Read,
    /// An atomic operation on it (`IB_ACCESS_REMOTE_ATOMIC`).
    Atomic,
}

/// Copies from and to memory. Local keys and remote keys are checked here.
pub trait Memory {
    /// Writes into the scatter list of a send, after that many bytes of it: data that was read, or
    /// the eight bytes of an atomic operation.
    fn scatter_send(&mut self, index: u32, offset: u32, bytes: &[u8]) -> Result<(), Denied>;

    /// Writes into the scatter list of the receive that is held, after that many bytes of it.
    fn scatter_receive(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Denied>;

    /// Checks whether the peer may use all of this memory, before a message of several packets
    /// goes there or comes from there. Never asked for no bytes.
    fn check(&mut self, remote: &Remote, access: Access) -> Result<(), Denied>;

    /// Writes for the peer, if it may: a message of one packet is checked here alone, and of a
    /// longer one the region may have gone since. Never no bytes.
    fn write(&mut self, rkey: u32, address: u64, bytes: &[u8]) -> Result<(), Denied>;

    /// Does an atomic operation for the peer, and tells what the word was before.
    fn atomic(&mut self, rkey: u32, address: u64, operation: Atomic) -> Result<u64, Denied>;

    /// Invalidates a key for the peer.
    fn invalidate(&mut self, rkey: u32) -> Result<(), Denied>;
}

/// The work queues of a queue pair.
pub trait Queues {
    /// The send of that index; `None` if it is not posted yet.
    fn send(&mut self, index: u32) -> Option<Work>;

    /// Does the registration or the invalidation that a send asks for.
    fn local(&mut self, index: u32) -> Result<(), Denied>;

    /// Takes the next receive from the queue pair's own queue or the shared one, and holds it until
    /// [`Reports::received`]; tells how many bytes it has room for.
    fn take_receive(&mut self) -> Option<u32>;
}

/// The way to the peer.
pub trait Output {
    /// Returns whether another packet may be emitted now. After `false` the shell calls
    /// [`QueuePair::run`] again when there is room.
    ///
    /// [`QueuePair::run`]: super::QueuePair::run
    fn room(&mut self) -> bool;

    /// Returns whether [`Output::room`] was asked in vain since the call of the queue pair began.
    fn is_full(&self) -> bool;

    /// Sends a packet, gathering its payload: from a send's list, with its local keys checked,
    /// or from memory that the peer reads, with its remote key checked once more. A packet that
    /// cannot be sent for another reason than its payload's memory is lost, as any packet can be.
    fn emit(&mut self, packet: &Outgoing) -> Result<(), Denied>;
}

/// Reports to the consumer of a queue pair.
pub trait Reports {
    /// Returns whether another send and another receive may be reported as flushed now. After
    /// `false` the shell calls [`QueuePair::run`] again.
    ///
    /// [`QueuePair::run`]: super::QueuePair::run
    fn may_flush(&mut self) -> bool;

    /// The send of that index is over, and each before it is: its slot is free. With a status it
    /// makes a completion; without, it went well and was not signalled.
    fn sent(&mut self, index: u32, status: Option<Status>);

    /// The receive that is held is over and makes a completion.
    fn received(&mut self, received: &Received);

    /// Reports an asynchronous event of the queue pair.
    fn event(&mut self, event: Event);
}

/// All that a queue pair needs of its shell.
pub trait Shell: Memory + Queues + Output + Reports {}

impl<T: Memory + Queues + Output + Reports> Shell for T {}
