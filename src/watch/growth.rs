//! Whether something grows and goes on growing.

use super::statistics::{self, Trend, median};

/// What was held at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// When, in whatever unit growth is told in.
    pub(super) at: f64,
    /// What was held then.
    pub(super) level: f64,
    /// What came and went since the sample before: the measure of the batch.
    pub(super) transient: f64,
}

/// A growth that is no accident and has not stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    /// By how much it grows per unit of `at`.
    pub(super) slope: f64,
    /// The interval that holds the slope with 95 %.
    pub(super) slopes: (f64, f64),
    /// How likely as much is without a trend.
    pub(super) chance: f64,
    /// How sure it is, from 0 to 1: Kendall's τ, which is 1 if each sample is above those before it,
    /// times n / (n + 2) for n samples.
    pub(super) confidence: f64,
}

/// Longer series are thinned to so many samples; the cost of a trend is the square of it.
const MOST_SAMPLES: usize = 128;
/// In how many parts of its time growth must be seen again and again.
const PARTS: usize = 8;
/// Chance of a trend in pure noise that counts as none.
const CHANCE: f64 = 1e-3;
/// A fall of this share of the growth says that it comes and goes.
const FALL: f64 = 0.25;
/// Of the pace of the whole time, what is the least in the last quarter of it.
const LAST_PACE: f64 = 0.25;

/// Finds growth by `least` or more from the first sample to the last, in `fewest` samples or more.
///
/// What is kept of a batch until the next one (its inputs, its outputs) is told from growth by how the
/// level follows the transient from one sample to the next. Each part's lowest level stands for it, so
/// that what falls back when garbage is collected is none.
pub(super) fn growth(samples: &[Sample], least: f64, fewest: usize) -> Option<Growth> {
    let points = lowest(&without_batch(samples), MOST_SAMPLES);
    if points.len() < fewest.max(3) {
        return None;
    }
    let trend = statistics::trend(&points)?;
    let span = points.last()?.0 - points.first()?.0;
    let size = trend.slope * span;
    let surprising = trend.chance < CHANCE || (points.len() < PARTS && trend.tau >= 1.0);
    let grows = surprising && size >= least && lasts(&points, size) && !has_stopped(&points);
    let by_batch = transient_growth(samples) * LAST_PACE > size;
    let n = points.len() as f64;
    (grows && !by_batch).then(|| {
        let Trend { slope, slopes, tau, chance } = trend;
        Growth { slope, slopes, chance, confidence: tau.clamp(0.0, 1.0) * n / (n + 2.0) }
    })
}

/// Whether growth is seen in most parts of the time and in the last ones, and never falls back by much.
fn lasts(points: &[(f64, f64)], size: f64) -> bool {
    let levels: Vec<f64> = lowest(points, PARTS).iter().map(|point| point.1).collect();
    let rises = (levels.len() - 1) as f64;
    let pace = size / rises;
    let rising = levels.windows(2).filter(|pair| pair[1] - pair[0] > pace / 10.0).count();
    let mut highest = f64::NEG_INFINITY;
    let mut fall = 0.0_f64;
    for level in &levels {
        highest = highest.max(*level);
        fall = fall.max(highest - level);
    }
    let last = (levels.len() / 4).max(1);
    let lately = levels[levels.len() - 1] - levels[levels.len() - 1 - last];
    rising as f64 >= rises / 2.0 && fall <= FALL * size && lately >= LAST_PACE * pace * last as f64
}

/// Whether nothing has been higher for longer than ever before: an eighth of the time, and more than
/// twice as long as between two rises.
fn has_stopped(points: &[(f64, f64)]) -> bool {
    let mut highest = f64::NEG_INFINITY;
    let mut rises = Vec::new();
    for (index, point) in points.iter().enumerate() {
        if point.1 > highest {
            highest = point.1;
            rises.push(index);
        }
    }
    let longest = rises.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let since = rises.last().map_or(0, |last| points.len() - 1 - last);
    since * PARTS > points.len() && since > 2 * longest
}

/// The samples in up to so many parts of like number, each by its lowest level.
fn lowest(points: &[(f64, f64)], parts: usize) -> Vec<(f64, f64)> {
    let parts = parts.min(points.len());
    (0..parts)
        .filter_map(|part| {
            let range = part * points.len() / parts..(part + 1) * points.len() / parts;
            points[range].iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))
        })
        .collect()
}

/// The levels without what follows the transient.
fn without_batch(samples: &[Sample]) -> Vec<(f64, f64)> {
    let share = of_batch(samples);
    let is_later = |at: f64, last: Option<&(f64, f64)>| last.is_none_or(|last| at > last.0);
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(samples.len());
    for sample in samples.iter().filter(|it| it.at.is_finite() && it.level.is_finite()) {
        if is_later(sample.at, points.last()) {
            points.push((sample.at, sample.level - share * sample.transient));
        }
    }
    points
}

/// Share of the transient that is still held when it is over: the median over neighbouring samples
/// whose transients differ. Between 0 and 1, since a batch keeps no more than it had.
fn of_batch(samples: &[Sample]) -> f64 {
    const FEWEST: usize = 3;
    let shares: Vec<f64> = samples
        .windows(2)
        .filter(|pair| pair[0].transient != pair[1].transient)
        .map(|pair| (pair[1].level - pair[0].level) / (pair[1].transient - pair[0].transient))
        .collect();
    match shares.len() {
        ..FEWEST => 0.0,
        _ => median(shares).unwrap_or(0.0).clamp(0.0, 1.0),
    }
}

/// By how much the batch itself grows from the first sample to the last.
fn transient_growth(samples: &[Sample]) -> f64 {
    let points: Vec<_> = samples.iter().map(|it| (it.at, it.transient)).collect();
    let thin = lowest(&points, MOST_SAMPLES);
    let (Some(first), Some(last)) = (thin.first(), thin.last()) else { return 0.0 };
    match statistics::trend(&thin) {
        Some(trend) if trend.chance < CHANCE => trend.slope * (last.0 - first.0),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn series(levels: impl IntoIterator<Item = f64>) -> Vec<Sample> {
        let sample = |(at, level)| Sample { at: at as f64, level, transient: 1e6 };
        levels.into_iter().enumerate().map(sample).collect()
    }

    fn slope(levels: impl IntoIterator<Item = f64>) -> Option<f64> {
        growth(&series(levels), 2048.0, 8).map(|growth| growth.slope)
    }

    fn steps(count: u32) -> impl Iterator<Item = f64> {
        (0..count).map(f64::from)
    }

    #[test]
    fn the_smallest_growth_of_an_allocator_is_seen() {
        assert_eq!(slope(steps(40).map(|step| 512.0 * step)), Some(512.0));
    }

    #[test]
    fn growth_that_comes_at_the_end_of_each_epoch_is_seen() {
        assert!(slope(steps(200).map(|step| (step / 10.0).floor() * 1e6)).is_some());
    }

    #[test]
    fn growth_that_stops_is_none() {
        for until in [1.0, 10.0, 50.0, 70.0, 80.0] {
            assert_eq!(slope(steps(100).map(|step| step.min(until) * 1e6)), None, "{until}");
        }
    }

    #[test]
    fn single_jumps_are_none() {
        let jumps = |step: f64| {
            if step > 60.0 {
                3e8
            } else if step > 30.0 {
                1e8
            } else {
                0.0
            }
        };
        assert_eq!(slope(steps(100).map(jumps)), None);
    }

    #[test]
    fn what_falls_back_is_none() {
        for period in [3.0, 7.0, 14.0, 33.0, 47.0, 61.0] {
            assert_eq!(slope(steps(100).map(|step| step % period * 1e6)), None, "{period}");
        }
    }

    #[test]
    fn growth_beneath_what_falls_back_is_seen() {
        let found = slope(steps(200).map(|step| step % 14.0 * 1e6 + step * 1e6)).unwrap();
        assert!((found / 1e6 - 1.0).abs() < 0.2, "{found}");
    }

    #[test]
    fn growing_batches_are_none() {
        for power in [1.0, 2.0] {
            let samples: Vec<_> = steps(100)
                .map(|step| {
                    let length = 128.0 + 8.0 * step;
                    Sample { at: step, level: 1e4 * length, transient: 1e4 * length.powf(power) }
                })
                .collect();
            assert_eq!(growth(&samples, 2048.0, 8), None, "{power}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn noise_does_not_grow(levels in prop::collection::vec(0.0..1e9f64, 20..300)) {
            prop_assert_eq!(slope(levels), None);
        }

        #[test]
        fn growth_above_the_noise_is_seen(
            noise in prop::collection::vec(0.0..1e6f64, 40..200),
            slope in 1e6..1e9f64,
        ) {
            let levels = noise.iter().enumerate().map(|(step, noise)| slope * step as f64 + noise);
            let found = growth(&series(levels), 2048.0, 8).unwrap();
            prop_assert!((found.slope / slope - 1.0).abs() < 0.1, "{found:?}");
            prop_assert!((0.5..=1.0).contains(&found.confidence));
        }

        #[test]
        fn growth_is_seen_through_batches_of_any_length(
            lengths in prop::collection::vec(10.0..1000.0f64, 40..200),
        ) {
            let sample = |leak: f64| -> Vec<Sample> {
                let at = |(step, length): (usize, &f64)| Sample {
                    at: step as f64,
                    level: 1e4 * length + leak * step as f64,
                    transient: 5e4 * length,
                };
                lengths.iter().enumerate().map(at).collect()
            };
            prop_assert_eq!(growth(&sample(0.0), 2048.0, 8), None);
            prop_assert!(growth(&sample(1e5), 2048.0, 8).is_some());
        }
    }
}
