//! The host's clock: how far the program has come.
//!
//! One clock for the process. It runs with the real one while the program and PyTorch are at work, that
//! time scaled by [`Efficiency::host_factor`]; it stands still while this library is ([`pause`]), since a
//! real driver does something else in that time: [`Efficiency::host_launch_seconds`] for each launch. Where
//! the host waits for the device the clock jumps to the end of the wait, and nobody sleeps.
//!
//! Nor does the time count in which a thread of the program could have run and the system ran others ([`queue`]):
//! a busy machine says nothing of how fast PyTorch dispatches. It is taken for a pause that ends where it is
//! noticed. What the program itself waits for (sleep, input) counts.
//!
//! Threads of a program wait for each other more than they work side by side (the main thread for
//! autograd's, all of them for Python's lock), so that a pause of one counts for all. Of a pause the part
//! before another thread's last one does not: that thread was at work meanwhile, and the clock ran.
//!
//! [`Efficiency::host_factor`]: vramfit_vgpu_cost::Efficiency::host_factor
//! [`Efficiency::host_launch_seconds`]: vramfit_vgpu_cost::Efficiency::host_launch_seconds

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::Moment;
use super::queue::{self, Queue};
use crate::device;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);
static HOST: Host = Host::new();

/// The clock, in nanoseconds. `now` is real time, since the process first came here.
struct Host {
    /// Real time that does not count, and where the last pause ended.
    paused: AtomicU64,
    last_pause_end: AtomicU64,
    /// Virtual time of all launches, and of all waits.
    launching: AtomicU64,
    waiting: AtomicU64,
}

impl Host {
    const fn new() -> Self {
        let (paused, last_pause_end) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { paused, last_pause_end, launching: AtomicU64::new(0), waiting: AtomicU64::new(0) }
    }

    /// A pause ends that a thread had `begun`.
    fn end_pause(&self, begun: u64, now: u64) {
        let before = self.last_pause_end.fetch_max(now, Ordering::Relaxed);
        self.paused.fetch_add(now.saturating_sub(begun.max(before)), Ordering::Relaxed);
    }

    fn dispatch(&self, now: u64, factor: f64) -> u64 {
        let counted = now.saturating_sub(self.paused.load(Ordering::Relaxed));
        (counted as f64 * factor) as u64 + self.launching.load(Ordering::Relaxed)
    }

    fn now(&self, now: u64, factor: f64) -> Moment {
        self.dispatch(now, factor) + self.waiting.load(Ordering::Relaxed)
    }

    fn wait(&self, moment: Moment, now: u64, factor: f64) {
        self.waiting.fetch_add(moment.saturating_sub(self.now(now, factor)), Ordering::Relaxed);
    }
}

/// How a thread stands to the clock.
#[derive(Clone, Copy)]
struct Thread {
    /// How many of its pauses are open, and when the outermost began.
    open: u32,
    begun: u64,
    queue: Queue,
}

thread_local! {
    static THREAD: Cell<Thread> =
        const { Cell::new(Thread { open: 0, begun: 0, queue: Queue::new() }) };
}

/// Real nanoseconds since the process first came here.
fn real() -> u64 {
    START.elapsed().as_nanos() as u64
}

/// Of the first device: one machine has one host.
fn factor() -> f64 {
    static FACTOR: LazyLock<f64> = LazyLock::new(|| {
        let device = device::machine().and_then(|machine| machine.device(0));
        device.map_or(1.0, |device| device.speed.efficiency.host_factor)
    });
    *FACTOR
}

/// While it lives, the calling thread's time does not count as the program's.
#[must_use]
pub(crate) struct Pause(());

/// Stops the clock until the answer is dropped.
pub(crate) fn pause() -> Pause {
    begin_pause();
    Pause(())
}

impl Drop for Pause {
    fn drop(&mut self) {
        end_pause();
    }
}

/// As [`pause`], for who cannot hold a value.
pub(crate) fn begin_pause() {
    let mut thread = THREAD.get();
    if thread.open == 0 {
        thread.begun = real();
        let waited = thread.queue.waited(thread.begun, queue::wait);
        if waited > 0 {
            HOST.end_pause(thread.begun - waited, thread.begun);
        }
    }
    thread.open += 1;
    THREAD.set(thread);
}

/// Ends the calling thread's last pause, if there is one.
pub(crate) fn end_pause() {
    let mut thread = THREAD.get();
    match thread.open {
        0 => return,
        1 => {
            // What was waited in the pause is part of it.
            thread.queue.waited(real(), queue::wait);
            HOST.end_pause(thread.begun, real());
        }
        _ => {}
    }
    thread.open -= 1;
    THREAD.set(thread);
}

/// Real time at which the calling thread's last pause began. Who asks outside one makes one of no length, so
/// that what it waited in the queue is taken off first and the clock is never seen to go back.
fn counted() -> u64 {
    let _pause = pause();
    THREAD.get().begun
}

/// Nanoseconds that the program and PyTorch have been at work, launches included.
pub(super) fn dispatch() -> u64 {
    HOST.dispatch(counted(), factor())
}

/// How far the host is.
pub(super) fn now() -> Moment {
    HOST.now(counted(), factor())
}

/// The driver keeps the host for a launch.
pub(super) fn launches(nanoseconds: u64) {
    HOST.launching.fetch_add(nanoseconds, Ordering::Relaxed);
}

/// The host waits for `moment`. Two threads must not do so at the same time.
pub(super) fn wait(moment: Moment) {
    HOST.wait(moment, counted(), factor());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_do_not_count_and_what_does_is_scaled() {
        let host = Host::new();
        host.end_pause(100, 400);
        assert_eq!(host.now(1000, 1.0), 700);
        assert_eq!(host.now(1000, 0.5), 350);
        host.launching.fetch_add(5, Ordering::Relaxed);
        assert_eq!((host.now(1000, 0.5), host.dispatch(1000, 0.5)), (355, 355));
    }

    #[test]
    fn of_pauses_side_by_side_what_lies_before_another_ones_end_counts() {
        let host = Host::new();
        host.end_pause(200, 300);
        // Of another thread, which waited for all that time while this one was at work.
        host.end_pause(100, 400);
        assert_eq!(host.now(1000, 1.0), 800);
        host.end_pause(350, 380);
        assert_eq!(host.now(1000, 1.0), 800, "it is within the last");
    }

    #[test]
    fn what_was_waited_in_the_queue_is_a_pause_that_ends_now() {
        let host = Host::new();
        let mut queue = Queue::new();
        let noticed = 9_000_000;
        queue.waited(1_000_000, || Some(500));
        let waited = queue.waited(noticed, || Some(5_000_500));
        host.end_pause(noticed - waited, noticed);
        assert_eq!(host.now(noticed, 1.0), 4_000_000);
    }

    #[test]
    fn a_wait_moves_the_clock_to_its_end_and_never_back() {
        let host = Host::new();
        host.wait(5000, 1000, 1.0);
        assert_eq!((host.now(1000, 1.0), host.dispatch(1000, 1.0)), (5000, 1000));
        host.wait(4000, 1000, 1.0);
        assert_eq!(host.now(1100, 1.0), 5100);
    }
}
