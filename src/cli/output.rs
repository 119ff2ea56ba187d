//! The only place that prints: data to standard output, talk to standard error.

use std::io::{self, IsTerminal, Write};

use comfy_table::{ContentArrangement, Table, presets};
use indicatif::ProgressDrawTarget;
use serde::Serialize;

use crate::error::{Error, ErrorKind, ExitStatus};

/// Where a command's words go.
#[derive(Debug)]
pub(super) struct Output {
    /// Talk may be redrawn and coloured: a person looks at it.
    lively: bool,
}

impl Output {
    pub(super) fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { lively: io::stderr().is_terminal() && !dumb }
    }

    /// Prints data and a line end.
    ///
    /// # Errors
    /// When nobody reads on, or the disk is full.
    pub(super) fn data(&self, text: &str) -> Result<(), Error> {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(lost)
    }

    /// Prints data as indented JSON.
    ///
    /// # Errors
    /// As [`Self::data`].
    pub(super) fn json(&self, value: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(value).map_err(io::Error::from).map_err(lost)?;
        self.data(&text)
    }

    /// Says something that is not data. A terminal that is gone is no reason to stop.
    pub(super) fn say(&self, text: &str) {
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Says what went wrong and what to do.
    pub(super) fn error(&self, error: &Error) {
        if matches!(error.kind(), ErrorKind::ClosedOutput) {
            return;
        }
        self.say(&format!("error: {error}"));
        for hint in error.hints() {
            self.say(&format!("hint: {hint}"));
        }
    }

    /// Prints what clap has to say: help and version are data, the rest is talk.
    ///
    /// # Errors
    /// As [`Self::data`].
    pub(super) fn clap(&self, error: &clap::Error) -> Result<ExitStatus, Error> {
        let printed = error.print();
        if error.use_stderr() {
            return Ok(ExitStatus::BadInput);
        }
        printed.and_then(|()| io::stdout().flush()).map_err(lost)?;
        Ok(ExitStatus::Done)
    }

    /// Where a progress bar is drawn: standard error when a person looks at it, else nowhere.
    pub(super) fn progress(&self) -> ProgressDrawTarget {
        match self.lively {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        }
    }
}

/// An empty table that fits the terminal.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header);
    table
}

fn lost(source: io::Error) -> Error {
    Error::new(match source.kind() {
        io::ErrorKind::BrokenPipe => ErrorKind::ClosedOutput,
        _ => ErrorKind::Unwritable { path: "standard output".into(), source },
    })
}
