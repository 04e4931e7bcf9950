// SPDX-License-Identifier: GPL-2.0-only

//! `oxib acm paths preload`

use crate::{
    command::interface,
    error::{
        Error,
        Result, //
    },
    netlink::{
        attribute::{
            Attributes,
            Request, //
        },
        connection::Connection,
        family::{
            self,
            entry,
            operation,
            path, //
        },
    },
    output::Output,
    progress::bar, //
};
use indicatif::ProgressBar;
use oxib_data_file::entry::ShortGid;
use oxib_wire::gid::Gid;
use rustix::io::Errno;
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::atomic::{
        AtomicUsize,
        Ordering, //
    },
    thread,
};

/// Paths that are asked for at a time. The subnet administrator has others to serve, too.
const AT_A_TIME: usize = 16;

/// Has the kernel know the paths to all GIDs of the cache. That there is none to some is no error: hosts may be switched off.
pub fn run(words: &[String], out: Output) -> Result {
    let named = interface::parse_device(words)?;
    let mut connection = Connection::open()?;
    let device = interface::chosen(&mut connection, named)?;
    let gids: Vec<Gid> = gids(&mut connection)?.into_iter().collect();
    let bar = bar(gids.len() as u64, "asking", "{pos}/{len} paths");
    let result = ask_for_all(device, &gids, &bar);
    bar.finish_and_clear();
    let mut missing = result?;
    missing.sort_unstable();
    let missing: Vec<String> = missing
        .iter()
        .map(|gid| ShortGid(*gid).to_string())
        .collect();
    let known = gids.len() - missing.len();
    let mut text = format!("{known} of {} paths are known", gids.len());
    for gid in &missing {
        text.push_str(&format!("\nno path to {gid}"));
    }
    out.value(&json!({ "known": known, "missing": missing }), &text)
}

/// The GIDs of all entries, once each.
fn gids(connection: &mut Connection) -> Result<BTreeSet<Gid>> {
    let mut gids = BTreeSet::new();
    let each = |attributes: Attributes<'_>| {
        gids.insert(attributes.gid(entry::GID)?);
        Ok(())
    };
    connection.dump(
        operation::ENTRY_GET,
        &Request::new(),
        family::ENTRY_NAMES,
        each,
    )?;
    Ok(gids)
}

/// Asks for the paths to `gids`, several at a time. Returns those to which there is none.
fn ask_for_all(device: u32, gids: &[Gid], bar: &ProgressBar) -> Result<Vec<Gid>> {
    let next = AtomicUsize::new(0);
    let ask = || -> Result<Vec<Gid>> {
        let mut connection = Connection::open()?;
        let mut missing = Vec::new();
        while let Some(gid) = gids.get(next.fetch_add(1, Ordering::Relaxed)) {
            match ask_for(&mut connection, device, *gid) {
                Ok(true) => {}
                Ok(false) => missing.push(*gid),
                Err(error) => {
                    // Nobody goes on.
                    next.store(gids.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
            bar.inc(1);
        }
        Ok(missing)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_A_TIME.min(gids.len()))
            .map(|_| scope.spawn(ask))
            .collect();
        let mut missing = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(found) => missing.append(&mut found?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(missing)
    })
}

/// Asks for the path to one GID, and waits. Whether there is one.
fn ask_for(connection: &mut Connection, device: u32, gid: Gid) -> Result<bool> {
    let request = Request::new()
        .bytes(path::DGID, gid.bytes().to_vec())
        .u32(path::IFINDEX, device);
    match connection.request(operation::PATH_RESOLVE, &request, family::PATH_NAMES) {
        Ok(_) => Ok(true),
        Err(Error::Refused(refusal)) if refusal.is(Errno::NXIO) => Ok(false),
        Err(error) => Err(error),
    }
}
