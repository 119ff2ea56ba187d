//! How long a thread could have run while the system ran others.
//!
//! Linux counts that for each thread, in nanoseconds, as the second number of `/proc/thread-self/schedstat`
//! (`Documentation/scheduler/sched-stats.rst`). To read it takes several microseconds, so that it is read
//! only after [`GAP`] of real time: who was kept from running has such a gap. What is waited in threads that
//! never come here (those of an operator on the host, workers of a data loader) is not known.

use std::fs::File;
use std::io::Read as _;

/// Nanoseconds between two looks at the clock from which on something may have been waited in between;
/// below it, waits are left for the next reading. Linux gives another thread some milliseconds at a time.
const GAP: u64 = 500_000;

/// What one thread knows of its waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// Real time of the last look at the clock; none before the first.
    looked: Option<u64>,
    /// What the system counted at the last reading.
    waited: Option<u64>,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { looked: None, waited: None }
    }

    /// Nanoseconds that were waited since the last reading, as far as they fit between the last look at the
    /// clock and this one, at real time `now`; `read` tells what the system counts.
    pub(super) fn waited(&mut self, now: u64, read: impl FnOnce() -> Option<u64>) -> u64 {
        let looked = self.looked.replace(now);
        let gap = looked.map(|looked| now.saturating_sub(looked));
        if gap.is_some_and(|gap| gap < GAP) {
            return 0;
        }
        let before = self.waited;
        self.waited = read();
        match (before, self.waited, gap) {
            (Some(before), Some(after), Some(gap)) => after.saturating_sub(before).min(gap),
            _ => 0,
        }
    }
}

/// What the system counts for the calling thread; none where it does not. The file is opened each time: a
/// descriptor that is kept would be another thread's after a fork, and whose the program likes after it
/// closed all that it does not know.
pub(super) fn wait() -> Option<u64> {
    let mut text = [0; 64];
    let count = File::open("/proc/thread-self/schedstat").ok()?.read(&mut text).ok()?;
    second_number(&text[..count])
}

fn second_number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_waited_shows_after_a_gap_and_no_longer_than_that() {
        let mut queue = Queue::new();
        assert_eq!(queue.waited(0, || Some(7_000_000)), 0, "what came before is not known");
        assert_eq!(queue.waited(GAP / 2, || panic!("it was read after no gap")), 0);
        assert_eq!(queue.waited(GAP / 2 + 10 * GAP, || Some(7_000_000 + GAP)), GAP);
        assert_eq!(queue.waited(GAP / 2 + 20 * GAP, || Some(7_000_000 + GAP)), 0, "a sleep");
        // Many short waits that no gap showed are not more than the gap that did.
        assert_eq!(queue.waited(GAP / 2 + 21 * GAP, || Some(7_000_000 + 9 * GAP)), GAP);
    }

    #[test]
    fn a_system_that_does_not_count_takes_nothing_off() {
        let mut queue = Queue::new();
        assert_eq!(queue.waited(0, || None), 0);
        assert_eq!(queue.waited(10 * GAP, || None), 0);
        assert_eq!(queue.waited(20 * GAP, || Some(5 * GAP)), 0, "since when is not known");
        assert_eq!(queue.waited(30 * GAP, || None), 0);
    }

    #[test]
    fn the_second_number_is_what_was_waited() {
        assert_eq!(second_number(b"73810 150433 12\n"), Some(150_433));
        assert_eq!(second_number(b""), None);
        assert_eq!(second_number(b"73810"), None);
    }
}
