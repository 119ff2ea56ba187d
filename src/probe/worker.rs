//! A worker as a child process: starting it, talking to it, and reading how it ended.

use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::Interrupt;
use super::lines::{LastLines, next_line};
use super::protocol::{Hello, PROTOCOL, Reply, Request, Unusable};
use crate::error::{Error, ErrorKind, harmless_lines, one_line, shorten};
use crate::measurement::Outcome;

/// How often a wait looks whether the user wants to stop.
const TICK: Duration = Duration::from_millis(20);
/// How long a worker that has said its last may take to end.
const GRACE: Duration = Duration::from_secs(5);
/// Lines of its stderr that are kept.
const KEPT_LINES: usize = 20;

/// Of them shown with a failure of the user's code.
const SHOWN_LINES: usize = 5;

/// How a worker is started.
pub(super) struct Start {
    /// Without its environment and pipes.
    pub(super) command: Command,
    /// What it is at until it is ready, e.g. "while importing `train.py`".
    pub(super) doing: String,
    /// How long that may take.
    pub(super) timeout: Duration,
    /// Hears each line of its standard error.
    pub(super) listener: Option<fn(&str)>,
}

/// A running worker that has said it is ready. Dropping it ends it, and whatever it started.
pub(super) struct Worker {
    child: Child,
    group: Option<Pid>,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: LastLines,
    stderr_thread: Option<JoinHandle<()>>,
    is_heard: bool,
    interrupt: Interrupt,
    hello: Hello,
}

impl Worker {
    /// Starts a worker and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be started, is of another version or protocol, does not get ready in time, or
    /// the user asked to stop.
    pub(super) fn start(
        start: Start,
        environment: &[(OsString, OsString)],
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let Start { mut command, doing, timeout, listener } = start;
        let program = PathBuf::from(command.get_program());
        let path = || program.clone();
        let mut child = command
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: the terminal's Ctrl-C is ours to pass on, and what the worker
            // starts can be ended with it.
            .process_group(0)
            .spawn()
            .map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => ErrorKind::WorkerMissing { path: path() },
                _ => ErrorKind::WorkerStart { path: path(), source },
            })?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            interrupt.add_child(group);
        }
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        // Owned before anything else can fail: dropping it ends the child.
        let mut worker = Self {
            stdin: child.stdin.take(),
            lines: sync_channel(1).1,
            child,
            group,
            stderr: LastLines::default(),
            stderr_thread: None,
            is_heard: listener.is_some(),
            interrupt: interrupt.clone(),
            hello: Hello::default(),
        };
        let no_thread = |source| Error::new(ErrorKind::NoThread { source });
        if let Some(pipe) = stderr {
            let (lines, thread) =
                LastLines::read(pipe, KEPT_LINES, listener, "worker-stderr").map_err(no_thread)?;
            (worker.stderr, worker.stderr_thread) = (lines, Some(thread));
        }
        if let Some(pipe) = stdout {
            worker.lines = read_lines(pipe).map_err(no_thread)?;
        }
        match worker.receive(timeout, &doing)? {
            Reply::Ready(hello) if hello.protocol != PROTOCOL => {
                Err(ErrorKind::WorkerProtocol { found: hello.protocol, expected: PROTOCOL }.into())
            }
            Reply::Ready(hello) if hello.version != env!("CARGO_PKG_VERSION") => {
                Err(ErrorKind::WorkerVersion {
                    path: path(),
                    found: hello.version,
                    expected: env!("CARGO_PKG_VERSION"),
                }
                .into())
            }
            Reply::Ready(hello) => {
                worker.hello = hello;
                Ok(worker)
            }
            other => Err(worker.no_answer(other)),
        }
    }

    /// The failure that a reply means which is not the one asked for.
    pub(super) fn no_answer(&mut self, reply: Reply) -> Error {
        match reply {
            Reply::Refused { message } => ErrorKind::WorkerRefused { message }.into(),
            Reply::Unusable(unusable) => {
                let Unusable { message, hint, traceback, bad_input } = unusable;
                let error = Error::new(ErrorKind::Unusable { message, bad_input })
                    .detail(traceback)
                    .detail(self.printed());
                hint.into_iter().fold(error, Error::hint)
            }
            Reply::Ready(_) => rubbish("ready"),
            Reply::Built { .. } => rubbish("built"),
            Reply::Measured { .. } => rubbish("measured"),
            Reply::Surveyed { .. } => rubbish("surveyed"),
            Reply::Released => rubbish("released"),
        }
    }

    /// What it printed last before it ended, unless that was heard already.
    fn printed(&mut self) -> Option<String> {
        if self.is_heard {
            return None;
        }
        self.wait(GRACE);
        self.await_stderr();
        let lines = self.stderr.get();
        let last: Vec<_> = lines.iter().skip(lines.len().saturating_sub(SHOWN_LINES)).collect();
        let quoted = last.iter().map(|line| format!("\n  {}", shorten(line, 300)));
        (!last.is_empty()).then(|| format!("it printed last:{}", quoted.collect::<String>()))
    }

    /// What it said of itself.
    pub(super) fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Its process id as this machine sees it.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request and waits for the reply. After an error the worker is of no more use.
    ///
    /// # Errors
    /// When no reply comes in time, what comes is none, the worker ends, or the user asked to stop.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        timeout: Duration,
        doing: &str,
    ) -> Result<Reply, Error> {
        let sent = serde_json::to_string(request).map_err(io::Error::from).and_then(|line| {
            let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            writeln!(stdin, "{line}").and_then(|()| stdin.flush())
        });
        match sent {
            Ok(()) => self.receive(timeout, doing),
            // It has ended; how tells more than the broken pipe does.
            Err(_) => Err(self.how_it_ended(doing)),
        }
    }

    /// Asks the worker to end, and waits a little for it to write its run report.
    pub(super) fn quit(mut self) {
        if let (Some(stdin), Ok(line)) = (&mut self.stdin, serde_json::to_string(&Request::Quit)) {
            // If it has ended already, so much the better.
            let _ = writeln!(stdin, "{line}");
        }
        self.stdin = None;
        self.wait(GRACE);
    }

    fn receive(&mut self, timeout: Duration, doing: &str) -> Result<Reply, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            if self.interrupt.is_asked() {
                return Err(ErrorKind::Interrupted.into());
            }
            match self.lines.recv_timeout(TICK) {
                Ok(line) => {
                    let reply = serde_json::from_str(&line).map_err(|_| rubbish(&line))?;
                    return Ok(harmless(reply));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.how_it_ended(doing)),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                    let (seconds, doing) = (timeout.as_secs(), doing.to_owned());
                    return Err(ErrorKind::WorkerHung { seconds, doing }.into());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn how_it_ended(&mut self, doing: &str) -> Error {
        let doing = doing.to_owned();
        let Some(status) = self.wait(GRACE) else {
            return ErrorKind::WorkerHung { seconds: GRACE.as_secs(), doing }.into();
        };
        self.await_stderr();
        let last_line = self.last_line();
        match (status.signal(), status.code()) {
            (Some(signal), _) => ErrorKind::WorkerKilled { signal, doing, last_line }.into(),
            (None, code) => {
                let last_line =
                    last_line.unwrap_or_else(|| "it wrote nothing to its stderr".to_owned());
                ErrorKind::WorkerEnded { status: code.unwrap_or(-1), doing, last_line }.into()
            }
        }
    }

    /// Its stderr ends with it, unless it left children behind that hold it open.
    fn await_stderr(&self) {
        let deadline = Instant::now() + 10 * TICK;
        while !self.stderr_thread.as_ref().is_none_or(JoinHandle::is_finished)
            && Instant::now() < deadline
        {
            thread::sleep(TICK / 4);
        }
    }

    fn last_line(&self) -> Option<String> {
        let lines = self.stderr.get();
        let last = lines.iter().rev().find(|line| !line.trim().is_empty());
        last.map(|line| shorten(line, 300))
    }

    fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(TICK / 4),
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // Also when the worker has ended, for what it may have started. Process ids are given out
            // in ascending order, so this one has not gone to somebody else in so short a time.
            let _ = kill_process_group(group, Signal::KILL);
            self.interrupt.remove_child(group);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The reply with its texts, which end up on a terminal, as single harmless lines.
fn harmless(mut reply: Reply) -> Reply {
    match &mut reply {
        Reply::Ready(Hello { version, torch, cuda, cudnn, device, .. }) => {
            for text in [version, torch, cuda, cudnn, device] {
                *text = one_line(text);
            }
        }
        Reply::Measured { outcome: Outcome::Failed { message, traceback }, .. } => {
            *message = one_line(message);
            *traceback = traceback.as_deref().map(harmless_lines);
        }
        Reply::Refused { message }
        | Reply::Measured { outcome: Outcome::OutOfMemory { message }, .. } => {
            *message = one_line(message);
        }
        Reply::Unusable(Unusable { message, hint, traceback, .. }) => {
            *message = one_line(message);
            *hint = hint.as_deref().map(one_line);
            *traceback = traceback.as_deref().map(harmless_lines);
        }
        Reply::Surveyed { reason, .. } => *reason = reason.as_deref().map(one_line),
        Reply::Measured { .. } | Reply::Built { .. } | Reply::Released => {}
    }
    reply
}

fn rubbish(line: &str) -> Error {
    ErrorKind::WorkerRubbish { line: shorten(line, 60) }.into()
}

fn read_lines(pipe: impl Read + Send + 'static) -> io::Result<Receiver<String>> {
    let (sender, receiver) = sync_channel(4);
    let read = move || {
        let mut pipe = BufReader::new(pipe);
        while let Some(line) = next_line(&mut pipe) {
            if sender.send(line).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("worker-stdout".to_owned()).spawn(read)?;
    Ok(receiver)
}
