//! How much this process held over time, thinned to a bounded number of points.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use vramfit_vgpu_schema::TimelinePoint;

use crate::{activity, device};

/// At some hundred bytes of JSON a point, the report stays below 300 kB.
const MOST: usize = 2048;

/// The points of one device.
struct Timeline {
    points: Vec<TimelinePoint>,
    /// Most points to keep.
    most: usize,
    /// Each kept point stands for this many changes.
    stride: usize,
    /// Highest change since the last kept point, and how many there were.
    pending: Option<(TimelinePoint, usize)>,
}

/// When the process first touched the virtual GPU, and one timeline a device: thinned together, the
/// peaks of a device that holds little would go for those of one that holds much.
struct Timelines {
    start: Instant,
    devices: Vec<Timeline>,
}

static TIMELINES: LazyLock<Mutex<Timelines>> = LazyLock::new(|| {
    let devices = device::machine().map_or(0, |machine| machine.visible().len());
    let timeline = |_| Timeline::new(MOST / devices);
    let devices = (0..devices).map(timeline).collect();
    Mutex::new(Timelines { start: Instant::now(), devices })
});

fn lock() -> MutexGuard<'static, Timelines> {
    TIMELINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that this process now holds `used` bytes on device `ordinal`.
pub(crate) fn note(ordinal: usize, used: u64) {
    let mut timelines = lock();
    let point = TimelinePoint {
        device: ordinal as u32,
        seconds: timelines.start.elapsed().as_secs_f64(),
        launches: activity::launches(),
        used_bytes: used,
    };
    if let Some(timeline) = timelines.devices.get_mut(ordinal) {
        timeline.push(point);
    }
}

/// The points kept of all devices, oldest first.
pub(crate) fn points() -> Vec<TimelinePoint> {
    let timelines = lock();
    let mut points: Vec<_> = timelines.devices.iter().flat_map(Timeline::kept).cloned().collect();
    points.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    points
}

impl Timeline {
    const fn new(most: usize) -> Self {
        Self { points: Vec::new(), most, stride: 1, pending: None }
    }

    fn kept(&self) -> impl Iterator<Item = &TimelinePoint> {
        self.points.iter().chain(self.pending.as_ref().map(|(point, _)| point))
    }

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
        if self.points.len() >= self.most {
            self.points = std::mem::take(&mut self.points)
                .chunks(2)
                .filter_map(|pair| pair.iter().cloned().reduce(higher))
                .collect();
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
        let mut timeline = Timeline::new(MOST);
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
