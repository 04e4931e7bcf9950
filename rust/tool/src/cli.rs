// SPDX-License-Identifier: GPL-2.0-only

//! The command line. Options may be anywhere; words in the manner of ip(8) follow a command.

use clap::{
    builder::{
        PossibleValue,
        TypedValueParser, //
    },
    Args,
    Parser,
    Subcommand,
    ValueHint, //
};
use clap_complete::Shell;
use std::{
    ffi::OsStr,
    path::PathBuf, //
};

/// Control of oxib: IP over InfiniBand, and its address cache.
#[derive(Debug, Parser)]
#[command(name = "oxib", version, infer_subcommands = true, max_term_width = 100)]
pub struct Cli {
    /// Print JSON.
    #[arg(short, long, global = true)]
    pub json: bool,
    /// Act in the network namespace NAME (see `ip netns`).
    #[arg(short = 'n', long, global = true, value_name = "NAME")]
    pub netns: Option<String>,
    /// The object that the command acts on.
    #[command(subcommand)]
    pub object: Object,
}

/// The objects that commands act on.
#[derive(Debug, Subcommand)]
pub enum Object {
    /// The address cache, which maps IP addresses to GIDs.
    #[command(subcommand)]
    Acm(Acm),
    /// Print the completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page, for man(1).
    Manual,
}

/// The commands on the address cache.
#[derive(Debug, Subcommand)]
#[command(infer_subcommands = true)]
pub enum Acm {
    /// List entries: all, or those of an address, a prefix, a GID, a source.
    #[command(visible_alias = "list")]
    Show(Filter),
    /// Add an entry; an error if the address has one.
    Add(Entry),
    /// Add an entry, or change the one that the address has.
    Replace(Entry),
    /// Delete the entry of an address.
    #[command(alias = "delete")]
    Del {
        /// The address.
        #[arg(value_name = "ADDRESS")]
        address: String,
    },
    /// Delete all entries, or those of a prefix, a GID, a source.
    Flush(Filter),
    /// Load files: all their entries, or none if a file has an error.
    Load(Load),
    /// Save entries to a file; by default those that came from files or by netlink.
    Save(Save),
    /// Resolve an address as a packet to it would, and show each step.
    Resolve(Resolve),
    /// Show counters.
    Stats,
    /// Print changes of the cache until it is interrupted or oxib is unloaded.
    Monitor,
    /// List, flush or preload the paths that the subnet administrator returns.
    Paths(Paths),
    /// Show or set how interfaces use the cache.
    #[command(subcommand)]
    Interface(Interface),
}

/// The arguments of `show` and `flush`.
#[derive(Debug, Args)]
pub struct Filter {
    /// The entries; all of them by default.
    #[arg(
        value_name = "[to] ADDRESS[/LENGTH] | gid GID | source SOURCE",
        value_parser = Hints(FILTER),
        hide_possible_values = true
    )]
    pub words: Vec<String>,
}

/// The arguments of `add` and `replace`.
#[derive(Debug, Args)]
pub struct Entry {
    /// The IPv4 or IPv6 address.
    #[arg(value_name = "ADDRESS")]
    pub address: String,
    /// The GID of the port that has it.
    #[arg(value_name = "GID")]
    pub gid: String,
    /// The number of the queue pair that receives for it, its partition, and its lifetime.
    #[arg(
        value_name = "qpn NUMBER | pkey P_KEY | lifetime SECONDS",
        value_parser = Hints(ENTRY),
        hide_possible_values = true
    )]
    pub words: Vec<String>,
}

/// The arguments of `load`.
#[derive(Debug, Args)]
pub struct Load {
    /// Delete entries of earlier loads that the files do not have.
    #[arg(long)]
    pub replace_all: bool,
    /// Only check the files for errors; oxib need not be loaded.
    #[arg(long)]
    pub check: bool,
    /// Files, directories (their *.data), or - for the standard input.
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
}

/// The arguments of `save`.
#[derive(Debug, Args)]
pub struct Save {
    /// The file, or - for the standard output.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The sources of the entries to save.
    #[arg(value_name = "source SOURCE", value_parser = Hints(SAVE), hide_possible_values = true)]
    pub words: Vec<String>,
}

/// The arguments of `resolve`.
#[derive(Debug, Args)]
pub struct Resolve {
    /// The IPv4 or IPv6 address.
    #[arg(value_name = "ADDRESS")]
    pub address: String,
    /// The interface that packets leave by; not needed if there is only one.
    #[arg(
        value_name = "dev INTERFACE",
        value_parser = Hints(&["dev"]),
        hide_possible_values = true
    )]
    pub words: Vec<String>,
}

/// The arguments of `paths`.
#[derive(Debug, Args)]
pub struct Paths {
    /// The command on the paths; `show` if there is none.
    #[command(subcommand)]
    pub command: Option<PathCommand>,
}

/// The commands on paths.
#[derive(Debug, Subcommand)]
pub enum PathCommand {
    /// List the paths.
    Show,
    /// Drop the paths: they are queried again when they are needed.
    Flush,
    /// Query the paths to all GIDs of the address cache in advance, unless they are known.
    Preload {
        /// The interface that packets leave by; not needed if there is only one.
        #[arg(
            value_name = "dev INTERFACE",
            value_parser = Hints(&["dev"]),
            hide_possible_values = true
        )]
        words: Vec<String>,
    },
}

/// The commands on interfaces.
#[derive(Debug, Subcommand)]
#[command(infer_subcommands = true)]
pub enum Interface {
    /// Show how interfaces use the cache.
    Show {
        /// The only interface to show.
        #[arg(
            value_name = "dev INTERFACE",
            value_parser = Hints(&["dev"]),
            hide_possible_values = true
        )]
        words: Vec<String>,
    },
    /// Set the mode of an interface. off: no use of the cache; prefer: the cache before ARP and
    /// neighbour discovery; only: the cache instead of these.
    Set {
        /// The interface, and its mode: off, prefer or only.
        #[arg(
            value_name = "dev INTERFACE acm MODE",
            value_parser = Hints(SET),
            hide_possible_values = true,
            required = true
        )]
        words: Vec<String>,
    },
}

/// The keywords of filters, for completion.
const FILTER: &[&str] = &["to", "gid", "source", "file", "netlink", "sidr", "learned"];
/// The keywords of entries, for completion.
const ENTRY: &[&str] = &["qpn", "pkey", "lifetime"];
/// The keywords of `save`, for completion.
const SAVE: &[&str] = &["source", "file", "netlink", "sidr", "learned"];
/// The keywords of `interface set`, for completion.
const SET: &[&str] = &["dev", "acm", "off", "prefer", "only"];

/// Accepts every word, and offers keywords to the shell's completion.
#[derive(Clone, Copy, Debug)]
struct Hints(&'static [&'static str]);

impl TypedValueParser for Hints {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn commands_are_parsed() {
        let right = [
            "acm show",
            "acm sh to 10.0.0.0/8 source file",
            "-j acm list",
            "acm show -j",
            "-n blue acm add 10.0.0.1 fec0::1 qpn 72 pkey 0x8001 lifetime 60",
            "acm add ::1 fec0::1",
            "acm del 10.0.0.1",
            "acm delete 10.0.0.1",
            "acm flush",
            "acm flush to 10.0.0.0/8",
            "acm load --replace-all /etc/rdma/oxib",
            "acm load -",
            "acm save - source file",
            "acm resolve 10.0.0.1 dev ib0",
            "acm stats -j",
            "acm monitor",
            "acm paths",
            "acm paths flush",
            "acm paths preload",
            "acm paths preload dev ib0",
            "acm interface show dev ib0",
            "acm interface set dev ib0 acm only",
            "completions bash",
            "manual",
        ];
        for text in right {
            let words = std::iter::once("oxib").chain(text.split_whitespace());
            assert!(Cli::try_parse_from(words).is_ok(), "{text}");
        }
        let wrong = [
            "",
            "acm",
            "acm s",
            "acm add 10.0.0.1",
            "acm load",
            "acm del",
            "acm save",
            "acm interface set",
            "acm show --loud",
            "completions tcsh",
        ];
        for text in wrong {
            let words = std::iter::once("oxib").chain(text.split_whitespace());
            assert!(Cli::try_parse_from(words).is_err(), "{text}");
        }
    }
}
