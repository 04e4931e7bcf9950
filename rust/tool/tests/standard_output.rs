// SPDX-License-Identifier: GPL-2.0-only

//! The command's standard output: a full disk is an error, a closed pipe is none.

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

/// Commands that print and do not need the module. `FILE` stands for a file to load.
const COMMANDS: &[&str] = &[
    "--help",
    "--version",
    "help acm load",
    "acm show -h",
    "completions bash",
    "completions zsh",
    "completions fish",
    "manual",
    "acm load --check FILE",
    "-j acm load --check FILE",
];

/// Runs a command with that standard output. Returns its status, and its standard error.
fn run(words: &str, out: impl Into<Stdio>) -> (Option<i32>, String) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "10.0.0.1 fec0::1").unwrap();
    let words = words.split(' ').map(|word| match word {
        "FILE" => file.path().as_os_str().to_owned(),
        _ => word.into(),
    });
    let done = Command::new(env!("CARGO_BIN_EXE_oxib"))
        .args(words)
        .stdout(out)
        .output()
        .unwrap();
    let messages = String::from_utf8(done.stderr).unwrap();
    (done.status.code(), messages)
}

#[test]
fn a_full_disk_is_an_error() {
    for words in COMMANDS {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let wanted = "oxib: writing to the standard output: No space left on device\n";
        assert_eq!(run(words, full), (Some(1), wanted.to_owned()), "{words}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    for words in COMMANDS {
        let (out, reader) = UnixStream::pair().unwrap();
        drop(reader);
        let ended = run(words, OwnedFd::from(out));
        assert_eq!(ended, (Some(0), String::new()), "{words}");
    }
}
