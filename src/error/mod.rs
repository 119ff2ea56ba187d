//! What can go wrong, in words: the only place that words a failure.

mod hints;
mod kind;
mod status;
mod text;

use std::fmt;

pub use kind::ErrorKind;
pub use status::ExitStatus;
pub use text::{harmless_lines, last_line, one_line, shorten};

/// A failure that ends a command: one line that names the value, and hints what to do.
#[derive(Debug)]
pub struct Error {
    kind: Box<ErrorKind>,
    details: Vec<String>,
    hints: Vec<String>,
}

impl Error {
    /// A failure with the hints that follow from its kind alone.
    pub fn new(kind: ErrorKind) -> Self {
        let hints = hints::hints(&kind);
        Self { kind: Box::new(kind), details: Vec::new(), hints }
    }

    /// A flag's value that cannot be used, and why.
    pub fn bad_value(
        flag: impl Into<String>,
        value: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        let (flag, value, reason) = (flag.into(), value.into(), reason.into());
        Self::new(ErrorKind::BadValue { flag, value, reason })
    }

    /// Adds a hint: what to do, in one line.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds what belongs to the failure and does not go into one line, such as a traceback.
    #[must_use]
    pub fn detail(mut self, detail: Option<impl Into<String>>) -> Self {
        self.details.extend(detail.map(Into::into));
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// What belongs to it and does not go into one line.
    pub fn details(&self) -> &[String] {
        &self.details
    }

    /// What to do.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Whether the code that the user gave is what failed.
    pub fn is_of_users_code(&self) -> bool {
        matches!(*self.kind, ErrorKind::Unusable { .. } | ErrorKind::UsersCode { .. })
    }

    /// How the program ends on this failure.
    pub fn status(&self) -> ExitStatus {
        self.kind.status()
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
