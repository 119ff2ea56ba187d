//! How much this process held over time, thinned to a bounded number of points.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Instant;

use vramfit_vgpu_schema::TimelinePoint;

use crate::activity;

/// At some hundred bytes of JSON a point, the report stays below 300 kB.
const MOST: usize = 2048;

struct Timeline {
    start: Instant,
    points: Vec<TimelinePoint>,
    /// Each kept point stands for this many changes.
    stride: usize,
    /// Highest change since the last kept point, and how many there were.
    pending: Option<(TimelinePoint, usize)>,
}

static TIMELINE: LazyLock<Mutex<Timeline>> = LazyLock::new(|| {
    Mutex::new(Timeline { start: Instant::now(), points: Vec::new(), stride: 1, pending: None })
});

/// Notes that this process now holds `used` bytes on device `ordinal`.
pub(crate) fn note(ordinal: usize, used: u64) {
    let mut timeline = TIMELINE.lock().unwrap_or_else(PoisonError::into_inner);
    let point = TimelinePoint {
        device: ordinal as u32,
        seconds: timeline.start.elapsed().as_secs_f64(),
        launches: activity::launches(),
        used_bytes: used,
    };
    timeline.push(point);
}

/// The points kept, oldest first.
pub(crate) fn points() -> Vec<TimelinePoint> {
    let timeline = TIMELINE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut points = timeline.points.clone();
    points.extend(timeline.pending.as_ref().map(|(point, _)| point.clone()));
    points
}

impl Timeline {
    fn push(&mut self, point: TimelinePoint) {
        let (kept, count) = match self.pending.take() {
            Some((held, count)) => (higher(held, point), count + 1),
            None => (point, 1),
        };
        if count < self.stride {
            self.pending = Some((kept, count));
            return;
        }
        self.points.push(kept);
        if self.points.len() >= MOST {
            self.points = std::mem::take(&mut self.points)
                .chunks(2)
                .map(|pair| pair.iter().cloned().reduce(higher))
                .collect::<Option<_>>()
                .unwrap_or_default();
            self.stride *= 2;
        }
    }
}

fn higher(first: TimelinePoint, second: TimelinePoint) -> TimelinePoint {
    if second.used_bytes > first.used_bytes { second } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_peak_and_bounds_the_points() {
        let mut timeline =
            Timeline { start: Instant::now(), points: Vec::new(), stride: 1, pending: None };
        let peak_at = 77_777;
        for change in 0..100_000u64 {
            let used_bytes = if change == peak_at { 1 << 40 } else { change % 1000 };
            timeline.push(TimelinePoint {
                device: 0,
                seconds: change as f64,
                launches: change,
                used_bytes,
            });
        }
        assert!(timeline.points.len() < MOST);
        assert!(timeline.points.iter().any(|point| point.used_bytes == 1 << 40));
        assert!(timeline.points.is_sorted_by(|a, b| a.launches < b.launches));
    }
}
