use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::device::remove_folders;

/// What is listened to.
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The user's wish to stop, and the children that must not outlive it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    children: Arc<Mutex<Vec<Pid>>>,
}

impl Interrupt {
    /// Listens to Ctrl-C, SIGTERM and SIGHUP. The first asks to stop, the second ends the program at
    /// once, as shells count it.
    pub fn install() -> Self {
        let interrupt = Self::default();
        if interrupt.listen().is_err() {
            // Without a thread to listen in, each signal asks to stop, and no more. That only SIGKILL
            // and the like cannot be listened to makes failure impossible here.
            for signal in SIGNALS {
                let _ = flag::register(signal, Arc::clone(&interrupt.asked));
            }
        }
        interrupt
    }

    fn listen(&self) -> io::Result<()> {
        let heard = self.clone();
        let mut signals = Signals::new(SIGNALS)?;
        let listen = move || {
            for signal in signals.forever() {
                if heard.asked.swap(true, Ordering::SeqCst) {
                    heard.kill_children();
                    remove_folders();
                    std::process::exit(128 + signal);
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen).map(drop)
    }

    /// Whether the user asked to stop.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Asks to stop, as Ctrl-C does.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
    }

    pub(super) fn add_child(&self, group: Pid) {
        self.children.lock().unwrap_or_else(PoisonError::into_inner).push(group);
    }

    pub(super) fn remove_child(&self, group: Pid) {
        self.children
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|child| *child != group);
    }

    fn kill_children(&self) {
        for group in self.children.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // It may have ended by itself just now.
            let _ = kill_process_group(*group, Signal::KILL);
        }
    }
}
