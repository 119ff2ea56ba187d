//! What only one work at a time can have to itself: a device's multiprocessors, a link.

use std::collections::VecDeque;

use super::Moment;

/// Gaps that are kept; of more the earliest are forgotten, so that a launch costs the same however many
/// streams there are.
const MOST_GAPS: usize = 32;

/// Taken until `free`, but for some gaps.
///
/// Work is given in another order than it begins in: a stream waits for an event while another one, which
/// the host comes to later, could go on. So whatever is left free by what was given before may be taken, in
/// pieces as well, and no moment twice: works on several streams together are no faster than on one.
#[derive(Debug, Default)]
pub(super) struct Resource {
    free: Moment,
    /// In their order.
    gaps: VecDeque<(Moment, Moment)>,
}

impl Resource {
    /// Takes it from `start` on for so many nanoseconds in all; when they begin and end. Nothing that is
    /// given from now on starts before `now`.
    pub(super) fn take(
        &mut self,
        now: Moment,
        start: Moment,
        nanoseconds: u64,
    ) -> (Moment, Moment) {
        while self.gaps.front().is_some_and(|(_, to)| *to <= now) {
            self.gaps.pop_front();
        }
        let (mut begun, mut left) = (None, nanoseconds);
        let mut at = 0;
        while let Some((from, to)) = self.gaps.get(at).copied() {
            let first = from.max(start);
            if first >= to {
                at += 1;
                continue;
            }
            let last = to.min(first + left);
            begun = begun.or(Some(first));
            left -= last - first;
            self.gaps.remove(at);
            for rest in [(last, to), (from, first)].into_iter().filter(|(from, to)| from < to) {
                self.gaps.insert(at, rest);
            }
            if left == 0 {
                return (begun.unwrap_or(first), last);
            }
            at += usize::from(from < first);
        }
        let first = self.free.max(start);
        let gap = self.free.max(now);
        if gap < first {
            if self.gaps.len() == MOST_GAPS {
                self.gaps.pop_front();
            }
            self.gaps.push_back((gap, first));
        }
        self.free = first + left;
        (begun.unwrap_or(first), self.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_take_turns_in_the_order_in_which_they_are_given() {
        let mut resource = Resource::default();
        assert_eq!(resource.take(0, 0, 10), (0, 10));
        assert_eq!(resource.take(0, 10, 10), (10, 20));
        assert_eq!(resource.take(0, 0, 10), (20, 30), "of another stream");
        assert_eq!(resource.take(50, 50, 10), (50, 60));
        assert!(resource.gaps.is_empty(), "what the host has passed is over");
    }

    #[test]
    fn what_is_left_free_is_taken_in_pieces_and_once() {
        let mut resource = Resource::default();
        assert_eq!(resource.take(0, 100, 10), (100, 110));
        assert_eq!(resource.take(0, 200, 10), (200, 210));
        assert_eq!(resource.take(0, 20, 30), (20, 50));
        assert_eq!(resource.take(0, 10, 100), (10, 150), "10 to 20, 50 to 100 and 110 to 150");
        assert_eq!(resource.take(0, 0, 70), (0, 220), "0 to 10, 150 to 200 and what comes last");
        assert_eq!(resource.take(0, 0, 5), (220, 225));
    }

    #[test]
    fn gaps_are_bounded() {
        let mut resource = Resource::default();
        (0..1000).for_each(|n| {
            resource.take(0, 10 * n + 5, 5);
        });
        assert_eq!(resource.gaps.len(), MOST_GAPS);
    }
}
