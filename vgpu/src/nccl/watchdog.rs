//! The thread with which PyTorch watches its collectives, and waiting for it.
//!
//! PyTorch keeps the tensors of an asynchronous collective alive until a thread of its own, which looks
//! every 100 ms, has seen that the collective is done. On a GPU a training step takes longer than that,
//! so what one step held is free in the next. Here a step takes a few milliseconds, and what is kept
//! would pile up: gradient buckets that DDP has replaced would count as much as a fifth of the peak,
//! and as chance has it.
//!
//! So where a program waits for the device, it waits for that thread too; and since a real queue of
//! launches is finite, no program gets further ahead of that thread than such a queue is long.
//!
//! A collective is known by the event recorded behind it, and seen when another thread queries it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crate::activity;
use crate::clock::host;

/// Launches that CUDA queues before it makes the host wait.
const QUEUE: u64 = 1024;
/// Twice PyTorch's interval (`kWatchdogThreadSleepMillis`, 100 ms) and something for a busy host.
const LONGEST_WAIT: Duration = Duration::from_millis(400);
/// A program where so many waits in a row were in vain has no such thread.
const MOST_IN_VAIN: u32 = 3;
/// After its query the thread still has to let go of the tensors.
const AFTER_QUERY: Duration = Duration::from_millis(2);

/// A collective that nobody has seen to be done.
struct Unseen {
    by: ThreadId,
    launches: u64,
}

/// By the event recorded behind it.
static UNSEEN: Mutex<BTreeMap<usize, Unseen>> = Mutex::new(BTreeMap::new());
static SEEN: Condvar = Condvar::new();
/// Waits in a row after which nobody had looked.
static IN_VAIN: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Stream of this thread's last collective, until an event is recorded behind it.
    static UNMARKED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Notes that this thread has queued a collective on `stream`.
pub(super) fn queued(stream: usize) {
    UNMARKED.set(Some(stream));
    wait_for(|launches| launches + QUEUE < activity::launches());
}

/// Notes that `event` was recorded on `stream`.
pub(crate) fn recorded(event: usize, stream: usize) {
    if UNMARKED.get() == Some(stream) {
        UNMARKED.set(None);
        let entry = Unseen { by: std::thread::current().id(), launches: activity::launches() };
        UNSEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(event, entry);
    }
}

/// Notes that this thread has asked for the state of `event`.
pub(crate) fn queried(event: usize) {
    let mut unseen = UNSEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if unseen.get(&event).is_some_and(|it| it.by != std::thread::current().id()) {
        unseen.remove(&event);
        IN_VAIN.store(0, Ordering::Relaxed);
        SEEN.notify_all();
    }
}

/// Notes that `event` is no more: so is the collective that it stood for.
pub(crate) fn destroyed(event: usize) {
    UNSEEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&event);
    SEEN.notify_all();
}

/// The calling thread waits for the device, and so until all collectives so far were seen.
pub(crate) fn synchronize() {
    wait_for(|_| true);
}

/// Waits while a collective, queued at a number of launches that `matters`, is
/// unseen.
fn wait_for(matters: impl Fn(u64) -> bool) {
    if IN_VAIN.load(Ordering::Relaxed) >= MOST_IN_VAIN {
        return;
    }
    let _pause = host::pause();
    let start = Instant::now();
    let mut unseen = UNSEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut waited = false;
    while unseen.values().any(|it| matters(it.launches)) {
        waited = true;
        let Some(rest) = LONGEST_WAIT.checked_sub(start.elapsed()) else {
            IN_VAIN.fetch_add(1, Ordering::Relaxed);
            return;
        };
        unseen = SEEN.wait_timeout(unseen, rest).unwrap_or_else(PoisonError::into_inner).0;
    }
    drop(unseen);
    if waited {
        std::thread::sleep(AFTER_QUERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since the state is one to a process.
    #[test]
    fn who_waits_for_the_device_waits_until_another_thread_has_looked() {
        recorded(1, 7);
        synchronize();
        assert!(UNSEEN.lock().unwrap().is_empty(), "no collective was queued before the event");

        queued(7);
        recorded(1, 8);
        recorded(2, 7);
        queried(2);
        assert_eq!(UNSEEN.lock().unwrap().len(), 1, "the thread itself does not count");
        let looker = std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            queried(2);
        });
        let start = Instant::now();
        synchronize();
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert_eq!(IN_VAIN.load(Ordering::Relaxed), 0);
        looker.join().unwrap();

        queued(7);
        recorded(3, 7);
        (0..MOST_IN_VAIN).for_each(|_| synchronize());
        assert_eq!(IN_VAIN.load(Ordering::Relaxed), MOST_IN_VAIN, "nobody came");
        let start = Instant::now();
        synchronize();
        assert!(start.elapsed() < LONGEST_WAIT / 2, "and nobody is waited for again");
    }
}
