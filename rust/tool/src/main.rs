// SPDX-License-Identifier: GPL-2.0-only

//! The command `oxib`: see oxib(8).

#![forbid(unsafe_code)]

use clap::Parser;
use oxib_tool::{
    cli::Cli,
    command,
    error::Error, //
};
use std::process::ExitCode;

fn main() -> ExitCode {
    match command::run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has had enough of it (`| head`).
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error @ Error::Usage(_)) => {
            eprintln!("oxib: {error}");
            ExitCode::from(2)
        }
        Err(error) => {
            for line in error.to_string().lines() {
                eprintln!("oxib: {line}");
            }
            ExitCode::FAILURE
        }
    }
}
