// SPDX-License-Identifier: GPL-2.0-only

//! Tests of the destinations of an interface.

use super::*;

mod bounds;
mod query_load;
mod searches;
mod stale_paths;

type Table = Destinations<u8, u32>;

impl Handle for u8 {
    type ForQueue = u8;

    fn for_queue(&self) -> u8 {
        *self
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}

const REFRESH: u64 = 50;
const MEMORY: u64 = 4;
const SEARCHES: usize = 300;
const STRANGERS: usize = 8;

const POLICY: Policy = Policy {
    searches: SEARCHES,
    strangers: STRANGERS,
    refresh: Some(REFRESH),
    memory: MEMORY,
};

fn host(n: u8) -> Gid {
    Gid::from_ipv4([10, 0, 0, n])
}

/// Sends a packet for this node.
fn request(table: &mut Table, gid: Gid, packet: u32, now: u64) -> Verdict<u8, u32> {
    table.request((gid, Errand::Own), packet, |_| false, now)
}

/// The ticket of the search that a first packet starts.
fn search(table: &mut Table, gid: Gid, now: u64) -> Result<Ticket> {
    match request(table, gid, 0, now) {
        Verdict::Search(ticket) => Ok(ticket),
        _ => Err(EINVAL),
    }
}

fn waits(verdict: &Verdict<u8, u32>) -> bool {
    matches!(verdict, Verdict::Waits)
}

/// The handle that a packet is sent with, and the packet.
fn sent(verdict: &Verdict<u8, u32>) -> Option<(u8, u32)> {
    match verdict {
        Verdict::Send(handle, packet) => Some((*handle, *packet)),
        _ => None,
    }
}

fn dropped(verdict: &Verdict<u8, u32>) -> Option<Reason> {
    match verdict {
        Verdict::Drop(_, reason) => Some(*reason),
        _ => None,
    }
}

/// Number of packets that a search's end lets go.
fn settled(end: &End<u32>) -> Option<usize> {
    match end {
        End::Settled(waited) => Some(waited.len()),
        End::Changed | End::Again(_) => None,
    }
}

/// Makes a table with paths that stay as they are until an event says otherwise.
fn known(hosts: u8) -> Result<Table> {
    let mut table = Table::new(Policy {
        refresh: None,
        ..POLICY
    });
    for n in 1..=hosts {
        let ticket = search(&mut table, host(n), 0)?;
        table.resolved(&host(n), ticket, Ok(n), 0);
    }
    Ok(table)
}
