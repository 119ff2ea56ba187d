use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::Interrupt;
use super::python::Sources;
use super::worker::{self, Start};
use crate::error::{Error, ErrorKind};
use crate::measurement::EvidenceKind;
use crate::workload::{Function, Subject};

/// How long the user's file may take to import, and the function to build a model: weights may have
/// to be loaded, even fetched.
const USERS_CODE: Duration = Duration::from_secs(600);

/// How workers are started and how long they may take.
#[derive(Clone, Debug)]
pub struct Launch {
    kind: Kind,
    timeout: Option<Duration>,
    pub(super) interrupt: Interrupt,
    listener: Option<fn(&str)>,
}

#[derive(Clone, Debug)]
enum Kind {
    BuiltIn(PathBuf),
    Function(Function, Arc<Sources>),
}

impl Launch {
    /// Workers of this installation (`VRAMFIT_WORKER` may name another), which train built-in models.
    /// `timeout` is the limit for one point, 120 s on a virtual GPU and 600 s on a real one where it is
    /// not given.
    pub fn built_in(timeout: Option<Duration>, interrupt: Interrupt) -> Self {
        Self { kind: Kind::BuiltIn(worker::program()), timeout, interrupt, listener: None }
    }

    /// Workers that train `subject`: for a user's function those in Python, else as
    /// [`Self::built_in`].
    ///
    /// # Errors
    /// When the Python worker cannot be laid out.
    pub fn new(
        subject: &Subject,
        timeout: Option<Duration>,
        interrupt: Interrupt,
    ) -> Result<Self, Error> {
        let launch = Self::built_in(timeout, interrupt);
        Ok(match subject {
            Subject::BuiltIn(_) => launch,
            Subject::Function(function) => {
                let sources = Arc::new(Sources::lay_out()?);
                Self { kind: Kind::Function(function.clone(), sources), ..launch }
            }
        })
    }

    /// Lets `listener` hear each line that a worker, or the user's code in it, prints.
    #[must_use]
    pub fn heard_by(mut self, listener: Option<fn(&str)>) -> Self {
        self.listener = listener;
        self
    }

    /// The limit for one point.
    pub(super) fn timeout(&self, kind: EvidenceKind) -> Duration {
        self.timeout.unwrap_or(match kind {
            EvidenceKind::Real => Duration::from_secs(600),
            EvidenceKind::Virtual => Duration::from_secs(120),
        })
    }

    /// The limit for what the user's code does before the first point.
    pub(super) fn limit_of_users_code(&self, kind: EvidenceKind) -> Duration {
        self.timeout(kind).max(USERS_CODE)
    }

    /// The user's function, if that is what is trained.
    pub(super) fn function(&self) -> Option<&Function> {
        match &self.kind {
            Kind::BuiltIn(_) => None,
            Kind::Function(function, _) => Some(function),
        }
    }

    /// How to start a worker.
    pub(super) fn start(&self, kind: EvidenceKind) -> Start {
        let (command, doing, timeout) = match &self.kind {
            Kind::BuiltIn(program) => {
                (Command::new(program), "before it was ready".to_owned(), self.timeout(kind))
            }
            Kind::Function(function, sources) => (
                sources.command(function),
                format!("while importing `{}`", function.file_name()),
                self.limit_of_users_code(kind),
            ),
        };
        Start { command, doing, timeout, listener: self.listener }
    }

    /// A failure to start, in terms of what runs in the worker.
    pub(super) fn explain(&self, error: Error) -> Error {
        let Some(function) = self.function() else { return error };
        match error.kind() {
            ErrorKind::WorkerMissing { .. } => {
                ErrorKind::PythonMissing { path: function.python.clone() }.into()
            }
            ErrorKind::WorkerKilled { .. }
            | ErrorKind::WorkerEnded { .. }
            | ErrorKind::WorkerHung { .. }
            | ErrorKind::WorkerRubbish { .. } => {
                ErrorKind::UsersCode { reason: error.to_string() }.into()
            }
            _ => error,
        }
    }
}
