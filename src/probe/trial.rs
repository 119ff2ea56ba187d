//! One run of a user's command: started, watched, and ended once enough was seen.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::Interrupt;
use super::lines::LastLines;
use super::progress::{self, Progress};
use crate::device::{descendants, started_with};
use crate::error::{Error, ErrorKind};

/// How often it is looked how far the command is.
const TICK: Duration = Duration::from_millis(20);
/// How long pipes may stay open when the command has ended, by what it left behind.
const GRACE: Duration = Duration::from_millis(500);
/// Lines of its output that are kept: the tracebacks of a few ranks.
const KEPT_LINES: usize = 400;

/// What is run, and how.
pub(super) struct Start<'a> {
    /// Program and arguments.
    pub(super) words: &'a [String],
    pub(super) folder: &'a Path,
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Where its processes say how far they are.
    pub(super) progress: &'a Path,
    /// Processes that train, where that is known.
    pub(super) ranks: Option<u32>,
    pub(super) timeout: Duration,
    /// Hears each line that it writes.
    pub(super) listener: Option<fn(&str)>,
}

/// How a command came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its processes had seen their steps, and were ended.
    Settled,
    /// It ended by itself.
    Exited(ExitStatus),
    /// It took too long, and was ended.
    TimedOut,
}

/// What is known of a command that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) end: End,
    pub(super) progress: Vec<Progress>,
    /// Last lines of its standard error, then of its standard output.
    pub(super) stderr: Vec<String>,
    pub(super) stdout: Vec<String>,
}

/// A running command. Dropping it ends it, and whatever it started.
pub(super) struct Trial {
    child: Child,
    group: Option<Pid>,
    interrupt: Interrupt,
    deadline: Instant,
    progress: PathBuf,
    ranks: Option<u32>,
    stderr: LastLines,
    stdout: LastLines,
    threads: Vec<JoinHandle<()>>,
    has_ended: bool,
}

impl Trial {
    /// Starts the command.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(start: Start<'_>, interrupt: &Interrupt) -> Result<Self, Error> {
        let unstarted = |source: io::Error| {
            let program = start.words.first().cloned().unwrap_or_default();
            Error::new(ErrorKind::ProgramStart { program, source })
        };
        let (program, arguments) =
            start.words.split_first().ok_or_else(|| unstarted(io::ErrorKind::NotFound.into()))?;
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(start.folder)
            .envs(start.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: the terminal's Ctrl-C is ours to pass on, and what it starts can
            // be ended with it.
            .process_group(0)
            .spawn()
            .map_err(unstarted)?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            interrupt.add_child(group);
        }
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        // Owned before anything else can fail: dropping it ends the child.
        let mut trial = Self {
            child,
            group,
            interrupt: interrupt.clone(),
            deadline: Instant::now() + start.timeout,
            progress: start.progress.to_path_buf(),
            ranks: start.ranks,
            stderr: LastLines::default(),
            stdout: LastLines::default(),
            threads: Vec::new(),
            has_ended: false,
        };
        let no_thread = |source| Error::new(ErrorKind::NoThread { source });
        if let Some(pipe) = stderr {
            let (lines, thread) =
                LastLines::read(pipe, KEPT_LINES, start.listener, "stderr").map_err(no_thread)?;
            trial.stderr = lines;
            trial.threads.push(thread);
        }
        if let Some(pipe) = stdout {
            let (lines, thread) =
                LastLines::read(pipe, KEPT_LINES, start.listener, "stdout").map_err(no_thread)?;
            trial.stdout = lines;
            trial.threads.push(thread);
        }
        Ok(trial)
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended or enough was seen; then it is ended.
    ///
    /// # Errors
    /// When the user asked to stop.
    pub(super) fn watch(mut self) -> Result<Ended, Error> {
        let end = loop {
            if self.interrupt.is_asked() {
                return Err(ErrorKind::Interrupted.into());
            }
            // First: what it told before its end is then all there.
            let told = progress::read(&self.progress);
            match self.child.try_wait() {
                Ok(Some(status)) => break End::Exited(status),
                Ok(None) | Err(_) if progress::all_wait(&told, self.ranks) => break End::Settled,
                Ok(None) | Err(_) if Instant::now() >= self.deadline => break End::TimedOut,
                Ok(None) | Err(_) => thread::sleep(TICK),
            }
        };
        self.end();
        self.await_output();
        Ok(Ended {
            end,
            progress: progress::read(&self.progress),
            stderr: self.stderr.get(),
            stdout: self.stdout.get(),
        })
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        if let Some(group) = self.group.take() {
            // A launcher's children (those of `torchrun`) are in sessions of their own.
            let launched = descendants(self.child.id());
            // Also when it has ended, for what it may have started. Process ids are given out in
            // ascending order, so this one has not gone to somebody else in so short a time.
            let _ = kill_process_group(group, Signal::KILL);
            kill_all(&launched);
            self.interrupt.remove_child(group);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.sweep();
    }

    /// Ends what left the group and has no parent any more: daemons.
    fn sweep(&self) {
        let deadline = Instant::now() + GRACE;
        loop {
            let left = started_with(progress::FOLDER, self.progress.as_os_str());
            if left.is_empty() || Instant::now() >= deadline {
                return;
            }
            kill_all(&left);
            thread::sleep(TICK / 4);
        }
    }

    fn await_output(&self) {
        let deadline = Instant::now() + GRACE;
        while !self.threads.iter().all(JoinHandle::is_finished) && Instant::now() < deadline {
            thread::sleep(TICK / 4);
        }
    }
}

fn kill_all(pids: &[u32]) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
        // It may have ended by itself just now.
        let _ = kill_process(pid, Signal::KILL);
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.end();
    }
}
