use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::command_prober::CommandProber;
use super::python::Sources;
use super::worker::{self, Start};
use super::{GpuProber, Interrupt, Record, WorkerProber};
use crate::device::{Gpu, PythonSetup};
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
    python: PythonSetup,
}

#[derive(Clone, Debug)]
enum Kind {
    BuiltIn(PathBuf),
    Function(Function, Arc<Sources>),
    Command(Arc<Sources>),
}

impl Launch {
    /// Workers of this installation (`VRAMFIT_WORKER` may name another), which train built-in models.
    /// `timeout` is the limit for one point, 120 s on a virtual GPU and 600 s on a real one where it is
    /// not given.
    pub fn built_in(timeout: Option<Duration>, interrupt: Interrupt) -> Self {
        Self {
            kind: Kind::BuiltIn(worker::program()),
            timeout,
            interrupt,
            listener: None,
            python: PythonSetup::default(),
        }
    }

    /// What trains `subject`: for a user's function workers in Python, for a command that command
    /// itself, else as [`Self::built_in`].
    ///
    /// # Errors
    /// When the sources in Python cannot be laid out.
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
            Subject::Command(_) => {
                Self { kind: Kind::Command(Arc::new(Sources::lay_out()?)), ..launch }
            }
        })
    }

    /// Lets `listener` hear each line that a worker, or the user's code in it, prints.
    #[must_use]
    pub fn heard_by(mut self, listener: Option<fn(&str)>) -> Self {
        self.listener = listener;
        self
    }

    /// Lets results whose size depends on values that nobody knows be as small as they can be,
    /// rather than as large.
    #[must_use]
    pub fn with_lowest_sizes(mut self) -> Self {
        self.python.lowest_sizes = true;
        self
    }

    /// What is asked of a child in Python.
    pub(super) fn python(&self) -> PythonSetup {
        self.python
    }

    /// What tries points on `gpu`; measurements go to `record` as they come.
    pub fn prober<'a>(&self, gpu: &'a Gpu, record: Option<Record>) -> Box<dyn GpuProber + 'a> {
        match &self.kind {
            Kind::BuiltIn(_) | Kind::Function(..) => {
                Box::new(WorkerProber::new(gpu, self.clone()).recorded(record))
            }
            Kind::Command(sources) => {
                Box::new(CommandProber::new(gpu, self.clone(), Arc::clone(sources), record))
            }
        }
    }

    /// The limit for one point.
    pub(super) fn timeout(&self, kind: EvidenceKind) -> Duration {
        self.timeout.unwrap_or(match (&self.kind, kind) {
            // Each point imports, loads and tokenizes anew.
            (Kind::Command(_), _) => USERS_CODE,
            (_, EvidenceKind::Real) => Duration::from_secs(600),
            (_, EvidenceKind::Virtual) => Duration::from_secs(120),
        })
    }

    /// Hears what the user's code prints.
    pub(super) fn listener(&self) -> Option<fn(&str)> {
        self.listener
    }

    /// The limit for what the user's code does before the first point.
    pub(super) fn limit_of_users_code(&self, kind: EvidenceKind) -> Duration {
        self.timeout(kind).max(USERS_CODE)
    }

    /// The user's function, if that is what is trained.
    pub(super) fn function(&self) -> Option<&Function> {
        match &self.kind {
            Kind::BuiltIn(_) | Kind::Command(_) => None,
            Kind::Function(function, _) => Some(function),
        }
    }

    /// How to start a worker.
    pub(super) fn start(&self, kind: EvidenceKind) -> Start {
        let (command, doing, timeout) = match &self.kind {
            // A command has no worker; of one that is asked for nevertheless, the built-in one is it.
            Kind::Command(_) => (
                Command::new(worker::program()),
                "before it was ready".to_owned(),
                self.timeout(kind),
            ),
            Kind::BuiltIn(program) => {
                (Command::new(program), "before it was ready".to_owned(), self.timeout(kind))
            }
            Kind::Function(function, sources) => (
                sources.command(function, self.python),
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
