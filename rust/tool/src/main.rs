// SPDX-License-Identifier: GPL-2.0-only

//! The command `oxib`: see oxib(8).

#![forbid(unsafe_code)]

use clap::Parser;
use oxib_tool::{
    cli::Cli,
    command,
    error::Error,
    output, //
};
use std::{
    io::{
        self,
        Write, //
    },
    process::ExitCode, //
};

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(cli) => command::run(&cli),
        // A wrong command line: clap explains it on the standard error.
        Err(wrong) if wrong.use_stderr() => wrong.exit(),
        // The help or the version. `exit` would ignore that it cannot be written.
        Err(text) => text
            .print()
            .and_then(|()| io::stdout().flush())
            .map_err(Error::Output),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output needs no more of it (`| head`).
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error @ Error::Usage(_)) => {
            output::report(error);
            ExitCode::from(2)
        }
        Err(error) => {
            for line in error.to_string().lines() {
                output::report(line);
            }
            ExitCode::FAILURE
        }
    }
}
