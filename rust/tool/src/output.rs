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

/// Prints bytes as they are, all of them.
pub fn print(bytes: &[u8]) -> Result {
    let mut out = io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(Error::Output)
}

/// Prints a line on the standard error. Where nobody takes it (`2>&1 | head`, a full disk), the
/// command goes on: what it was called for does not depend on that.
pub fn tell(line: impl Display) {
    let line = format!("oxib: {line}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Makes a success, with a note, of what could not be printed where the work is done. A reader that
/// has gone wanted no note.
pub fn done(printed: Result, what: &str) -> Result {
    match printed {
        Err(error) if !error.is_closed_pipe() => {
            tell(format_args!("note: {what}; {error}"));
            Ok(())
        }
        printed => printed,
    }
}

/// Tells of what could not be printed beside a failure, which is the command's.
pub fn tell_unprinted(printed: Result) {
    if let Err(error) = printed {
        if !error.is_closed_pipe() {
            tell(format_args!("note: {error}"));
        }
    }
}

impl Output {
    /// Takes the standard output.
    pub fn new(json: bool) -> Output {
        Output {
            json,
            out: BufWriter::new(io::stdout().lock()),
        }
    }

    /// A list: a line for each, or an array.
    pub fn list<T: Serialize + Display>(mut self, items: &[T]) -> Result {
        if self.json {
            return self.value(items, "");
        }
        for item in items {
            writeln!(self.out, "{item}").map_err(Error::Output)?;
        }
        self.out.flush().map_err(Error::Output)
    }

    /// One thing: the text as it is, or a value of JSON.
    pub fn one<T: Serialize + Display + ?Sized>(self, item: &T) -> Result {
        let text = if self.json {
            String::new()
        } else {
            item.to_string()
        };
        self.value(item, &text)
    }

    /// A value as JSON, or a text for people.
    pub fn value<T: Serialize + ?Sized>(mut self, value: &T, text: &str) -> Result {
        self.write(value, text)
    }

    /// Writes a value as JSON, or a text for people, with more to follow; it is seen at once.
    pub fn write<T: Serialize + ?Sized>(&mut self, value: &T, text: &str) -> Result {
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
