//! How regularly something comes back, where steps are not told.

use super::statistics::median;

/// Values that come back after about so long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rhythm {
    /// In samples.
    pub(super) period: usize,
    /// Autocorrelation at that distance, up to 1.
    pub(super) strength: f64,
}

/// The period of the highest peak of the autocorrelation, of evenly taken samples; none where the
/// longest period looked at, a third of them, is too short to show one.
pub(super) fn rhythm(values: &[f64]) -> Option<Rhythm> {
    const FEWEST: usize = 12;
    if values.len() < FEWEST || values.iter().any(|it| !it.is_finite()) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let centred: Vec<f64> = values.iter().map(|it| it - mean).collect();
    let variance = centred.iter().map(|it| it * it).sum::<f64>() / centred.len() as f64;
    if variance <= 0.0 {
        return None;
    }
    let at = |lag: usize| {
        let pairs = centred.iter().zip(&centred[lag..]);
        pairs.map(|(a, b)| a * b).sum::<f64>() / (centred.len() - lag) as f64 / variance
    };
    let strengths: Vec<f64> = (1..=values.len() / 3).map(at).collect();
    let peak = |lag: &usize| {
        let (before, own) = (strengths[lag - 1], strengths[*lag]);
        own > before && strengths.get(lag + 1).is_none_or(|after| own >= *after)
    };
    let peaks: Vec<usize> = (1..strengths.len()).filter(peak).collect();
    let strongest = peaks.iter().map(|lag| strengths[*lag]).max_by(f64::total_cmp)?;
    // The first that is nearly as high: its multiples are as high.
    let highest = *peaks.iter().find(|lag| strengths[**lag] >= 0.9 * strongest)?;
    Some(Rhythm { period: highest + 1, strength: strengths[highest] })
}

/// Seconds between samples, in the middle.
pub(super) fn interval(times: &[f64]) -> Option<f64> {
    median(times.windows(2).map(|pair| pair[1] - pair[0])).filter(|it| *it > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_found_with_its_period() {
        for period in [2, 3, 5, 8, 13] {
            let values: Vec<f64> =
                (0..90).map(|index| if index % period == 0 { 5.0 } else { 95.0 }).collect();
            let found = rhythm(&values).unwrap();
            assert_eq!(found.period, period);
            assert!(found.strength > 0.9, "{found:?}");
        }
    }

    #[test]
    fn a_constant_has_no_rhythm() {
        assert_eq!(rhythm(&[50.0; 60]), None);
    }

    #[test]
    fn a_slope_has_none() {
        let values: Vec<f64> = (0..60).map(f64::from).collect();
        assert_eq!(rhythm(&values), None);
    }
}
