//! The host's clock: how far the program has come.
//!
//! One clock for the process. It runs with the real one while the program and PyTorch are at work, that
//! time scaled by [`Efficiency::host_factor`]; it stands still while this library is ([`pause`]), since a
//! real driver does something else in that time: [`Efficiency::host_launch_seconds`] for each launch. Where
//! the host waits for the device the clock jumps to the end of the wait, and nobody sleeps.
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

thread_local! {
    /// How many pauses of this thread are open, and when the outermost began.
    static OPEN: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
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
    let (open, begun) = OPEN.get();
    OPEN.set(if open == 0 { (1, real()) } else { (open + 1, begun) });
}

/// Ends the calling thread's last pause, if there is one.
pub(crate) fn end_pause() {
    let (open, begun) = OPEN.get();
    match open {
        0 => {}
        1 => {
            OPEN.set((0, 0));
            HOST.end_pause(begun, real());
        }
        _ => OPEN.set((open - 1, begun)),
    }
}

/// Real time; within a pause, of its begin.
fn counted() -> u64 {
    match OPEN.get() {
        (0, _) => real(),
        (_, begun) => begun,
    }
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
    fn a_wait_moves_the_clock_to_its_end_and_never_back() {
        let host = Host::new();
        host.wait(5000, 1000, 1.0);
        assert_eq!((host.now(1000, 1.0), host.dispatch(1000, 1.0)), (5000, 1000));
        host.wait(4000, 1000, 1.0);
        assert_eq!(host.now(1100, 1.0), 5100);
    }
}
