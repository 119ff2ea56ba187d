use std::sync::Arc;
use std::time::Duration;

use super::command_prober::CommandProber;
use super::python::Sources;
use super::workers::{Program, Workers};
use super::{GpuProber, Interrupt, Record, WorkerProber};
use crate::device::{Gpu, PythonSetup};
use crate::error::Error;
use crate::workload::Subject;

/// How long what is not ours may take, where nothing else is said: the user's file to import and the
/// function to build a model, and a whole run of a command, which imports, loads and tokenizes anew.
pub(super) const USERS_CODE: Duration = Duration::from_secs(600);

/// What trains, and what is asked of it.
#[derive(Clone, Debug)]
pub struct Launch {
    trainer: Trainer,
    options: Options,
}

#[derive(Clone, Debug)]
enum Trainer {
    Worker(Program),
    /// The user's command itself; what is carried for its Python children.
    Command(Arc<Sources>),
}

/// What is asked of a child, whatever it is.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// The limit for one point, where the user gave one.
    pub(super) timeout: Option<Duration>,
    pub(super) interrupt: Interrupt,
    /// Hears what it prints.
    pub(super) listener: Option<fn(&str)>,
    pub(super) python: PythonSetup,
}

impl Options {
    /// No more than that.
    pub(super) fn new(timeout: Option<Duration>, interrupt: Interrupt) -> Self {
        Self { timeout, interrupt, listener: None, python: PythonSetup::default() }
    }
}

impl Launch {
    /// What trains `subject`: the worker of this installation for a built-in model, one in Python for
    /// a user's function, and a command itself. `timeout` is the limit for one point.
    ///
    /// # Errors
    /// When the sources in Python cannot be laid out.
    pub fn new(
        subject: &Subject,
        timeout: Option<Duration>,
        interrupt: Interrupt,
    ) -> Result<Self, Error> {
        let sources = || Sources::lay_out().map(Arc::new);
        let trainer = match subject {
            Subject::BuiltIn(_) => Trainer::Worker(Program::built_in()),
            Subject::Function(function) => {
                Trainer::Worker(Program::Python(function.clone(), sources()?))
            }
            Subject::Command(_) => Trainer::Command(sources()?),
        };
        Ok(Self { trainer, options: Options::new(timeout, interrupt) })
    }

    /// Lets `listener` hear each line that a worker, or the user's code in it, prints.
    #[must_use]
    pub fn heard_by(mut self, listener: Option<fn(&str)>) -> Self {
        self.options.listener = listener;
        self
    }

    /// Lets results whose size depends on values that nobody knows be as small as they can be,
    /// rather than as large.
    #[must_use]
    pub fn with_lowest_sizes(mut self) -> Self {
        self.options.python.lowest_sizes = true;
        self
    }

    /// What tries points on `gpu`; measurements go to `record` as they come.
    pub fn prober<'a>(&self, gpu: &'a Gpu, record: Option<Record>) -> Box<dyn GpuProber + 'a> {
        let options = self.options.clone();
        match &self.trainer {
            Trainer::Worker(program) => {
                let workers = Workers::new(program.clone(), options);
                Box::new(WorkerProber::new(gpu, workers).recorded(record))
            }
            Trainer::Command(sources) => {
                Box::new(CommandProber::new(gpu, options, Arc::clone(sources), record))
            }
        }
    }
}
