//! Statistics by rank: they ask nothing of a distribution, and one wild value moves none of them.

/// The value at that share of the way from the lowest to the highest, the lower of two; none where
/// there are none. What is no number is left out.
pub(super) fn quantile(values: impl IntoIterator<Item = f64>, share: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().filter(|it| it.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share) as usize).copied()
}

/// The middle one.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    quantile(values, 0.5)
}

/// The monotonic trend of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// Median of the slopes between all pairs of points (Theil 1950, Sen 1968).
    pub(super) slope: f64,
    /// The interval that holds it with 95 % (Sen 1968, by the variance of Kendall's S).
    pub(super) slopes: (f64, f64),
    /// Kendall's τ-b: the share of pairs that rise, less that of those that fall.
    pub(super) tau: f64,
    /// How likely as much rise is without a trend (Mann–Kendall, one-sided, corrected for ties).
    pub(super) chance: f64,
}

/// The trend of points (x, y), of which x rises strictly; none of fewer than three.
pub(super) fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let n = points.len();
    if n < 3 {
        return None;
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    let (mut rising, mut falling) = (0.0, 0.0);
    for (index, (x, y)) in points.iter().enumerate() {
        for (later_x, later_y) in &points[index + 1..] {
            rising += f64::from(later_y > y);
            falling += f64::from(later_y < y);
            slopes.push((later_y - y) / (later_x - x));
        }
    }
    slopes.retain(|slope| slope.is_finite());
    slopes.sort_by(f64::total_cmp);
    let slope = median(slopes.iter().copied())?;
    let (n, s) = (n as f64, rising - falling);
    let all = n * (n - 1.0) / 2.0;
    let ties = ties(points.iter().map(|point| point.1));
    let tied: f64 = ties.iter().map(|t| t * (t - 1.0) / 2.0).sum();
    let lost: f64 = ties.iter().map(|t| t * (t - 1.0) * (2.0 * t + 5.0)).sum();
    let deviation = ((n * (n - 1.0) * (2.0 * n + 5.0) - lost) / 18.0).max(0.0).sqrt();
    let tau = if tied < all { s / (all * (all - tied)).sqrt() } else { 0.0 };
    let chance = match deviation > 0.0 {
        true => tail((s - s.signum()) / deviation),
        false => 1.0,
    };
    let last = slopes.len() - 1;
    let reach = 1.96 * deviation;
    let at = |rank: f64| slopes[(rank.max(0.0) as usize).min(last)];
    let slopes = (at((all - reach) / 2.0), at((all + reach) / 2.0));
    Some(Trend { slope, slopes, tau, chance })
}

/// How many share each value.
fn ties(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a == b).map(|same| same.len() as f64).collect()
}

/// Whether the second group is higher.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Higher {
    /// How often one of the second is above one of the first, of all pairs; ties count half.
    pub(super) share: f64,
    /// How likely as much is where both are alike (Mann–Whitney, one-sided).
    pub(super) chance: f64,
}

/// Compares two groups by rank; none where one is empty.
pub(super) fn higher(first: &[f64], second: &[f64]) -> Option<Higher> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let mut sorted = first.to_vec();
    sorted.sort_by(f64::total_cmp);
    let above: f64 = second
        .iter()
        .map(|value| {
            let below = sorted.partition_point(|it| it < value);
            let not_above = sorted.partition_point(|it| it <= value);
            (below + not_above) as f64 / 2.0
        })
        .sum();
    let (a, b) = (first.len() as f64, second.len() as f64);
    let all = a + b;
    let ties = ties(first.iter().chain(second).copied());
    let lost: f64 = ties.iter().map(|t| t * t * t - t).sum::<f64>() / (all * (all - 1.0));
    let deviation = (a * b / 12.0 * (all + 1.0 - lost)).max(0.0).sqrt();
    let chance = match deviation > 0.0 {
        true => tail((above - a * b / 2.0 - 0.5) / deviation),
        false => 1.0,
    };
    Some(Higher { share: above / (a * b), chance })
}

/// Share of a normal distribution that lies above `z` deviations.
fn tail(z: f64) -> f64 {
    libm::erfc(z / std::f64::consts::SQRT_2) / 2.0
}

/// How sure it is that what was so `times` times in a row is so the next time: Laplace's rule of
/// succession, from even odds.
pub(super) fn succession(times: usize) -> f64 {
    (times as f64 + 1.0) / (times as f64 + 2.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_trend_of_a_line_is_its_slope() {
        let points: Vec<_> = (0..20).map(|x| (f64::from(x), 3.0 * f64::from(x) + 7.0)).collect();
        let trend = trend(&points).unwrap();
        assert_eq!((trend.slope, trend.slopes, trend.tau), (3.0, (3.0, 3.0), 1.0));
        assert!(trend.chance < 1e-8, "{trend:?}");
    }

    /// Sen's own way of counting, by an example worked by hand: 10 pairs, 8 rising and 2 falling.
    #[test]
    fn the_test_of_a_trend_counts_pairs() {
        let points = [(0.0, 1.0), (1.0, 3.0), (2.0, 2.0), (3.0, 5.0), (4.0, 4.0)];
        let trend = trend(&points).unwrap();
        assert!((trend.tau - 0.6).abs() < 1e-12, "{trend:?}");
        // S = 6, variance 5·4·15/18 = 16.67: z = 5/4.082 = 1.2247, of which 0.1103 lies above.
        assert!((trend.chance - 0.1103).abs() < 1e-4, "{trend:?}");
    }

    #[test]
    fn a_constant_has_no_trend() {
        let trend = trend(&[(0.0, 5.0), (1.0, 5.0), (2.0, 5.0), (3.0, 5.0)]).unwrap();
        assert_eq!((trend.slope, trend.tau, trend.chance), (0.0, 0.0, 1.0));
    }

    #[test]
    fn one_wild_value_moves_no_slope() {
        let mut points: Vec<_> = (0..30).map(|x| (f64::from(x), f64::from(x))).collect();
        points[12].1 = 1e12;
        assert!((trend(&points).unwrap().slope - 1.0).abs() < 0.01);
    }

    #[test]
    fn groups_apart_are_told_apart() {
        let low: Vec<f64> = (0..10).map(f64::from).collect();
        let high: Vec<f64> = (20..30).map(f64::from).collect();
        let apart = higher(&low, &high).unwrap();
        assert_eq!(apart.share, 1.0);
        assert!(apart.chance < 1e-3, "{apart:?}");
        let alike = higher(&low, &low).unwrap();
        assert_eq!(alike.share, 0.5);
        assert!(alike.chance > 0.4, "{alike:?}");
    }

    proptest! {
        #[test]
        fn adding_a_slope_adds_it(
            values in prop::collection::vec(0.0..1.0f64, 8..60),
            slope in -5.0..5.0f64,
        ) {
            let points = |slope: f64| -> Vec<_> {
                let at = |(x, y): (usize, &f64)| (x as f64, slope.mul_add(x as f64, *y));
                values.iter().enumerate().map(at).collect()
            };
            let (without, with) = (trend(&points(0.0)).unwrap(), trend(&points(slope)).unwrap());
            prop_assert!((with.slope - without.slope - slope).abs() < 1e-9);
        }

        #[test]
        fn shares_stay_within_bounds(
            first in prop::collection::vec(any::<f64>(), 0..20),
            second in prop::collection::vec(any::<f64>(), 0..20),
        ) {
            if let Some(it) = higher(&first, &second) {
                prop_assert!((0.0..=1.0).contains(&it.share));
                prop_assert!((0.0..=1.0).contains(&it.chance) || it.chance.is_nan());
            }
            let points: Vec<_> = first.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
            if let Some(it) = trend(&points) {
                prop_assert!(it.tau.abs() <= 1.0 + 1e-9, "{it:?}");
            }
        }
    }
}
