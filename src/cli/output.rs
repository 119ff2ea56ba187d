//! The only place that prints: data to standard output, talk to standard error.

use std::io::{self, IsTerminal as _, Write};
use std::ops::Range;

use anstream::{AutoStream, ColorChoice};
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::destination::Destination;
use crate::error::{Error, ErrorKind, ExitStatus, one_line};
use crate::report::painted;

/// Where a command's words go.
///
/// Nothing is coloured but clap's own help, the bars of a plan's table and the findings of `lint`, on a
/// terminal and where `NO_COLOR` is not set; a progress bar, which indicatif draws on a terminal and
/// nowhere else, is the one thing that is drawn over.
#[derive(Debug)]
pub(super) struct Output;

impl Output {
    /// Prints data and a line end. A reader such as `head`, who has what it wanted and is gone, changes
    /// nothing of the answer.
    ///
    /// # Errors
    /// When the disk is full.
    pub(super) fn data(&self, text: &str) -> Result<(), Error> {
        let mut out = io::stdout().lock();
        match writeln!(out, "{text}").and_then(|()| out.flush()) {
            Err(source) if source.kind() != io::ErrorKind::BrokenPipe => Err(lost(source)),
            _ => Ok(()),
        }
    }

    /// Prints a table as data, its bars coloured where standard output shows colours.
    ///
    /// # Errors
    /// As [`Self::data`].
    pub(super) fn table(&self, text: &str) -> Result<(), Error> {
        if self.colours() { self.data(&painted(text)) } else { self.data(text) }
    }

    /// Prints data as indented JSON.
    ///
    /// # Errors
    /// As [`Self::data`].
    pub(super) fn json(&self, value: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(value).map_err(io::Error::from).map_err(lost)?;
        self.data(&text)
    }

    /// Writes indented JSON to a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn json_to(&self, value: &impl Serialize, file: &Destination) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(value).map_err(io::Error::from).map_err(lost)?;
        file.write(&text)
    }

    /// Whether data may be coloured: it goes to a terminal, and nobody has said no
    /// (<https://no-color.org>).
    pub(super) fn colours(&self) -> bool {
        AutoStream::choice(&io::stdout()) != ColorChoice::Never
    }

    /// Says something that is not data. A terminal that is gone is no reason to stop.
    pub(super) fn say(&self, text: &str) {
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Asks the person at the terminal, if there is one, who must type yes.
    pub(super) fn ask(&self, question: &str) -> bool {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return false;
        }
        self.say(&format!("{question} [y/N]"));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).is_ok()
            && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    }

    /// Says what went wrong and what to do.
    pub(super) fn error(&self, error: &Error) {
        // File names are foreign words as well.
        self.say(&format!("error: {}", one_line(&error.to_string())));
        for detail in error.details() {
            self.say(&indented(detail));
        }
        for hint in error.hints() {
            self.say(&format!("hint: {}", one_line(hint)));
        }
    }

    /// Says what clap finds fault with as everything else here is said: a line, and what to do.
    fn complaint(&self, text: &str) {
        let mut paragraphs = text.split("\n\n").map(|part| part.replace('\'', "`"));
        self.say(&one_line(&joined(&paragraphs.next().unwrap_or_default())));
        for line in paragraphs.flat_map(|part| part.lines().map(joined).collect::<Vec<_>>()) {
            let hint = line
                .strip_prefix("tip: ")
                .or_else(|| line.starts_with("[possible values").then_some(line.as_str()));
            if let Some(hint) = hint {
                self.say(&format!("hint: {}", one_line(hint)));
            }
        }
        if let Some(usage) = text.lines().find_map(|line| line.strip_prefix("Usage: ")) {
            let command: Vec<_> = usage
                .split(' ')
                .take_while(|word| word.starts_with(|first: char| first.is_ascii_lowercase()))
                .collect();
            self.say(&format!("hint: `{} --help` explains the arguments", command.join(" ")));
        }
    }

    /// Prints what clap has to say: help and version are data, the rest is talk.
    ///
    /// # Errors
    /// As [`Self::data`].
    pub(super) fn clap(&self, error: &clap::Error) -> Result<ExitStatus, Error> {
        if error.use_stderr() {
            match error.kind() {
                // No complaint: somebody typed the bare name, and reads help.
                DisplayHelpOnMissingArgumentOrSubcommand => self.say(&error.to_string()),
                _ => self.complaint(&error.to_string()),
            }
            return Ok(ExitStatus::BadInput);
        }
        match error.print().and_then(|()| io::stdout().flush()) {
            // Who reads has read enough.
            Err(source) if source.kind() != io::ErrorKind::BrokenPipe => Err(lost(source)),
            _ => Ok(ExitStatus::Done),
        }
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

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn lost(source: io::Error) -> Error {
    Error::new(ErrorKind::Unwritable { path: "standard output".into(), source })
}
