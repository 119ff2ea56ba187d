//! How far a modelled step time of a card may be off, and on which grounds.

use super::gpu::GpuProfile;

/// Of a card that nobody calibrated: on 80 published runs of transformers on 8 GPUs from P4 to H100, one
/// constant for all, fitted to the other GPUs, was within 32.6 % in nine of ten (NeuSight's public
/// measurements; ASPLOS 2025).
const UNCALIBRATED: f64 = 0.35;

/// What a modelled time leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncertainty {
    /// By which share of the real time a modelled one is off at most, from 0 to below 1.
    pub error: f64,
    /// By which factor arithmetic is slower at the lowest power that the card is sold with; 1 where that
    /// is not known, or there is no such choice.
    pub slowdown: f64,
    /// What the error rests on, in words.
    pub basis: &'static str,
}

impl Uncertainty {
    /// Of a card of which nothing else is known.
    pub fn uncalibrated() -> Self {
        Self {
            error: UNCALIBRATED,
            slowdown: 1.0,
            basis: "roofline from data sheets, not calibrated on this card",
        }
    }

    /// The times, in seconds, between which the real one is expected where `seconds` are modelled, and
    /// `compute` of them wait for arithmetic.
    pub fn around(&self, seconds: f64, compute: f64) -> (f64, f64) {
        let slowest = seconds + compute * (self.slowdown - 1.0);
        (seconds / (1.0 + self.error), slowest / (1.0 - self.error))
    }
}

impl GpuProfile {
    /// What modelled times of this card leave open.
    pub fn uncertainty(&self) -> Uncertainty {
        let top = f64::from(self.boost_clock.value);
        let lowest = self.lowest_boost_clock.as_ref().map_or(top, |clock| f64::from(clock.value));
        Uncertainty { slowdown: top / lowest, ..Uncertainty::uncalibrated() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::Catalog;

    #[test]
    fn a_laptop_of_a_stated_power_range_may_be_slower_than_its_top() {
        let of = |name| Catalog::built_in().gpu(name).unwrap().uncertainty();
        assert_eq!(of("rtx-4060-laptop").slowdown, 2370.0 / 1470.0);
        assert_eq!(of("rtx-3090").slowdown, 1.0);
        // Nobody states its range.
        assert_eq!(of("rtx-2050-laptop").slowdown, 1.0);
    }

    proptest! {
        #[test]
        fn a_modelled_time_lies_in_its_range_and_only_arithmetic_waits_for_the_clock(
            error in 0.0..0.9f64,
            slowdown in 1.0..3.0f64,
            seconds in 1e-6..1e3f64,
            share in 0.0..1.0f64,
        ) {
            let uncertain = Uncertainty { error, slowdown, ..Uncertainty::uncalibrated() };
            let (low, high) = uncertain.around(seconds, seconds * share);
            prop_assert!(low <= seconds && seconds <= high);
            // What the error means: a real time in the range is met within it.
            prop_assert!((seconds / low - 1.0 - error).abs() < 1e-9);
            let (_, of_memory) = uncertain.around(seconds, 0.0);
            prop_assert!((1.0 - seconds / of_memory - error).abs() < 1e-9);
            prop_assert!(of_memory <= high && high <= of_memory * slowdown * (1.0 + 1e-9));
        }
    }
}
