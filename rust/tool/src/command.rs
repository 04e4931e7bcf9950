// SPDX-License-Identifier: GPL-2.0-only

//! The execution of each command.

mod change;
mod interface;
mod load;
mod monitor;
mod paths;
mod preload;
mod resolve;
mod save;
mod show;
mod stats;

use crate::{
    cli::{
        Acm,
        Cli,
        Object,
        PathCommand, //
    },
    error::{
        Error,
        Result, //
    },
    manual,
    netlink::{
        connection::Answer,
        family::operation, //
    },
    netns,
    output::{
        self,
        Output, //
    },
};
use clap::CommandFactory;

/// Runs the command of the command line.
pub fn run(cli: &Cli) -> Result {
    match &cli.object {
        Object::Acm(command) => {
            if let Some(name) = &cli.netns {
                netns::enter(name)?;
            }
            acm(command, Output::new(cli.json))
        }
        Object::Completions { shell } => {
            // `generate` panics where it cannot write, so it writes to memory.
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "oxib", &mut text);
            output::print(&text)
        }
        Object::Manual => {
            let mut page = Vec::new();
            manual::write(&mut page).map_err(Error::system("making the manual page"))?;
            output::print(&page)
        }
    }
}

/// Runs a command on the address cache.
fn acm(command: &Acm, out: Output) -> Result {
    match command {
        Acm::Show(filter) => show::run(&filter.words, out),
        Acm::Add(entry) => change::add_or_replace(operation::ENTRY_ADD, entry),
        Acm::Replace(entry) => change::add_or_replace(operation::ENTRY_REPLACE, entry),
        Acm::Del { address } => change::del(address),
        Acm::Flush(filter) => change::flush(&filter.words),
        Acm::Load(load) => load::run(load, out),
        Acm::Save(save) => save::run(&save.file, &save.words),
        Acm::Resolve(resolve) => resolve::run(&resolve.address, &resolve.words, out),
        Acm::Stats => stats::run(out),
        Acm::Monitor => monitor::run(out),
        Acm::Paths(paths) => match &paths.command {
            None | Some(PathCommand::Show) => paths::show(out),
            Some(PathCommand::Flush) => paths::flush(),
            Some(PathCommand::Preload { words }) => preload::run(words, out),
        },
        Acm::Interface(command) => interface::run(command, out),
    }
}

/// Reports the note of the kernel's answer, if it has one.
fn report_note(answer: &Answer) {
    if let Some(note) = &answer.note {
        output::report(format_args!("note: {note}"));
    }
}
