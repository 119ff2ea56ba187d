//! What can go wrong, in words: the only place that words a failure.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::units::Bytes;

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

    // The device.
    /// Nothing of the GPU's memory is left to plan with.
    #[error(
        "nothing is left of {usable} usable memory: others hold {held_by_others}, \
         the reserve is {reserve}, the margin {margin}"
    )]
    NoBudget {
        /// What CUDA programs can have at all.
        usable: Bytes,
        /// Held by other processes.
        held_by_others: Bytes,
        /// `--reserve`.
        reserve: Bytes,
        /// `--margin`.
        margin: Bytes,
    },
    /// NVML could not be opened or did not answer.
    #[error("{what}: {reason}")]
    Nvml {
        /// What was asked for.
        what: String,
        /// Why there is no answer.
        reason: String,
        /// There is no NVIDIA GPU or driver, rather than a broken one.
        absent: bool,
    },
    /// The library of the virtual GPU is not where it should be.
    #[error("the virtual GPU's library is not at `{}`", path.display())]
    VirtualGpuMissing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The folder of a virtual GPU could not be written.
    #[error("cannot lay out the virtual GPU's folder: {source}")]
    VirtualGpuFolder {
        /// The operating system's reason.
        source: io::Error,
    },

    // The worker.
    /// There is no worker to start.
    #[error("the worker is not at `{}`", path.display())]
    WorkerMissing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The worker could not be started.
    #[error("cannot start `{}`: {source}", path.display())]
    WorkerStart {
        /// The worker's executable.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The worker speaks another version of the protocol.
    #[error("the worker `{}` speaks protocol {found}, expected {expected}", path.display())]
    WorkerProtocol {
        /// The worker's executable.
        path: PathBuf,
        /// What it speaks.
        found: u32,
        /// What this program speaks.
        expected: u32,
    },
    /// The worker is of another release.
    #[error("the worker `{}` is of version {found}, expected {expected}", path.display())]
    WorkerVersion {
        /// The worker's executable.
        path: PathBuf,
        /// Its version.
        found: String,
        /// This program's version.
        expected: &'static str,
    },
    /// The worker would not work.
    #[error("the worker refused: {message}")]
    WorkerRefused {
        /// Its reason.
        message: String,
    },
    /// The worker ended by signal 9, which nobody here had sent.
    #[error("the worker was killed {at}, most likely by the kernel for lack of host memory")]
    WorkerKilled {
        /// Where it was, e.g. `at micro-batch 8`.
        at: String,
    },
    /// The worker ended by another signal.
    #[error("the worker ended with signal {signal} {at}{}", last_line(last))]
    WorkerSignal {
        /// The signal's number.
        signal: i32,
        /// Where it was.
        at: String,
        /// The last line on its stderr.
        last: Option<String>,
    },
    /// The worker ended by itself without a reply.
    #[error("the worker ended with status {code} {at}{}", last_line(last))]
    WorkerEnded {
        /// Its exit status.
        code: i32,
        /// Where it was.
        at: String,
        /// The last line on its stderr.
        last: Option<String>,
    },
    /// The worker said something that is no reply, or a reply to something else.
    #[error("the worker answered `{line}` {at}, which is no reply to the request")]
    WorkerRubbish {
        /// The beginning of what it said.
        line: String,
        /// Where it was.
        at: String,
    },
    /// The worker gave no answer in time.
    #[error("the worker gave no answer within {seconds} s {at}")]
    WorkerHung {
        /// The limit.
        seconds: u64,
        /// Where it was.
        at: String,
    },
    /// Not one point could be measured.
    #[error("nothing could be measured: {reason}")]
    NothingMeasured {
        /// What became of the last point.
        reason: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,

    // Files.
    /// A file could not be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A file that should be a plan is none.
    #[error("`{}` is no plan: {reason}", path.display())]
    PlanMalformed {
        /// The file.
        path: PathBuf,
        /// Where and why reading stopped.
        reason: String,
    },
    /// A plan of another version.
    #[error("`{}` is of plan version {found}, expected {expected}", path.display())]
    PlanVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The version that this program writes.
        expected: u32,
    },
    /// A plan without a recommendation cannot be checked.
    #[error("`{}` recommends nothing to check", path.display())]
    PlanWithoutChoice {
        /// The file.
        path: PathBuf,
    },

    // What is asked for.
    /// A count that must be at least 1.
    #[error("`{flag} 0` asks for nothing")]
    Zero {
        /// The flag.
        flag: &'static str,
    },
    /// The target batch cannot be shared out.
    #[error("a target batch of {target} is not divisible by a world size of {world_size}")]
    NotDivisible {
        /// `--target-batch`.
        target: u32,
        /// `--world-size`.
        world_size: u32,
    },
    /// A sequence that the model cannot take.
    #[error("a sequence of {asked} is longer than `{model}` can take, {longest}")]
    SequenceTooLong {
        /// `--seq`.
        asked: u32,
        /// The model's name.
        model: String,
        /// Its longest sequence.
        longest: u32,
    },
    /// A sequence for a model that has none.
    #[error("`{model}` takes no sequences, but `--seq {asked}` was given")]
    NoSequence {
        /// `--seq`.
        asked: u32,
        /// The model's name.
        model: String,
    },
    /// A precision that the card's hardware lacks.
    #[error("`{gpu}` has compute capability {capability} and no {precision} in hardware")]
    NoPrecision {
        /// The card's name.
        gpu: String,
        /// Its compute capability.
        capability: String,
        /// What was asked for.
        precision: &'static str,
    },
    /// A flag is missing.
    #[error("`{command}` needs {what}")]
    Missing {
        /// The command.
        command: &'static str,
        /// The flag or flags.
        what: &'static str,
    },
    /// A program could not be started.
    #[error("cannot start `{program}`: {source}")]
    ProgramStart {
        /// As it was typed.
        program: String,
        /// The operating system's reason.
        source: io::Error,
    },
}

/// How the last line of a child's stderr is quoted.
fn last_line(last: &Option<String>) -> String {
    last.as_ref().map_or_else(String::new, |line| format!("; the last line it wrote: {line}"))
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
            ErrorKind::NoBudget { .. }
            | ErrorKind::PlanMalformed { .. }
            | ErrorKind::PlanVersion { .. }
            | ErrorKind::PlanWithoutChoice { .. }
            | ErrorKind::Unreadable { .. }
            | ErrorKind::Zero { .. }
            | ErrorKind::NotDivisible { .. }
            | ErrorKind::SequenceTooLong { .. }
            | ErrorKind::NoSequence { .. }
            | ErrorKind::NoPrecision { .. }
            | ErrorKind::Missing { .. } => ExitStatus::BadInput,
            ErrorKind::Nvml { .. }
            | ErrorKind::VirtualGpuMissing { .. }
            | ErrorKind::VirtualGpuFolder { .. }
            | ErrorKind::WorkerMissing { .. }
            | ErrorKind::WorkerStart { .. }
            | ErrorKind::WorkerProtocol { .. }
            | ErrorKind::WorkerVersion { .. }
            | ErrorKind::WorkerRefused { .. }
            | ErrorKind::WorkerKilled { .. }
            | ErrorKind::WorkerSignal { .. }
            | ErrorKind::WorkerEnded { .. }
            | ErrorKind::WorkerRubbish { .. }
            | ErrorKind::WorkerHung { .. }
            | ErrorKind::NothingMeasured { .. }
            | ErrorKind::Interrupted
            | ErrorKind::Unwritable { .. }
            | ErrorKind::ProgramStart { .. } => ExitStatus::Failed,
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
