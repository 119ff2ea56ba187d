//! How long steps take: by the virtual GPU's clock where there is one, else by the wall's.

use std::ops::{Add, Mul};
use std::time::Instant;

use vramfit::measurement::StepTime;

use crate::shim::clock::{self, Reading};

/// A moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    wall: Instant,
    reading: Option<Reading>,
}

impl Stamp {
    pub(crate) fn now() -> Self {
        Self { wall: Instant::now(), reading: clock::read() }
    }

    /// From this moment to `end`.
    pub(crate) fn until(&self, end: &Self) -> Took {
        let wall = end.wall.duration_since(self.wall).as_secs_f64();
        Took { wall, split: self.reading.zip(end.reading).map(|(start, end)| split(start, end)) }
    }
}

fn split(start: Reading, end: Reading) -> StepTime {
    let seconds = |of: fn(&Reading) -> u64| of(&end).saturating_sub(of(&start)) as f64 / 1e9;
    let total = seconds(|it| it.now);
    StepTime {
        total,
        compute: seconds(|it| it.compute),
        memory: seconds(|it| it.memory),
        launch: seconds(|it| it.launch),
        transfer: seconds(|it| it.transfer),
        host: (total - seconds(|it| it.busy)).max(0.0),
        dispatch: seconds(|it| it.dispatch),
    }
}

/// What something took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Took {
    /// Seconds of wall time.
    pub(crate) wall: f64,
    /// Virtual time, on a virtual GPU.
    pub(crate) split: Option<StepTime>,
}

impl Took {
    /// Seconds of the training.
    pub(crate) fn seconds(&self) -> f64 {
        self.split.map_or(self.wall, |split| split.total)
    }

    /// Seconds in which the device worked, which are the same each time on a virtual GPU.
    pub(crate) fn device_seconds(&self) -> f64 {
        self.split.map_or(self.wall, |split| split.total - split.host)
    }
}

impl Add for Took {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let split = match (self.split, other.split) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        Self { wall: self.wall + other.wall, split }
    }
}

impl Mul<f64> for Took {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self { wall: self.wall * times, split: self.split.map(|split| split * times) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_waits_for_the_host_where_it_has_no_work() {
        let start = Reading { now: 1_000_000_000, busy: 5, dispatch: 7, ..Reading::default() };
        let end = Reading {
            now: 4_000_000_000,
            busy: 2_000_000_005,
            compute: 1_500_000_000,
            memory: 500_000_000,
            dispatch: 2_500_000_007,
            ..Reading::default()
        };
        let split = split(start, end);
        assert_eq!((split.total, split.host, split.dispatch), (3.0, 1.0, 2.5));
        assert_eq!(split.compute + split.memory + split.host, split.total);
    }

    #[test]
    fn what_is_left_out_adds_to_every_part() {
        let split = StepTime { total: 3.0, compute: 2.0, host: 1.0, ..StepTime::default() };
        let took = Took { wall: 0.1, split: Some(split) };
        let all = took + took * 2.0;
        assert_eq!(all.seconds(), 9.0);
        assert_eq!(all.split.map(|it| (it.compute, it.host)), Some((6.0, 3.0)));
        assert_eq!((took + Took::default()).split, Some(split));
    }
}
