//! Waiting for a command that runs in our place: what we are told to do, it is told.

use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How often it is looked whether the command has ended, or a signal has come.
const TICK: Duration = Duration::from_millis(10);
/// How long the command may take to end after it was told for the second time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the command to its end; `started` is told its process id. SIGINT, SIGTERM and SIGHUP are
/// passed on; who is told twice and goes on is killed.
///
/// # Errors
/// When the command cannot be started.
pub(super) fn status(command: &mut Command, started: impl FnOnce(u32)) -> io::Result<ExitStatus> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    // At a terminal it stays in our group, or it could not read what is typed.
    let own_group = !io::stdin().is_terminal();
    if own_group {
        command.process_group(0);
    }
    let child = command.spawn()?;
    started(child.id());
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut waiting = Waiting { child, pid, own_group, told: 0, deadline: None };
    loop {
        if let Some(status) = waiting.child.try_wait()? {
            waiting.sweep();
            return Ok(status);
        }
        for signal in signals.pending() {
            waiting.tell(signal);
        }
        if waiting.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            waiting.send(Signal::KILL);
        }
        thread::sleep(TICK);
    }
}

struct Waiting {
    child: Child,
    pid: Option<Pid>,
    own_group: bool,
    told: u32,
    deadline: Option<Instant>,
}

impl Waiting {
    fn tell(&mut self, signal: i32) {
        self.told += 1;
        if self.told == 2 {
            self.deadline = Some(Instant::now() + PATIENCE);
        }
        match signal {
            // The terminal sends these to the whole group: twice would be once too often.
            SIGINT | SIGHUP if !self.own_group && in_foreground() => {}
            SIGINT => self.send(Signal::INT),
            SIGHUP => self.send(Signal::HUP),
            _ => self.send(Signal::TERM),
        }
    }

    /// The process is not waited for yet, so that its id is still its own.
    fn send(&self, signal: Signal) {
        // It may have ended by itself just now.
        let _ = match self.pid {
            Some(pid) if self.own_group => kill_process_group(pid, signal),
            Some(pid) => kill_process(pid, signal),
            None => Ok(()),
        };
    }

    /// Ends what a command that was told to stop has left behind.
    fn sweep(&self) {
        if self.own_group && self.told > 0 {
            self.send(Signal::KILL);
        }
    }
}

fn in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}
