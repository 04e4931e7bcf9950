// SPDX-License-Identifier: GPL-2.0-only

//! The output of commands: lines for people, or JSON.

use crate::error::{
    Error,
    Result, //
};
use serde::Serialize;
use std::{
    fmt::Display,
    io::{
        self,
        BufWriter,
        StdoutLock,
        Write, //
    }, //
};

/// The standard output, in one of two forms.
#[derive(Debug)]
pub struct Output {
    json: bool,
    out: BufWriter<StdoutLock<'static>>,
}

/// Prints bytes unchanged.
pub fn print(bytes: &[u8]) -> Result {
    let mut out = io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(Error::Output)
}

/// Prints a line on the standard error. Failures (`2>&1 | head`, a full disk) are ignored: the
/// command has to finish its work in any case.
pub fn report(line: impl Display) {
    let line = format!("oxib: {line}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Turns a failure to print into a success with a note, for a command whose work is done. `done` is
/// the first part of the note. A closed pipe stays an error, which `main` takes for a success
/// without a note: nobody reads the output.
pub fn tolerate_print_error(printed: Result, done: &str) -> Result {
    match printed {
        Err(error) if !error.is_closed_pipe() => {
            report(format_args!("note: {done}; {error}"));
            Ok(())
        }
        printed => printed,
    }
}

/// Reports a failure to print in a note, for a command that fails for another reason.
pub fn report_print_error(printed: Result) {
    if let Err(error) = printed {
        if !error.is_closed_pipe() {
            report(format_args!("note: {error}"));
        }
    }
}

impl Output {
    /// Locks the standard output.
    pub fn new(json: bool) -> Output {
        Output {
            json,
            out: BufWriter::new(io::stdout().lock()),
        }
    }

    /// Prints a list: one line for each item, or a JSON array.
    pub fn print_list<T: Serialize + Display>(mut self, items: &[T]) -> Result {
        if self.json {
            return self.print_value(items, "");
        }
        for item in items {
            writeln!(self.out, "{item}").map_err(Error::Output)?;
        }
        self.out.flush().map_err(Error::Output)
    }

    /// Prints one item: as text, or as a JSON value.
    pub fn print_item<T: Serialize + Display + ?Sized>(mut self, item: &T) -> Result {
        let text = if self.json {
            String::new()
        } else {
            item.to_string()
        };
        self.print_value(item, &text)
    }

    /// Prints `value` as JSON, or else `text`, and flushes the output, as others may follow much
    /// later.
    pub fn print_value<T: Serialize + ?Sized>(&mut self, value: &T, text: &str) -> Result {
        if self.json {
            serde_json::to_writer(&mut self.out, value)
                .map_err(|error| Error::Output(error.into()))?;
            writeln!(self.out).map_err(Error::Output)?;
        } else if !text.is_empty() {
            writeln!(self.out, "{}", text.trim_end_matches('\n')).map_err(Error::Output)?;
        }
        self.out.flush().map_err(Error::Output)
    }
}
