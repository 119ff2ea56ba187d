//! A worker process and the requests that tests send it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use vramfit::measurement::{Outcome, Point, Ran, Setting};
use vramfit::probe::protocol::{Hello, Reply, Request};
use vramfit::profile::model::ModelProfile;
use vramfit::survey::Surveyed;
use vramfit::workload::{
    Checkpointing, Optimizer, OptimizerImplementation, Precision, Subject, Workload,
};

use crate::machine::Machine;

/// A worker that has said hello.
pub(crate) struct Worker {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
    pub(crate) hello: Hello,
}

impl Worker {
    /// On the CPU.
    pub(crate) fn on_cpu() -> Self {
        let mut command = Command::new(program());
        command.env("VRAMFIT_WORKER_DEVICE", "cpu");
        Self::start(command)
    }

    pub(crate) fn on(machine: &Machine) -> Self {
        Self::start(machine.command(Command::new(program())))
    }

    #[track_caller]
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let requests = child.stdin.take().unwrap();
        let mut replies = BufReader::new(child.stdout.take().unwrap());
        let hello = match read(&mut replies) {
            Some(Reply::Ready(hello)) => hello,
            other => panic!("a worker began with {other:?}"),
        };
        Self { child, requests, replies, hello }
    }

    /// Sends a line as it is; the next reply, if there is one.
    pub(crate) fn say(&mut self, line: &str) -> Option<Reply> {
        writeln!(self.requests, "{line}").unwrap();
        read(&mut self.replies)
    }

    #[track_caller]
    pub(crate) fn measure(&mut self, workload: &Workload, point: Point) -> Outcome {
        let request =
            Request::Measure { id: 42, workload: Box::new(workload.clone()), point, steps: 2 };
        match self.say(&serde_json::to_string(&request).unwrap()) {
            Some(Reply::Measured { id: 42, outcome, .. }) => outcome,
            other => panic!("a worker replied {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn ran(&mut self, workload: &Workload, point: Point) -> Ran {
        match self.measure(workload, point) {
            Outcome::Ran(ran) => ran,
            other => panic!("`{}` {other:?}", workload.subject.name()),
        }
    }

    #[track_caller]
    pub(crate) fn survey(&mut self, workload: &Workload, point: Point) -> Surveyed {
        let request = Request::Survey { id: 43, workload: Box::new(workload.clone()), point };
        match self.say(&serde_json::to_string(&request).unwrap()) {
            Some(Reply::Surveyed { id: 43, blocks, reason }) => reason.map_or(Ok(blocks), Err),
            other => panic!("a worker replied {other:?}"),
        }
    }

    /// The worker in Python, for a function of a file.
    pub(crate) fn of_function(machine: &Machine, file: &Path, name: &str) -> Self {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/vramfit_worker");
        let mut command = Command::new(python());
        command.arg(package).arg(file).arg(name).env("PYTHONDONTWRITEBYTECODE", "1");
        Self::start(machine.command(command))
    }

    /// Ends the worker's input and waits for its end.
    pub(crate) fn end(self) -> ExitStatus {
        let Self { mut child, requests, .. } = self;
        drop(requests);
        child.wait().unwrap()
    }
}

fn read(replies: &mut impl BufRead) -> Option<Reply> {
    let mut line = String::new();
    replies.read_line(&mut line).unwrap();
    (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
}

pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_vramfit-worker")
}

/// The Python whose PyTorch the worker is linked with.
pub(crate) fn python() -> OsString {
    std::env::var_os("VRAMFIT_PYTHON")
        .expect("VRAMFIT_PYTHON names no Python with PyTorch; run `make setup`")
}

/// Names of all model profiles.
pub(crate) fn models() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(profiles())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

fn profiles() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiles/models")
}

/// AdamW, foreach, no clipping.
pub(crate) fn workload(model: &str, sequence: u32) -> Workload {
    let text = std::fs::read_to_string(profiles().join(format!("{model}.toml"))).unwrap();
    let model: ModelProfile = toml::from_str(&text).unwrap();
    let sequence = model.architecture.max_sequence().map(|longest| sequence.min(longest));
    Workload {
        subject: Subject::BuiltIn(model),
        sequence,
        optimizer: Some(Optimizer::Adamw),
        optimizer_implementation: OptimizerImplementation::Foreach,
        gradient_clipping: None,
    }
}

pub(crate) fn point(
    precision: Precision,
    checkpointing: Checkpointing,
    micro_batch: u32,
    accumulation: u32,
) -> Point {
    let setting = Setting { precision, checkpointing };
    Point { setting, micro_batch, accumulation, remainder: None }
}
