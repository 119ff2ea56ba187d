//! The only place that prints: data to standard output, talk to standard error.

use std::io::{self, Write};
use std::ops::Range;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::error::{Error, ErrorKind, ExitStatus};

/// Where a command's words go.
///
/// Nothing is coloured but clap's own help, which heeds `NO_COLOR`; a progress bar, which indicatif
/// draws on a terminal and nowhere else, is the one thing that is drawn over.
#[derive(Debug)]
pub(super) struct Output;

impl Output {
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
        for detail in error.details() {
            self.say(&indented(detail));
        }
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
}

/// Sets what a program printed apart from what we say.
pub(super) fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// A table without lines that fits the terminal; of the columns, those in `right` hold numbers.
pub(super) fn table(
    header: &[&str],
    right: Range<usize>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header)
        .add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if right.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn lost(source: io::Error) -> Error {
    Error::new(match source.kind() {
        io::ErrorKind::BrokenPipe => ErrorKind::ClosedOutput,
        _ => ErrorKind::Unwritable { path: "standard output".into(), source },
    })
}
