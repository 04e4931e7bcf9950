// SPDX-License-Identifier: GPL-2.0-only

//! Resolution of an address step by step, so that administrators see each step.

use core::net::IpAddr;

use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
    }, //
};

use super::{
    exchange::{
        Exchange,
        Failure,
        Fate, //
    },
    host::Host,
    local_service::{
        local_answer,
        LocalAnswer, //
    },
    Cache,
    Known, //
};
use crate::{
    rdma::path::PathRecord,
    registry,
    wire::{
        pkey::Pkey,
        resolution::Request, //
    }, //
};

/// Longest wait for an exchange: longer than the tries of a query for the path and of a request to
/// the peer take together. Before those it may wait for others.
const PATIENCE: Delta = Delta::from_secs(10);
const STEP: Delta = Delta::from_millis(1);

/// Kind of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The address cache is asked.
    Cache = 0,
    /// The peer is asked for its queue pair.
    Sidr = 1,
    /// The subnet administrator is asked for the path, unless that is known.
    Path = 2,
}

/// Outcome of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Outcome {
    /// The part found what it was asked for.
    Ok = 0,
    /// No entry, or no path.
    None = 1,
    /// No answer in time.
    Timeout = 2,
    /// Refused by the peer.
    Refused = 3,
    /// Not asked for, or the answer is of no use.
    Error = 4,
    /// Not asked for, as there is no entry, or it has the queue pair.
    Skipped = 5,
}

/// A step of the resolution, as netlink reports it.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// The part that was asked.
    pub(crate) kind: Kind,
    pub(crate) outcome: Outcome,
    /// Duration of the step, in microseconds.
    pub(crate) time: u32,
    /// Explanation for administrators, in English.
    pub(crate) text: &'static CStr,
}

/// Result of a resolution.
pub(crate) struct Resolution {
    /// The entry of the cache, with the queue pair that the peer said.
    pub(crate) known: Option<Known>,
    /// The steps, in their order.
    pub(crate) steps: [Step; 3],
    /// The path to the GID of the entry, if the subnet administrator knows one.
    pub(crate) path: Option<PathRecord>,
}

/// Runs a step, and measures it.
fn step<T>(kind: Kind, run: impl FnOnce() -> (Outcome, &'static CStr, T)) -> (Step, T) {
    let begin = Instant::<Monotonic>::now();
    let (outcome, text, found) = run();
    let time = u32::try_from(begin.elapsed().as_micros_ceil()).unwrap_or(u32::MAX);
    let step = Step {
        kind,
        outcome,
        time,
        text,
    };
    (step, found)
}

/// Returns a step that is not taken.
const fn skipped(kind: Kind, text: &'static CStr) -> Step {
    Step {
        kind,
        outcome: Outcome::Skipped,
        time: 0,
        text,
    }
}

/// Finds the path from `host` to an address. Sleeps as long as peer and subnet administrator take.
pub(crate) fn diagnose(host: &Arc<dyn Host>, address: IpAddr) -> Resolution {
    let (cache, known) = step(Kind::Cache, || look_up(&**host, address));
    let Some(known) = known else {
        const TEXT: &CStr = c"the address has no entry: neighbours are asked as usual";
        return Resolution {
            known: None,
            steps: [cache, skipped(Kind::Sidr, TEXT), skipped(Kind::Path, TEXT)],
            path: None,
        };
    };
    let sidr = if known.qpn.is_some() && !known.qpn_is_learned {
        skipped(Kind::Sidr, c"the entry has the queue pair")
    } else {
        step(Kind::Sidr, || ask(host, address, &known)).0
    };
    let (path, record) = step(Kind::Path, || find_path(&**host, &known));
    let now = host.cache().and_then(|cache| cache.peek(address));
    Resolution {
        known: Some(now.unwrap_or(known)),
        steps: [cache, sidr, path],
        path: record,
    }
}

fn look_up(host: &dyn Host, address: IpAddr) -> (Outcome, &'static CStr, Option<Known>) {
    let cache = host.cache().ok_or(NO_ENTRY);
    match cache.and_then(|cache| entry_in(&cache, address, host.pkey())) {
        Ok(known) => (Outcome::Ok, found(local_answer(host, address)), Some(known)),
        Err(text) => (Outcome::None, text, None),
    }
}

const NO_ENTRY: &CStr = c"no entry";
const NO_SA: &CStr = c"the subnet administrator does not answer, or the interface is down";

/// Returns the entry that an address has in a partition, or the reason why it has none. That is
/// not counted: the cache's counters are of look-ups for packets.
pub(super) fn entry_in(
    cache: &Cache,
    address: IpAddr,
    partition: Pkey,
) -> Result<Known, &'static CStr> {
    let known = cache.peek(address).ok_or(NO_ENTRY)?;
    if known
        .pkey
        .is_none_or(|pkey| pkey.base() == partition.base())
    {
        Ok(known)
    } else {
        Err(c"the entry is for another partition than the interface's")
    }
}

/// Describes an entry that was found. Where the address is behind a gateway, programs that use
/// `rdma_cm` need the GID: they are told the one in the cache, or nothing.
const fn found(answer: LocalAnswer) -> &'static CStr {
    match answer {
        LocalAnswer::Gid => c"found",
        LocalAnswer::Off => {
            c"found; behind a gateway rdma_cm fails: acm_programs=off, so it is told no GID"
        }
        LocalAnswer::Unused => {
            c"found; behind a gateway rdma_cm fails: the interface does not use the cache (acm=off)"
        }
        LocalAnswer::Ambiguous => {
            c"found; behind a gateway rdma_cm fails: another namespace has another GID for the \
              address, or none"
        }
    }
}

fn ask(host: &Arc<dyn Host>, address: IpAddr, known: &Known) -> (Outcome, &'static CStr, ()) {
    let Some(asker) = host.source_for(address) else {
        return (
            Outcome::Error,
            c"the interface has no address of this family to ask from",
            (),
        );
    };
    let request = Request {
        asker,
        target: address,
    };
    let exchange = host.exchange();
    // The interface may go at any time, with all its tasks: one that began later could drop the
    // last reference to it, and with that the queue that the task is on.
    let asked = registry::while_listed(host, || exchange.ask(host, request, known.gid, None));
    let failure = match asked {
        Some(Fate::Held) => {
            wait(exchange, &request);
            if exchange.is_asking(&request) {
                return (
                    Outcome::Timeout,
                    c"no answer yet: the subnet administrator or the peer is still asked",
                    (),
                );
            }
            exchange.failure(&request)
        }
        Some(Fate::Failed(_)) => exchange.failure(&request),
        Some(Fate::Busy(_)) | None => Some(Failure::NotSent),
    };
    let Some(failure) = failure else {
        return (Outcome::Ok, c"the peer has answered", ());
    };
    let far = !host.is_near(&known.gid);
    let (outcome, text) = match (failure, far) {
        (Failure::NoManager, _) => (
            Outcome::Error,
            c"the port's connection manager is not oxib's",
        ),
        (Failure::NoPath, true) => (
            Outcome::Error,
            c"no path to the peer is given: a router and the peer have to be in this partition, \
              and a subnet manager has to run",
        ),
        (Failure::NoPath, false) => (Outcome::Error, c"no path to the peer is given"),
        (Failure::SaSilent, _) => (Outcome::Error, NO_SA),
        (Failure::Silent, true) => (
            Outcome::Timeout,
            c"no answer: across a router a peer has to run oxib in this partition, or to have its \
              queue pair in its entry",
        ),
        (Failure::Silent, false) => (
            Outcome::Timeout,
            c"no answer: neighbours are asked as usual",
        ),
        (Failure::Refused, true) => (
            Outcome::Refused,
            c"the peer does not have the address, or does not serve the cache",
        ),
        (Failure::Refused, false) => (
            Outcome::Refused,
            c"the peer does not have the address, or does not serve the cache: neighbours are \
              asked as usual",
        ),
        (Failure::Wrong, _) => (
            Outcome::Error,
            c"the answer is about another address, or has another Q_Key than the interface",
        ),
        (Failure::NotSent, _) => (Outcome::Error, c"the peer cannot be asked now: try again"),
        (Failure::NoMemory, _) => (Outcome::Error, c"the kernel is short of memory: try again"),
    };
    (outcome, text, ())
}

/// Waits for the end of an exchange, but no longer than there is patience.
fn wait(exchange: &Exchange, request: &Request) {
    let begun = Instant::<Monotonic>::now();
    let may_wait = || begun.elapsed() < PATIENCE && !current!().signal_pending();
    while exchange.is_asking(request) && may_wait() {
        fsleep(STEP);
    }
}

fn find_path(host: &dyn Host, known: &Known) -> (Outcome, &'static CStr, Option<PathRecord>) {
    match host.path(known.gid) {
        Ok(path) => (Outcome::Ok, c"found", Some(path)),
        Err(ENXIO) => (
            Outcome::None,
            c"the subnet administrator gives no path to the GID",
            None,
        ),
        Err(_) => (Outcome::Timeout, NO_SA, None),
    }
}
