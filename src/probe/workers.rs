use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::Interrupt;
use super::launch::{Options, USERS_CODE};
use super::protocol::Hello;
use super::python::Sources;
use super::worker::{Start, Worker};
use crate::device::{Gpu, beside_executable};
use crate::error::{Error, ErrorKind};
use crate::measurement::EvidenceKind;
use crate::workload::Function;

/// How workers are started and how long they may take.
#[derive(Clone, Debug)]
pub struct Workers {
    program: Program,
    options: Options,
}

/// What runs as a worker.
#[derive(Clone, Debug)]
pub(super) enum Program {
    /// This executable, which trains built-in models.
    BuiltIn(PathBuf),
    /// Our package in the user's Python, which trains what the function returns.
    Python(Function, Arc<Sources>),
}

impl Program {
    /// The worker beside this program, or where `VRAMFIT_WORKER` says.
    pub(super) fn built_in() -> Self {
        Self::BuiltIn(
            std::env::var_os("VRAMFIT_WORKER")
                .map_or_else(|| beside_executable("vramfit-worker"), PathBuf::from),
        )
    }
}

impl Workers {
    /// Workers of this installation, which train built-in models. `timeout` is the limit for one
    /// point, 120 s on a virtual GPU and 600 s on a real one where it is not given.
    pub fn built_in(timeout: Option<Duration>, interrupt: Interrupt) -> Self {
        Self::new(Program::built_in(), Options::new(timeout, interrupt))
    }

    /// Starts a worker on `gpu`, hears who it is, and ends it.
    ///
    /// # Errors
    /// When it cannot be started, or is of another version.
    pub fn hello(&self, gpu: &Gpu) -> Result<Hello, Error> {
        let start = self.start(gpu.kind());
        let worker = Worker::start(start, &gpu.environment(), self.interrupt())
            .map_err(|error| self.explain(error))?;
        let hello = worker.hello().clone();
        worker.quit();
        Ok(hello)
    }

    pub(super) fn new(program: Program, options: Options) -> Self {
        Self { program, options }
    }

    pub(super) fn interrupt(&self) -> &Interrupt {
        &self.options.interrupt
    }

    /// The limit for one point.
    pub(super) fn timeout(&self, kind: EvidenceKind) -> Duration {
        self.options.timeout.unwrap_or(match kind {
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
        match &self.program {
            Program::BuiltIn(_) => None,
            Program::Python(function, _) => Some(function),
        }
    }

    /// How to start a worker.
    pub(super) fn start(&self, kind: EvidenceKind) -> Start {
        let (command, doing, timeout) = match &self.program {
            Program::BuiltIn(path) => {
                (Command::new(path), "before it was ready".to_owned(), self.timeout(kind))
            }
            Program::Python(function, sources) => (
                sources.command(function, self.options.python),
                format!("while importing `{}`", function.file_name()),
                self.limit_of_users_code(kind),
            ),
        };
        Start { command, doing, timeout, listener: self.options.listener }
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
