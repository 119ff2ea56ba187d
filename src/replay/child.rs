//! One replay: a Python child on a virtual GPU of its own.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::answer::{Answer, Reply};
use super::settings::Setting;
use super::{Card, Player};
use crate::device::{VirtualGpu, python_packages, read_run_reports};
use crate::error::{Error, ErrorKind, one_line, shorten};
use crate::snapshot::{Operation, Script};

/// Name of the package in Python.
const PACKAGE: &str = "vramfit_replay";
/// What the allocator is set by. PyTorch reads the second since 2.10, the third is AMD's.
const VARIABLES: [&str; 4] = [
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
];
/// How often it is looked whether it has ended.
const TICK: Duration = Duration::from_millis(10);
/// How long it may take: a million events take seconds.
const LIMIT: Duration = Duration::from_secs(600);

/// A script in files, for several replays.
pub(super) struct Files {
    folder: TempDir,
}

/// What came of a replay.
pub(super) enum Played {
    Through(Answer),
    /// The allocator, or the virtual GPU, does not take the setting.
    Refused {
        reason: String,
        bad_setting: bool,
    },
}

impl Files {
    pub(super) fn of(script: &Script) -> Result<Self, Error> {
        let write = || {
            let folder = tempfile::Builder::new().prefix("vramfit-replay-").tempdir()?;
            fs::write(folder.path().join("script"), encoded(script))?;
            Ok(Self { folder })
        };
        let unwritable = |source| ErrorKind::Unwritable { path: std::env::temp_dir(), source };
        write().map_err(unwritable).map_err(Error::from)
    }

    fn script(&self) -> std::path::PathBuf {
        self.folder.path().join("script")
    }
}

/// Four numbers an operation (`python/vramfit_replay/script.py`).
fn encoded(script: &Script) -> Vec<u8> {
    let numbers = script.operations.iter().flat_map(|operation| match *operation {
        Operation::Alloc { block, bytes, lane } => [0, u64::from(block), bytes, u64::from(lane)],
        Operation::Free { block } => [1, u64::from(block), 0, 0],
        Operation::EmptyCache => [2, 0, 0, 0],
        Operation::Begin => [3, 0, 0, 0],
    });
    numbers.flat_map(u64::to_le_bytes).collect()
}

impl Player {
    pub(super) fn play(
        &self,
        card: &Card,
        setting: &Setting,
        script: &Script,
        files: &Files,
    ) -> Result<Played, Error> {
        let gpu = VirtualGpu::with_budget(card.profile(), card.budget(), 1)?;
        let failed = |reason: String| Error::new(ErrorKind::ReplayFailed { reason });
        let talk = Talk::in_folder(gpu.folder(), setting, script)
            .map_err(|source| failed(source.to_string()))?;
        let status = self.run(&gpu, setting, &files.script(), &talk)?;
        match serde_json::from_slice(&talk.said()) {
            Ok(Reply::Answer(answer)) => Ok(Played::Through(answer)),
            Ok(Reply::Refusal(refusal)) => {
                let missing = read_run_reports(gpu.folder()).not_implemented;
                let reason = match missing.as_slice() {
                    [] => one_line(&refusal.refused),
                    names => format!("the virtual GPU does not support {}", names.join(", ")),
                };
                Ok(Played::Refused { reason, bad_setting: refusal.bad_setting })
            }
            Err(_) => Err(failed(talk.complaint(status))),
        }
    }

    fn run(
        &self,
        gpu: &VirtualGpu,
        setting: &Setting,
        script: &Path,
        talk: &Talk,
    ) -> Result<ExitStatus, Error> {
        let mut command = Command::new(&self.python);
        command
            .arg(python_packages(gpu.folder()).join(PACKAGE))
            .arg(script)
            .envs(gpu.environment())
            .stdin(talk.open("asked"))
            .stdout(talk.create("said"))
            .stderr(talk.create("complained"));
        for variable in VARIABLES {
            command.env_remove(variable);
        }
        if !setting.conf.is_empty() {
            command.env(VARIABLES[0], &setting.conf);
        }
        let child = command.spawn().map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                Error::new(ErrorKind::PythonMissing { path: self.python.clone() })
            }
            _ => ErrorKind::WorkerStart { path: self.python.clone(), source }.into(),
        })?;
        self.wait(child)
    }

    fn wait(&self, mut child: Child) -> Result<ExitStatus, Error> {
        let begun = Instant::now();
        let error = loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if self.interrupt.is_asked() => break ErrorKind::Interrupted,
                Ok(None) if begun.elapsed() >= LIMIT => {
                    let reason = format!("no answer within {} s", LIMIT.as_secs());
                    break ErrorKind::ReplayFailed { reason };
                }
                Ok(None) => thread::sleep(TICK),
                Err(source) => break ErrorKind::ReplayFailed { reason: source.to_string() },
            }
        };
        // It may have ended by itself just now.
        let _ = child.kill();
        let _ = child.wait();
        Err(error.into())
    }
}

/// What is said to and by a child, in files, so that nobody waits for a pipe.
struct Talk<'a> {
    folder: &'a Path,
}

impl<'a> Talk<'a> {
    fn in_folder(folder: &'a Path, setting: &Setting, script: &Script) -> std::io::Result<Self> {
        let lanes = script.lanes.iter().map(
            |lane| json!({"stream": lane.stream, "pool": lane.pool.map(|(one, two)| [one, two])}),
        );
        let asked = json!({
            "lanes": lanes.collect::<Vec<_>>(),
            "memory_fraction": setting.memory_fraction,
        });
        fs::write(folder.join("asked"), asked.to_string())?;
        Ok(Self { folder })
    }

    fn open(&self, name: &str) -> Stdio {
        File::open(self.folder.join(name)).map_or_else(|_| Stdio::null(), Stdio::from)
    }

    fn create(&self, name: &str) -> Stdio {
        File::create(self.folder.join(name)).map_or_else(|_| Stdio::null(), Stdio::from)
    }

    fn said(&self) -> Vec<u8> {
        fs::read(self.folder.join("said")).unwrap_or_default()
    }

    /// Why there is no answer: the last line of what it complained of.
    fn complaint(&self, status: ExitStatus) -> String {
        let text = fs::read(self.folder.join("complained")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        line.map_or_else(|| status.to_string(), |line| shorten(line, 200))
    }
}
