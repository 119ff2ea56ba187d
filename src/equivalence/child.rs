//! The child in Python that trains.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answer::Answer;
use crate::device::{VirtualGpu, lay_out_python, python_packages};
use crate::error::{Error, ErrorKind, harmless_lines, last_line, one_line, shorten};
use crate::probe::{Interrupt, end_group, not_started};

/// Name of the package in Python.
const PACKAGE: &str = "vramfit_equivalence";
/// How often it is looked whether the user wants to stop.
const TICK: Duration = Duration::from_millis(50);

/// What is asked of it.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// On what.
    pub device: Device,
    /// Which of the built-in things.
    pub parts: Vec<Part>,
    /// Optimizer steps of the training.
    pub steps: u32,
    /// What everything random is drawn from.
    pub seed: u64,
    /// Threads of the CPU to compute with.
    pub threads: usize,
    /// The user's own function.
    pub own: Option<Own>,
}

/// What to train on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// A real GPU if PyTorch finds one, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// A real GPU.
    Gpu,
    /// A virtual one, which computes nothing.
    Virtual,
}

/// Something built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Gradients of the built-in cases.
    Gradients,
    /// The built-in training.
    Training,
    /// The training's memory, on a GPU.
    Peaks,
}

/// A user's function, and how its batch is taken apart.
#[derive(Clone, Debug, Serialize)]
pub struct Own {
    /// The file, from the root.
    pub file: PathBuf,
    /// Name of the function.
    pub function: String,
    /// Samples of the full batch.
    pub target_batch: u32,
    /// Samples of a micro-batch.
    pub micro_batch: u32,
    /// Passed on to the function.
    pub sequence: Option<u32>,
}

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// `gradients` or `training`.
    pub part: String,
    /// Cases or steps that are done.
    pub done: u64,
    /// Of so many.
    pub of: u64,
}

/// A line that it writes.
#[derive(Debug, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
enum Reply {
    Progress(Progress),
    Answer { answer: Box<Answer> },
    Unusable { message: String, hint: Option<String>, traceback: Option<String>, bad_input: bool },
}

/// Where it runs.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// With the GPUs of this machine.
    Here,
    /// On a virtual GPU.
    Virtual(&'a VirtualGpu),
}

/// Who trains.
#[derive(Clone, Debug)]
pub struct Student {
    /// A Python with PyTorch.
    pub python: PathBuf,
    /// Ends it.
    pub interrupt: Interrupt,
}

impl Student {
    /// Has a request done.
    ///
    /// # Errors
    /// When Python or PyTorch is not there, the user's function cannot be used, the child fails, or the
    /// user asked to stop.
    pub fn ask(
        &self,
        request: &Request,
        place: Place<'_>,
        hear: &mut dyn FnMut(&Progress),
    ) -> Result<Answer, Error> {
        let own = tempfile::Builder::new().prefix("vramfit-equivalence-").tempdir();
        let own = own.map_err(|source| ErrorKind::Unwritable { path: env::temp_dir(), source })?;
        let folder = match place {
            Place::Virtual(gpu) => gpu.folder(),
            Place::Here => {
                lay_out_python(own.path())
                    .map_err(|source| ErrorKind::Unwritable { path: env::temp_dir(), source })?;
                own.path()
            }
        };
        let complaints = own.path().join("complaints");
        let mut command = Command::new(&self.python);
        command.arg(python_packages(folder).join(PACKAGE));
        if let Place::Virtual(gpu) = place {
            command.envs(gpu.environment());
        }
        let child = self.start(&mut command, request, &complaints)?;
        self.listen(child, &complaints, hear)
    }

    fn start(
        &self,
        command: &mut Command,
        request: &Request,
        complaints: &Path,
    ) -> Result<Child, Error> {
        let failed = |source: io::Error| failed(source.to_string());
        let complained = File::create(complaints).map_err(failed)?;
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complained)
            // What it starts is ended with it.
            .process_group(0)
            .spawn();
        let mut child = spawned.map_err(|source| not_started(&self.python, source))?;
        if let Some(mut stdin) = child.stdin.take() {
            let text = serde_json::to_string(request).map_err(|error| failed(error.into()))?;
            // A child that is gone already tells why by what it wrote.
            let _ = writeln!(stdin, "{text}");
        }
        Ok(child)
    }

    fn listen(
        &self,
        mut child: Child,
        complaints: &Path,
        hear: &mut dyn FnMut(&Progress),
    ) -> Result<Answer, Error> {
        let answered = match child.stdout.take().map(lines) {
            Some(Ok(lines)) => self.replies(&lines, hear),
            Some(Err(source)) => Err(ErrorKind::NoThread { source }.into()),
            None => Ok(None),
        };
        if !matches!(answered, Ok(None)) {
            end_group(&child);
        }
        let status = child.wait();
        answered?.ok_or_else(|| {
            let text = fs::read(complaints).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            failed(match (last_line(&text), status) {
                (Some(line), _) => shorten(line, 200),
                (None, Ok(status)) => status.to_string(),
                (None, Err(error)) => error.to_string(),
            })
        })
    }

    /// The answer; none where it ended without one.
    fn replies(
        &self,
        lines: &Receiver<String>,
        hear: &mut dyn FnMut(&Progress),
    ) -> Result<Option<Answer>, Error> {
        loop {
            let line = match lines.recv_timeout(TICK) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) if self.interrupt.is_asked() => {
                    return Err(ErrorKind::Interrupted.into());
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            };
            match serde_json::from_str(&line) {
                Ok(Reply::Progress(progress)) => hear(&progress),
                Ok(Reply::Answer { answer }) => return Ok(Some(*answer)),
                Ok(Reply::Unusable { message, hint, traceback, bad_input }) => {
                    let message = one_line(&message);
                    let error = Error::new(ErrorKind::Unusable { message, bad_input })
                        .detail(traceback.map(|text| harmless_lines(&text)));
                    return Err(match hint {
                        Some(hint) => error.hint(hint),
                        None => error,
                    });
                }
                Err(_) => return Err(ErrorKind::WorkerRubbish { line: shorten(&line, 80) }.into()),
            }
        }
    }
}

/// What it writes, line by line, read in a thread so that nobody waits for it in vain.
fn lines(pipe: impl io::Read + Send + 'static) -> io::Result<Receiver<String>> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("equivalence".to_owned()).spawn(read)?;
    Ok(receiver)
}

fn failed(reason: String) -> Error {
    ErrorKind::EquivalenceFailed { reason }.into()
}
