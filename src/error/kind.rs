use std::io;
use std::path::PathBuf;

use crate::units::Bytes;

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
    /// A flag's value that cannot be used.
    #[error("`{flag} {value}`: {reason}")]
    BadValue {
        /// The flag, dashes included.
        flag: String,
        /// What was typed after it.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A placeholder of a command that cannot be understood.
    #[error("`{placeholder}` {reason}")]
    BadPlaceholder {
        /// As it was typed, with its braces.
        placeholder: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A command that leaves nothing to set.
    #[error("`{command}` does not say where the micro-batch goes")]
    NothingToVary {
        /// The command, shortened.
        command: String,
    },
    /// `--` without anything after it, as from a shell's variable that is empty.
    #[error("no command follows `--`")]
    NoCommand,
    /// A word of a command that JSON cannot hold.
    #[error("`{word}` in the command is not UTF-8")]
    NotUtf8 {
        /// As near as it can be shown.
        word: String,
    },
    /// A command that takes a sequence, and none is given.
    #[error("`{command}` takes `{{seq}}`, and no sequence is given")]
    SequenceUnsaid {
        /// The command, shortened.
        command: String,
    },
    /// A command of several ranks on a real card.
    #[error("a command of {ranks} ranks cannot be planned for on the GPU of this machine")]
    SeveralRealGpus {
        /// Processes that it starts.
        ranks: u32,
    },
    /// A profile that is broken.
    #[error("`{}`{}: {reason}", path.display(), line.map(|n| format!(" line {n}")).unwrap_or_default())]
    BadProfile {
        /// The file.
        path: PathBuf,
        /// Where in it, counted from 1, when that is known.
        line: Option<usize>,
        /// What is wrong there.
        reason: String,
    },
    /// A batch that the GPUs cannot share evenly.
    #[error("a target batch of {target} does not divide by a world size of {world_size}")]
    UnevenTarget {
        /// Samples in one optimizer step over all GPUs.
        target: u32,
        /// GPUs.
        world_size: u32,
    },
    /// A batch beyond anything that is searched.
    #[error("a target batch of {target} is {per_gpu} samples on one GPU, more than {most}")]
    TargetTooLarge {
        /// Samples in one optimizer step over all GPUs.
        target: u32,
        /// Of which each GPU goes through so many.
        per_gpu: u32,
        /// The most that can be asked for.
        most: u32,
    },
    /// A sequence that the model cannot take.
    #[error("a sequence of {sequence} tokens is longer than the {longest} of `{model}`")]
    SequenceTooLong {
        /// The model.
        model: String,
        /// Tokens asked for.
        sequence: u32,
        /// Tokens the model takes at most.
        longest: u32,
    },
    /// No sequence for a model that needs one.
    #[error("`{model}` needs a sequence of at least one token")]
    SequenceMissing {
        /// The model.
        model: String,
    },
    /// A sequence given to a model that has none.
    #[error("`{model}` has no sequences, so `--seq {sequence}` has no meaning")]
    NoSequences {
        /// The model.
        model: String,
        /// Tokens asked for.
        sequence: u32,
    },
    /// A precision that the card has no hardware for.
    #[error("`{gpu}` has no {precision} in hardware (compute capability {capability}, needs 8.0)")]
    NoHardware {
        /// `bf16` or `tf32`.
        precision: &'static str,
        /// The card.
        gpu: String,
        /// Its compute capability.
        capability: String,
    },
    /// A file that cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A file that cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A script that is no Python 3.
    #[error("{place}: {reason}")]
    BrokenScript {
        /// File, line and column.
        place: String,
        /// What the parser stumbled over.
        reason: String,
    },
    /// A file that is no notebook of Python.
    #[error("`{}` is no notebook that can be read: {reason}", path.display())]
    BrokenNotebook {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder without anything to lint.
    #[error("`{}` has neither scripts nor notebooks in it", path.display())]
    NoScripts {
        /// The folder.
        path: PathBuf,
    },
    /// A plan file that is cut off or no plan.
    #[error("`{}` is not a whole plan: {reason}", path.display())]
    BrokenPlan {
        /// The file.
        path: PathBuf,
        /// Where and why reading stopped.
        reason: String,
    },
    /// A plan file of another version.
    #[error("`{}` is a plan of version {found}; this vramfit reads version {expected}", path.display())]
    PlanVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The version that can be read.
        expected: u32,
    },
    /// A file that is no recording of a watched run.
    #[error("`{}` is no recording of `vramfit watch`, line {line}: {reason}", path.display())]
    BrokenRecording {
        /// The file.
        path: PathBuf,
        /// Where in it, counted from 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A file that is no snapshot of an allocator with a trace in it.
    #[error("`{}` is not a memory snapshot that can be replayed: {reason}", path.display())]
    BrokenSnapshot {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A trace that no answer came of.
    #[error("the trace could not be replayed: {reason}")]
    ReplayFailed {
        /// Why.
        reason: String,
    },
    /// A small training that no answer came of.
    #[error("the training ended without an answer: {reason}")]
    EquivalenceFailed {
        /// Why.
        reason: String,
    },
    /// A file that is not to be overwritten.
    #[error("`{}` is in the way: {reason}", path.display())]
    InTheWay {
        /// The file.
        path: PathBuf,
        /// What it is.
        reason: String,
    },
    /// No worker to measure with.
    #[error("no worker at `{}`", path.display())]
    WorkerMissing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A worker that ended by a signal.
    #[error(
        "the worker was killed by signal {signal} {doing}{}{}",
        likely_cause(*signal),
        last_line.as_deref().map(|line| format!(": {line}")).unwrap_or_default()
    )]
    WorkerKilled {
        /// The signal.
        signal: i32,
        /// What it was at, e.g. `at micro-batch 8`.
        doing: String,
        /// The last line it wrote to its standard error, if it wrote any.
        last_line: Option<String>,
    },
    /// A worker that ended by itself without an answer.
    #[error("the worker ended with status {status} {doing}: {last_line}")]
    WorkerEnded {
        /// Its exit status.
        status: i32,
        /// What it was at, e.g. `at micro-batch 8`.
        doing: String,
        /// The last line it wrote to its standard error.
        last_line: String,
    },
    /// A worker that did not answer in time.
    #[error("the worker gave no answer within {seconds} s {doing}")]
    WorkerHung {
        /// How long was waited.
        seconds: u64,
        /// What it was at, e.g. `at micro-batch 8`.
        doing: String,
    },
    /// A worker that answered something that is no reply.
    #[error("the worker answered `{line}`, which is no reply")]
    WorkerRubbish {
        /// What it said, shortened.
        line: String,
    },
    /// A worker that cannot do what was asked.
    #[error("the worker refused: {message}")]
    WorkerRefused {
        /// Its own words.
        message: String,
    },
    /// A user's function that cannot be measured.
    #[error("{message}")]
    Unusable {
        /// The worker's words.
        message: String,
        /// What was asked for is not there, rather than broken.
        bad_input: bool,
    },
    /// A worker that ended or hung while the user's code ran.
    #[error("{reason}")]
    UsersCode {
        /// What became of the worker, and what the code was at.
        reason: String,
    },
    /// No Python to run the user's function.
    #[error("no Python at `{}`", path.display())]
    PythonMissing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A worker of another protocol.
    #[error("the worker speaks protocol {found}; this vramfit speaks {expected}")]
    WorkerProtocol {
        /// The worker's.
        found: u32,
        /// Ours.
        expected: u32,
    },
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
    /// A real GPU is needed.
    #[error("there is no NVIDIA GPU in this machine")]
    NoRealGpu,
    /// Nothing to watch a program on.
    #[error("there is no NVIDIA GPU in this machine to watch a program on")]
    NothingToWatch,
    /// A flag that describes a virtual GPU, given for a real one.
    #[error("`{flag}` is of virtual GPUs alone, and the program runs on a real one")]
    FlagOfVirtualGpu {
        /// The flag, dashes included.
        flag: &'static str,
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
    /// A library that is not the virtual GPU's.
    #[error("`{}` is not the virtual GPU's library", path.display())]
    NotTheVirtualGpu {
        /// The file that was named.
        path: PathBuf,
    },
    /// The folder of a virtual GPU could not be written.
    #[error("cannot lay out the virtual GPU's folder: {source}")]
    VirtualGpuFolder {
        /// The operating system's reason.
        source: io::Error,
    },
    /// A temporary folder that the dynamic linker cannot be told of.
    #[error("the temporary folder `{}` has a space, a colon or the like in its path", path.display())]
    TemporaryFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The working directory is gone.
    #[error("the working directory does not exist any more")]
    NoWorkingDirectory,
    /// The worker could not be started.
    #[error("cannot start `{}`: {source}", path.display())]
    WorkerStart {
        /// The worker's executable.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The operating system gave no thread.
    #[error("cannot start a thread: {source}")]
    NoThread {
        /// The operating system's reason.
        source: io::Error,
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
    /// Not one point could be measured.
    #[error("nothing could be measured: {reason}")]
    NothingMeasured {
        /// What became of the last point.
        reason: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A plan without a recommendation cannot be checked or exported.
    #[error("`{}` recommends nothing to {purpose}", path.display())]
    PlanWithoutChoice {
        /// The file.
        path: PathBuf,
        /// `check` or `export`.
        purpose: &'static str,
    },
    /// A plan of a command has nothing to hand over.
    #[error("`{}` is a plan of a command, which applies it by itself", path.display())]
    PlanOfCommand {
        /// The file.
        path: PathBuf,
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

/// What most likely ended a child by this signal, where that is no riddle.
fn likely_cause(signal: i32) -> &'static str {
    match signal {
        9 => ", most likely by the kernel for lack of host memory",
        _ => "",
    }
}
