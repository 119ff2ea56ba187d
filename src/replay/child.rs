//! Replays, by Python children on virtual GPUs of their own.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answer::{Answer, Outcome, Reply};
use super::files::Files;
use super::{Card, Player};
use crate::device::{RunReports, VirtualGpu, python_packages, read_run_reports};
use crate::error::{Error, ErrorKind, last_line, one_line, shorten};
use crate::probe::{end_group, not_started};

/// Name of the package in Python.
const PACKAGE: &str = "vramfit_replay";
/// What the allocator is set by. PyTorch reads the second since 2.10, the third is AMD's.
const VARIABLES: [&str; 4] = [
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
];
/// How often it is looked whether a child has ended.
const TICK: Duration = Duration::from_millis(10);
/// How long a job may take: a million events take seconds.
const LIMIT: Duration = Duration::from_secs(600);

/// A script, and a setting to replay it with.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) conf: &'a str,
    pub(super) memory_fraction: Option<f64>,
    pub(super) files: &'a Files,
}

/// What came of a job.
pub(super) enum Played {
    Through(Answer),
    /// The allocator, or the virtual GPU, does not take the setting.
    Refused {
        reason: String,
        bad_setting: bool,
    },
}

impl Player {
    /// Does jobs, one after the other. Another allocator is chosen when PyTorch is loaded, so such a
    /// job must be alone.
    pub(super) fn play(&self, card: &Card, jobs: &[Job<'_>]) -> Result<Vec<Played>, Error> {
        let gpu = VirtualGpu::with_budget(card.profile(), card.budget(), 1)?;
        let folder = gpu.folder();
        let status = self.run(&gpu, jobs)?;
        let reports = read_run_reports(folder);
        let played = (0..jobs.len()).map(|index| {
            let said = fs::read(folder.join(answer(index))).unwrap_or_default();
            match serde_json::from_slice(&said) {
                Ok(reply) => Ok(played(reply, &reports)),
                Err(_) => Err(failed(complaint(folder, status))),
            }
        });
        played.collect()
    }

    fn run(&self, gpu: &VirtualGpu, jobs: &[Job<'_>]) -> Result<ExitStatus, Error> {
        let folder = gpu.folder();
        let (asked, complained) =
            prepared(folder, jobs).map_err(|source| failed(source.to_string()))?;
        let mut command = Command::new(&self.python);
        command
            .arg(python_packages(folder).join(PACKAGE))
            .envs(gpu.environment())
            .stdin(asked)
            .stdout(Stdio::null())
            .stderr(complained)
            // Its forks are ended with it.
            .process_group(0);
        for variable in VARIABLES {
            command.env_remove(variable);
        }
        if let [job] = jobs {
            command.env(VARIABLES[0], job.conf);
        }
        let child = command.spawn().map_err(|source| not_started(&self.python, source))?;
        self.wait(child, LIMIT * u32::try_from(jobs.len()).unwrap_or(u32::MAX))
    }

    fn wait(&self, mut child: Child, limit: Duration) -> Result<ExitStatus, Error> {
        let begun = Instant::now();
        let error = loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if self.interrupt.is_asked() => break ErrorKind::Interrupted.into(),
                Ok(None) if begun.elapsed() >= limit => {
                    break failed(format!("no answer within {} s", limit.as_secs()));
                }
                Ok(None) => thread::sleep(TICK),
                Err(source) => break failed(source.to_string()),
            }
        };
        end_group(&child);
        let _ = child.wait();
        Err(error)
    }
}

/// What is said to and by a child goes through files, so that nobody waits for a pipe.
fn prepared(folder: &Path, jobs: &[Job<'_>]) -> io::Result<(File, File)> {
    let jobs: Vec<_> =
        jobs.iter().enumerate().map(|(index, job)| described(folder, index, job)).collect();
    fs::write(folder.join("jobs"), Value::from(jobs).to_string())?;
    Ok((File::open(folder.join("jobs"))?, File::create(folder.join("complaints"))?))
}

fn described(folder: &Path, index: usize, job: &Job<'_>) -> Value {
    json!({
        "conf": job.conf,
        "memory_fraction": job.memory_fraction,
        "script": job.files.script(),
        "lanes": job.files.lanes(),
        "answer": folder.join(answer(index)),
    })
}

fn answer(index: usize) -> String {
    format!("answer-{index}")
}

fn played(reply: Reply, reports: &RunReports) -> Played {
    match reply.outcome {
        Outcome::Answer(answer) => Played::Through(answer),
        Outcome::Refusal(refusal) => {
            let report = reports.reports.iter().find(|report| report.pid == reply.pid);
            let missing = report.map_or_else(Vec::new, |report| report.not_implemented.clone());
            let reason = match missing.as_slice() {
                [] => one_line(&refusal.refused),
                names => format!("the virtual GPU does not support {}", names.join(", ")),
            };
            Played::Refused { reason, bad_setting: refusal.bad_setting }
        }
    }
}

fn failed(reason: String) -> Error {
    ErrorKind::ReplayFailed { reason }.into()
}

/// Why there is no answer: the last line of what was complained of.
fn complaint(folder: &Path, status: ExitStatus) -> String {
    let text = fs::read(folder.join("complaints")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    last_line(&text).map_or_else(|| status.to_string(), |line| shorten(line, 200))
}
