//! What can go wrong, in words: the only place that words a failure.

use std::fmt;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// It fits, or the work is done.
    Done = 0,
    /// It does not fit: an answer, not a failure.
    DoesNotFit = 1,
    /// Flags, a profile or a file are wrong.
    BadInput = 2,
    /// The probe or the machine failed.
    Failed = 3,
}

/// A failure that ends a command: one line that names the value, and hints what to do.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    hints: Vec<String>,
}

/// The kinds of failure. Messages are lower case, with what the user typed in backticks.
#[derive(Debug, thiserror::Error)]
pub enum ErrorKind {
    /// A name that no catalog has.
    #[error("no {what} named `{name}`")]
    UnknownName {
        /// `GPU` or `model`.
        what: &'static str,
        /// What was asked for.
        name: String,
    },
}

impl Error {
    /// A failure with the hints that follow from its kind alone.
    pub fn new(kind: ErrorKind) -> Self {
        Self { kind, hints: Vec::new() }
    }

    /// Adds a hint: what to do, in one line.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// What to do.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// How the program ends on this failure.
    pub fn status(&self) -> ExitStatus {
        match self.kind {
            ErrorKind::UnknownName { .. } => ExitStatus::BadInput,
        }
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self::new(kind)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for Error {}
