use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::finding::{Fault, Finding, find};
use super::history::History;
use super::hooks::Hooks;
use super::meter::Meter;
use super::record::RecordFile;
use super::recording::{Entry, Event, Recording, Watched};
use crate::error::{Error, ErrorKind};

/// Share of the time that is spent on watching.
const SHARE: u32 = 100;
/// The longer a program runs, the rarer it is looked at: so large a share of its time lies between two
/// readings, but never more than [`RAREST`].
const INTERVAL_SHARE: u32 = 2000;
/// Between two readings, unless more is asked for.
const RAREST: Duration = Duration::from_secs(1);
/// Between two looks for findings while the program runs.
const FINDING_INTERVAL: Duration = Duration::from_secs(5);
/// Who is so sure is told of at once.
const SURE: f64 = 0.8;

/// What is needed for watching a program.
pub struct Setup {
    /// What is watched.
    pub watched: Watched,
    /// What reads NVML.
    pub meter: Meter,
    /// What the program's Python processes write to.
    pub hooks: Hooks,
    /// What is written as it comes.
    pub record: Option<RecordFile>,
    /// Between two readings.
    pub interval: Duration,
}

/// What is told while the program runs.
#[derive(Debug)]
pub enum Told<'a> {
    /// What was found and is sure, once each.
    Found(&'a Finding),
    /// The recording cannot be written any further.
    RecordLost(&'a Error),
}

/// A program that is watched, from a thread of its own.
#[derive(Debug)]
pub struct Watching {
    messages: Sender<Message>,
    thread: Option<JoinHandle<Recording>>,
}

#[derive(Debug)]
enum Message {
    Started(u32),
    Ended(Option<ExitStatus>),
}

impl Watching {
    /// Begins, before the program is started.
    ///
    /// # Errors
    /// When the record cannot be written, or no thread can be started.
    pub fn begin(setup: Setup, tell: impl Fn(Told<'_>) + Send + 'static) -> Result<Self, Error> {
        let (messages, received) = channel();
        let mut watcher = Watcher::new(setup, tell)?;
        let thread = thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watcher.run(&received))
            .map_err(|source| ErrorKind::NoThread { source })?;
        Ok(Self { messages, thread: Some(thread) })
    }

    /// The program has been started and has this process id.
    pub fn started(&self, pid: u32) {
        // A thread that is gone has said why.
        let _ = self.messages.send(Message::Started(pid));
    }

    /// The program has ended. What was seen; nothing if watching failed.
    pub fn end(mut self, status: ExitStatus) -> Option<Recording> {
        self.stop(Some(status))
    }

    fn stop(&mut self, status: Option<ExitStatus>) -> Option<Recording> {
        let _ = self.messages.send(Message::Ended(status));
        // A panic in the thread has said its say on stderr.
        self.thread.take()?.join().ok()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.stop(None);
    }
}

/// What the thread has.
struct Watcher<T> {
    meter: Meter,
    hooks: Hooks,
    record: Option<RecordFile>,
    interval: Duration,
    history: History,
    tell: T,
    program: Option<u32>,
    announced: BTreeSet<(Fault, Option<u32>)>,
    look_next: Instant,
}

impl<T: Fn(Told<'_>)> Watcher<T> {
    fn new(setup: Setup, tell: T) -> Result<Self, Error> {
        let Setup { watched, meter, hooks, mut record, interval } = setup;
        if let Some(record) = &mut record {
            record.append(&[Entry { at: 0.0, event: Event::Watched(watched.clone()) }])?;
        }
        Ok(Self {
            meter,
            hooks,
            record,
            interval,
            history: History::new(watched),
            tell,
            program: None,
            announced: BTreeSet::new(),
            look_next: Instant::now() + FINDING_INTERVAL,
        })
    }

    fn run(&mut self, messages: &Receiver<Message>) -> Recording {
        let begun = Instant::now();
        loop {
            let reading = Instant::now();
            self.read(None);
            let cost = reading.elapsed();
            self.look();
            let slow = (begun.elapsed() / INTERVAL_SHARE).min(RAREST);
            let next =
                reading + self.interval.max(slow).max(cost.saturating_mul(SHARE).min(RAREST));
            loop {
                match messages.recv_timeout(next.saturating_duration_since(Instant::now())) {
                    Ok(Message::Started(pid)) => self.program = Some(pid),
                    Ok(Message::Ended(status)) => {
                        self.read(status);
                        return self.history.take();
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    // Whoever would have told is gone.
                    Err(RecvTimeoutError::Disconnected) => return self.history.take(),
                }
            }
        }
    }

    /// Takes in what is new; after the program's end, that as well.
    fn read(&mut self, ended: Option<ExitStatus>) {
        let now = self.hooks.now();
        let readings = self.meter.read(self.program).into_iter();
        let mut entries: Vec<_> =
            readings.map(|it| Entry { at: now, event: Event::Reading(it) }).collect();
        entries.extend(self.hooks.read());
        entries.sort_by(|a, b| a.at.total_cmp(&b.at));
        if let Some(status) = ended {
            let event = Event::Ended { status: status.code(), signal: status.signal() };
            entries.push(Entry { at: self.hooks.now(), event });
        }
        if let Some(Err(error)) = self.record.as_mut().map(|record| record.append(&entries)) {
            self.record = None;
            (self.tell)(Told::RecordLost(&error));
        }
        for entry in entries {
            self.history.add(entry);
        }
    }

    /// Tells of what has become sure.
    fn look(&mut self) {
        let now = Instant::now();
        if now < self.look_next {
            return;
        }
        for finding in find(self.history.recording()) {
            if finding.confidence >= SURE && self.announced.insert((finding.fault, finding.pid)) {
                (self.tell)(Told::Found(&finding));
            }
        }
        self.look_next = Instant::now() + FINDING_INTERVAL.max(now.elapsed().saturating_mul(SHARE));
    }
}
