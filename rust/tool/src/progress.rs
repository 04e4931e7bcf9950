// SPDX-License-Identifier: GPL-2.0-only

//! The progress of long operations.

use indicatif::{
    ProgressBar,
    ProgressStyle, //
};

/// Creates a progress bar on the standard error, hidden unless that is a terminal.
pub fn progress_bar(length: u64, what: &'static str, numbers: &str) -> ProgressBar {
    let template = format!("{{msg}} [{{wide_bar}}] {numbers} {{eta}}");
    let style =
        ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length)
        .with_style(style.progress_chars("=> "))
        .with_message(what)
}
