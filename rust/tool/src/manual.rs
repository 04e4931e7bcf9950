// SPDX-License-Identifier: GPL-2.0-only

//! The manual page oxib(8), generated from the definition of the command line and a table.

use crate::cli::Cli;
use clap::{
    Command,
    CommandFactory, //
};
use clap_mangen::Man;
use roff::{
    bold,
    italic,
    roman,
    Inline,
    Roff, //
};
use std::io::{
    self,
    Write, //
};

/// A section: a heading, and paragraphs as pairs of tag and text. The tag may be empty.
type Section = (&'static str, &'static [(&'static str, &'static str)]);

/// The date of the last change of the page.
const DATE: &str = "2026-11-30";

/// The sections that do not come from the definition of the command line.
const SECTIONS: &[Section] = &[
    (
        "ENTRIES",
        &[
            (
                "",
                "An entry gives an IPv4 or IPv6 address the GID of the port that has it, for one \
                 network namespace. Where there is an entry, oxib answers ARP requests and \
                 neighbour solicitations of this node by itself, and the GID may be one of \
                 another subnet, behind a router.",
            ),
            (
                "qpn NUMBER",
                "the queue pair that receives for the address. Without it the node is asked \
                 (SIDR), and its answer is shown as (sidr).",
            ),
            (
                "pkey P_KEY",
                "the entry holds only for interfaces in that partition.",
            ),
            (
                "lifetime SECONDS",
                "the entry goes after that time; 0, the default, is for ever.",
            ),
            (
                "source",
                "where it comes from, the highest rank first: file, netlink (this command, or \
                 another program), sidr (the node itself was asked), learned (the node has \
                 asked). What comes from a source of lower rank never changes an entry of a \
                 higher one; one of the same rank does.",
            ),
        ],
    ),
    (
        "RESOLUTION",
        &[
            (
                "",
                "oxib acm resolve runs the steps that a packet to the address waits for if the \
                 address is on the interface's own IP subnet: the cache (its GID), the peer (its \
                 queue pair), the path. The command fails if one of them fails.",
            ),
            (
                "",
                "An address behind an IP gateway is reached in two ways. IP packets go to the \
                 gateway, whatever the cache says. A program that connects by rdma_cm asks for \
                 the peer's GID, is told the one in the cache, and its connection takes the \
                 InfiniBand router: for it the steps cache and path count, and the peer's queue \
                 pair does not.",
            ),
            (
                "",
                "rdma_cm does not say in which network namespace it asks, so it is told nothing \
                 where the caches of two namespaces have different GIDs for the address and their \
                 interfaces have the same number. It is told nothing with the module's parameter \
                 acm_programs=off either. Its call ends with RDMA_CM_EVENT_ADDR_ERROR then, \
                 although the step cache is ok in its own namespace; the line of that step says \
                 so.",
            ),
        ],
    ),
    (
        "FILES",
        &[
            (
                "",
                "A line is ADDRESS GID [qpn NUMBER] [pkey P_KEY] [lifetime SECONDS]; # begins a \
                 comment. ibacm's ibacm_hosts.data is such a file. ADDRESS may be a name: it \
                 stands for all its addresses that the host's resolver knows, except loopback \
                 ones. A name may repeat what its address says in another line. Apart from that \
                 each address is there once in all files of a load.",
            ),
            (
                "",
                "All mistakes are printed, as FILE:LINE: TEXT, and nothing is loaded if there is \
                 one. With --replace-all it is a mistake, too, if nothing was read, not even a \
                 comment: it may be the output of a program that failed. oxib acm flush source \
                 file deletes what files brought.",
            ),
            (
                "",
                "oxib acm save writes such a file. One that it replaces keeps its owner and its \
                 mode; a symbolic link is refused.",
            ),
            (
                "/etc/rdma/oxib/*.data",
                "is loaded when the module comes, by oxib-cache.service. After a change: \
                 systemctl reload-or-restart oxib-cache.",
            ),
        ],
    ),
    (
        "EXIT STATUS",
        &[
            (
                "0",
                "it was done. Entries are loaded, and paths known, also where that cannot be \
                 printed, which is noted unless the reader has gone.",
            ),
            (
                "1",
                "it could not be done, or files have mistakes in them. A command that changes \
                 entries has changed none.",
            ),
            ("2", "the command line is wrong."),
        ],
    ),
    (
        "EXAMPLES",
        &[
            (
                "oxib acm add 10.1.0.5 fec0:0:0:2::201:2ff",
                "adds an entry.",
            ),
            (
                "oxib acm load --check /etc/rdma/oxib",
                "looks for mistakes in files, also where \
                                                      oxib is not loaded.",
            ),
            (
                "oxib acm load --replace-all /etc/rdma/oxib",
                "loads them, and deletes what earlier \
                                                            loads had and these do not.",
            ),
            (
                "oxib acm show to 10.1.0.0/16 source learned",
                "lists entries.",
            ),
            ("oxib -j acm stats | jq .hits", "prints a counter."),
            (
                "oxib acm resolve 10.1.0.5 dev ib0",
                "shows what a packet to that address would wait \
                                                   for.",
            ),
        ],
    ),
    (
        "SEE ALSO",
        &[(
            "",
            "ip(8), ip-neighbour(8), ibacm(8), saquery(8), modprobe(8)",
        )],
    ),
];

/// Writes the page in roff.
pub fn write(out: &mut impl Write) -> io::Result<()> {
    let mut command = Cli::command();
    command.build();
    let man = Man::new(command.clone())
        .title("OXIB")
        .section("8")
        .date(DATE)
        .source(concat!("oxib ", env!("CARGO_PKG_VERSION")))
        .manual("InfiniBand");
    man.render_title(out)?;
    man.render_name_section(out)?;
    synopsis(&command).to_writer(out)?;
    man.render_options_section(out)?;
    commands(&command).to_writer(out)?;
    for section in SECTIONS {
        page_section(section).to_writer(out)?;
    }
    Ok(())
}

/// Collects the commands with their full names, except hidden ones and clap's `help`.
fn collect_commands<'a>(
    command: &'a Command,
    before: &str,
    found: &mut Vec<(String, &'a Command)>,
) {
    let shown = |command: &&Command| command.get_name() != "help" && !command.is_hide_set();
    for inner in command.get_subcommands().filter(shown) {
        let words = format!("{before} {}", inner.get_name());
        // `paths` has subcommands, but is a command by itself, too.
        if !inner.is_subcommand_required_set() {
            found.push((words.clone(), inner));
        }
        collect_commands(inner, &words, found);
    }
}

/// Formats the arguments of a command.
fn arguments(command: &Command) -> Vec<Inline> {
    let mut line = Vec::new();
    for argument in command.get_arguments().filter(|each| !each.is_global_set()) {
        if let Some(long) = argument.get_long().filter(|long| *long != "help") {
            line.extend([roman(" [ "), bold(format!("--{long}")), roman(" ]")]);
        }
    }
    for argument in command.get_positionals() {
        let name = argument.get_value_names().and_then(|names| names.first());
        let name = name.map_or_else(
            || argument.get_id().to_string().to_uppercase(),
            ToString::to_string,
        );
        let several = argument
            .get_num_args()
            .is_some_and(|range| range.max_values() > 1);
        if argument.is_required_set() {
            line.extend([
                roman(" "),
                italic(name),
                roman(if several { " ..." } else { "" }),
            ]);
        } else {
            line.extend([
                roman(" [ "),
                italic(name),
                roman(if several { " ... ]" } else { " ]" }),
            ]);
        }
    }
    line
}

/// Formats the synopsis: a line for each command.
fn synopsis(command: &Command) -> Roff {
    let mut found = Vec::new();
    collect_commands(command, "oxib", &mut found);
    let mut page = Roff::new();
    page.control("SH", ["SYNOPSIS"]);
    let mut after_one = false;
    for (words, command) in found {
        if std::mem::replace(&mut after_one, true) {
            page.control("br", []);
        }
        let mut line = vec![bold(words)];
        line.extend(arguments(command));
        page.text(line);
    }
    page
}

/// Formats the section that describes the commands.
fn commands(command: &Command) -> Roff {
    let mut found = Vec::new();
    collect_commands(command, "oxib", &mut found);
    let mut page = Roff::new();
    page.control("SH", ["COMMANDS"]);
    page.text([roman(
        "Commands may be shortened as long as they are not mistaken for another.",
    )]);
    for (words, command) in found {
        page.control("TP", []);
        let mut line = vec![bold(words)];
        line.extend(arguments(command));
        page.text(line);
        page.text([roman(
            command
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default(),
        )]);
        for argument in command.get_arguments().filter(|each| !each.is_global_set()) {
            let help = argument.get_help().map(ToString::to_string);
            if let (Some(long), Some(help)) =
                (argument.get_long().filter(|long| *long != "help"), help)
            {
                page.control("br", []);
                page.text([bold(format!("--{long}")), roman(format!(": {help}"))]);
            }
        }
    }
    page
}

/// Formats one of [`SECTIONS`].
fn page_section((heading, paragraphs): &Section) -> Roff {
    let mut page = Roff::new();
    page.control("SH", [*heading]);
    let mut after_one = false;
    for (tag, text) in *paragraphs {
        let is_first = !std::mem::replace(&mut after_one, true);
        match (tag.is_empty(), is_first) {
            (true, true) => {}
            (true, false) => {
                page.control("PP", []);
            }
            (false, _) => {
                page.control("TP", []);
                page.text([bold(*tag)]);
            }
        }
        page.text([roman(*text)]);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_command() {
        let mut page = Vec::new();
        write(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        for words in [
            ".TH OXIB 8",
            "acm show",
            "acm add",
            "acm replace",
            "acm del",
            "acm flush",
            "acm load",
            "acm save",
            "acm resolve",
            "acm stats",
            "acm monitor",
            "acm paths",
            "acm paths flush",
            "acm paths preload",
            "acm interface set",
            "completions",
            ".SH RESOLUTION",
            ".SH FILES",
            ".SH EXAMPLES",
        ] {
            assert!(page.contains(words), "{words} in {page}");
        }
        assert!(!page.contains("oxib acm help"));
    }
}
