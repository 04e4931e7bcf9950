// SPDX-License-Identifier: GPL-2.0-only

//! The command `oxib acm load`.

mod files;
mod record;

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
    resolver::HostResolver,
    Entry,
    FileSet, //
};
use serde_json::json;

/// The maximum number of notes about lines that are printed: there may be a million of them.
const MAX_NOTES: usize = 10;

/// Loads files: all of them, or nothing if one has an error.
pub fn run(options: &cli::Load, mut out: Output) -> Result {
    // Opened first, as reading the files may take long: fails early if oxib is not loaded.
    let connection = match options.check {
        true => None,
        false => Some(Connection::open()?),
    };
    let files = files::list(&options.files)?;
    let file_set = read(&files);
    report_notes(&file_set);
    let (names, is_blank) = (file_set.name_count(), file_set.is_blank());
    let entries = finish(file_set)?;
    // Blank files may be the output of a command that failed: they must not empty the cache.
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
        None => out.print_value(&shown, &format!("{count} entries, no mistakes")),
        Some(connection) => {
            send(connection, &entries, options.replace_all)?;
            // The exit status says that they are loaded, even if that cannot be printed.
            let printed = out.print_value(&shown, &format!("{count} entries loaded"));
            output::tolerate_print_error(printed, "the entries are loaded")
        }
    }
}

/// Reads and parses all files.
fn read(files: &[files::File]) -> FileSet {
    let bar = progress_bar(
        files.iter().map(|file| file.size).sum(),
        "reading",
        "{bytes}/{total_bytes}",
    );
    let mut file_set = FileSet::new();
    for file in files {
        match file.read() {
            Ok(text) => file_set.add(&file.name, &text, |bytes| bar.inc(bytes as u64)),
            Err(error) => file_set.add_unreadable(&file.name, error::message(&error)),
        }
    }
    bar.finish_and_clear();
    file_set
}

/// Resolves the names, checks for duplicates, and returns the entries.
fn finish(file_set: FileSet) -> Result<Vec<Entry>> {
    let bar = match file_set.name_count() {
        0 => ProgressBar::hidden(),
        names => progress_bar(names as u64, "resolving", "{pos}/{len} names"),
    };
    let entries = file_set
        .finish(&HostResolver, || bar.inc(1))
        .map_err(Error::Files);
    bar.finish_and_clear();
    entries
}

/// Reports the notes about lines, but only the first ones.
fn report_notes(file_set: &FileSet) {
    let notes = file_set.notes();
    for note in notes.iter().take(MAX_NOTES) {
        output::report(format_args!("note: {note}"));
    }
    if let Some(more @ 1..) = notes.len().checked_sub(MAX_NOTES) {
        output::report(format_args!("note: {more} more of these"));
    }
}

/// Sends entries to the kernel. The last request makes all of them valid at once.
fn send(mut connection: Connection, entries: &[Entry], replace_all: bool) -> Result {
    let bar = progress_bar(entries.len() as u64, "loading", "{pos}/{len} entries");
    let result = send_all(&mut connection, entries, replace_all, &bar);
    bar.finish_and_clear();
    result
}

/// Sends entries to the kernel in parts, and updates the progress bar.
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
            request = request.bytes(attribute::ENTRIES, record::encode_all(part));
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
