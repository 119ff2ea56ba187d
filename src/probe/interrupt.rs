use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

/// Exit status after a second Ctrl-C: the shell's own for a program ended by SIGINT.
const STATUS_OF_SIGINT: i32 = 130;

/// The user's wish to stop, and the children that must not outlive it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    children: Arc<Mutex<Vec<Pid>>>,
}

impl Interrupt {
    /// Listens to Ctrl-C and SIGTERM. The first asks to stop, the second ends the program at once.
    /// Where another listener is installed already (it can only be one of ours) nothing changes.
    pub fn install() -> Self {
        let interrupt = Self::default();
        let heard = interrupt.clone();
        // The only error left after choosing to be the first listener is that there is one.
        let _ = ctrlc::set_handler(move || {
            if heard.asked.swap(true, Ordering::SeqCst) {
                heard.kill_children();
                std::process::exit(STATUS_OF_SIGINT);
            }
        });
        interrupt
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
