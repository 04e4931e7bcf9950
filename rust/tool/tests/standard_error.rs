// SPDX-License-Identifier: GPL-2.0-only

//! The command's standard error: a command does its work even if it cannot print its messages.

use std::{
    fs::OpenOptions,
    io::Write,
    os::{
        fd::OwnedFd,
        unix::net::UnixStream, //
    },
    process::{
        Command,
        Stdio, //
    }, //
};

/// Commands that print a message and do not need the module, with the lines of the file that `FILE`
/// stands for, their status and their standard output.
const COMMANDS: &[(&str, &str, i32, &str)] = &[
    (
        "acm load --check FILE",
        "10.0.0.1 fe80::1\n10.0.0.2 fe80::2\n",
        0,
        "2 entries, no mistakes\n",
    ),
    ("acm load --check FILE", "10.0.0.1\n10.0.0.2\n", 1, ""),
    ("acm load --check --replace-all FILE", "\n", 1, ""),
    (
        "acm load --check --replace-all FILE",
        "# none\n",
        0,
        "0 entries, no mistakes\n",
    ),
    ("acm add nowhere fec0::1", "", 2, ""),
    ("acm frobnicate", "", 2, ""),
];

/// Runs all commands, each with a standard error of its own.
fn run_all(standard_error: impl Fn() -> Stdio) {
    for (words, lines, status, output) in COMMANDS {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(lines.as_bytes()).unwrap();
        let arguments = words.split(' ').map(|word| match word {
            "FILE" => file.path().as_os_str().to_owned(),
            _ => word.into(),
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_oxib"));
        command.args(arguments).stderr(standard_error());
        let done = command.output().unwrap();
        let found = String::from_utf8(done.stdout).unwrap();
        let ended = (done.status.code(), found.as_str());
        assert_eq!(ended, (Some(*status), *output), "{words}: {lines:?}");
    }
}

#[test]
fn a_full_disk_keeps_no_command_from_its_work() {
    run_all(|| {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        full.into()
    });
}

#[test]
fn a_closed_pipe_keeps_no_command_from_its_work() {
    run_all(|| {
        let (writer, reader) = UnixStream::pair().unwrap();
        drop(reader);
        OwnedFd::from(writer).into()
    });
}
