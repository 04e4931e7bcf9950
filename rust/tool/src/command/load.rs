// SPDX-License-Identifier: GPL-2.0-only

//! The command `oxib acm load`.

mod record;
mod sources;

use crate::{
    cli,
    command::report_note,
    error::{
        self,
        Error,
        Result, //
    },
    netlink::{
        attribute::Request,
        connection::Connection,
        family::{
            self,
            load as attribute,
            operation, //
        },
    },
    output::{
        self,
        Output, //
    },
    progress::progress_bar, //
};
use indicatif::ProgressBar;
use oxib_data_file::{
    resolve::HostResolver,
    Entry,
    Reading, //
};
use serde_json::json;

/// The number of notes about lines that are printed; a file may have a million of the same kind.
const NOTES: usize = 10;

/// Loads files, all of them or nothing.
pub fn run(options: &cli::Load, mut out: Output) -> Result {
    // First, as reading may take long.
    let connection = match options.check {
        true => None,
        false => Some(Connection::open()?),
    };
    let files = sources::list(&options.files)?;
    let (reading, names) = read(&files);
    report_notes(&reading);
    let is_blank = reading.is_blank();
    let entries = finish(reading)?;
    // The output of a command that failed, perhaps, with which all that was loaded would go.
    if options.replace_all && is_blank {
        return Err(Error::NothingRead);
    }
    let shown = json!({
        "entries": entries.len(),
        "files": files.len(),
        "names": names,
        "loaded": !options.check,
    });
    let count = entries.len();
    match connection {
        None => out.print_value(&shown, &format!("{count} entries right")),
        Some(connection) => {
            send(connection, &entries, options.replace_all)?;
            // They are loaded, even where that cannot be printed: the status says so.
            let printed = out.print_value(&shown, &format!("{count} entries loaded"));
            output::tolerate_print_error(printed, "the entries are loaded")
        }
    }
}

/// Reads all files. Returns their content and the number of names in it.
fn read(files: &[sources::File]) -> (Reading, usize) {
    let bar = progress_bar(
        files.iter().map(|file| file.size).sum(),
        "reading",
        "{bytes}/{total_bytes}",
    );
    let mut reading = Reading::new();
    for file in files {
        match file.read() {
            Ok(text) => reading.add(&file.name, &text, |bytes| bar.inc(bytes as u64)),
            Err(error) => reading.add_unreadable(&file.name, error::message(&error)),
        }
    }
    bar.finish_and_clear();
    let names = reading.names();
    (reading, names)
}

/// Resolves names, looks for duplicates.
fn finish(reading: Reading) -> Result<Vec<Entry>> {
    let bar = match reading.names() {
        0 => ProgressBar::hidden(),
        names => progress_bar(names as u64, "resolving", "{pos}/{len} names"),
    };
    let entries = reading
        .finish(&HostResolver, || bar.inc(1))
        .map_err(Error::Files);
    bar.finish_and_clear();
    entries
}

/// Reports the notes about lines, but only the first ones.
fn report_notes(reading: &Reading) {
    let notes = reading.notes();
    for note in notes.iter().take(NOTES) {
        output::report(format_args!("note: {note}"));
    }
    if let Some(more @ 1..) = notes.len().checked_sub(NOTES) {
        output::report(format_args!("note: {more} more of these"));
    }
}

/// Gives entries to the kernel. They become valid with the last request, together.
fn send(mut connection: Connection, entries: &[Entry], replace_all: bool) -> Result {
    let bar = progress_bar(entries.len() as u64, "loading", "{pos}/{len} entries");
    let result = send_all(&mut connection, entries, replace_all, &bar);
    bar.finish_and_clear();
    result
}

/// Gives entries to the kernel, part by part, and moves the bar.
fn send_all(
    connection: &mut Connection,
    entries: &[Entry],
    replace_all: bool,
    bar: &ProgressBar,
) -> Result {
    let last = entries.len().div_ceil(attribute::MOST).max(1) - 1;
    for number in 0..=last {
        let part = entries
            .chunks(attribute::MOST)
            .nth(number)
            .unwrap_or_default();
        let flags = match (number == last, replace_all) {
            (false, _) => 0,
            (true, false) => attribute::COMMIT,
            (true, true) => attribute::COMMIT | attribute::REPLACE_ALL,
        };
        let mut request = Request::new();
        if !part.is_empty() {
            request = request.bytes(attribute::ENTRIES, record::all(part));
        }
        request = request.u32(attribute::FLAGS, flags);
        let answer = connection.request(operation::LOAD, &request, family::LOAD_NAMES)?;
        if number == last {
            report_note(&answer);
        }
        bar.inc(part.len() as u64);
    }
    Ok(())
}
