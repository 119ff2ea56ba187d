//! How far a modelled step time of a card may be off, and on which grounds.

use super::gpu::GpuProfile;

/// Of a card that was not measured itself: on 80 published runs of transformers on 8 GPUs from P4 to H100,
/// one constant fitted to the other GPUs was within 32.6 % in nine of ten (NeuSight's public measurements;
/// ASPLOS 2025).
const OF_OTHER_CARDS: f64 = 0.35;
/// Within how many times the median error nine of ten lie: 15.6 to 6.4 % on the same runs with one
/// constant for each card, 32.6 to 14.9 % with one for all.
const NINE_OF_TEN: f64 = 2.4;
/// Beyond it a range says nothing.
const MOST: f64 = 0.9;

/// What a modelled time leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncertainty {
    /// By which share of the real time nine of ten modelled ones are off at most, from 0 to below 1.
    pub error: f64,
    /// By which factor arithmetic is slower at the lowest power that the card is sold with; 1 where that
    /// is not known, or there is no such choice.
    pub slowdown: f64,
    /// What the error rests on, in words.
    pub basis: String,
}

impl Uncertainty {
    /// Of a card of which nothing else is known.
    pub fn uncalibrated() -> Self {
        Self {
            error: OF_OTHER_CARDS,
            slowdown: 1.0,
            basis: "roofline from data sheets, not calibrated".to_owned(),
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
        let known = match &self.calibration {
            Some(it) if it.is_of(self) => Uncertainty {
                error: (NINE_OF_TEN * it.error).min(MOST),
                basis: "roofline calibrated on this card".to_owned(),
                slowdown: 1.0,
            },
            Some(it) => Uncertainty {
                error: (NINE_OF_TEN * it.error).clamp(OF_OTHER_CARDS, MOST),
                basis: format!("roofline calibrated for `{}`, not on this card", it.name),
                slowdown: 1.0,
            },
            None => Uncertainty::uncalibrated(),
        };
        Uncertainty { slowdown: top / lowest, ..known }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use vramfit_vgpu_cost::Efficiency;

    use super::*;
    use crate::profile::Catalog;
    use crate::profile::calibration::Calibration;

    #[test]
    fn a_laptop_of_a_stated_power_range_may_be_slower_than_its_top() {
        let of = |name| Catalog::built_in().gpu(name).unwrap().uncertainty();
        assert_eq!(of("rtx-4060-laptop").slowdown, 2370.0 / 1470.0);
        assert_eq!(of("rtx-3090").slowdown, 1.0);
        // Nobody states its range.
        assert_eq!(of("rtx-2050-laptop").slowdown, 1.0);
    }

    #[test]
    fn a_card_that_was_measured_is_better_known_than_one_of_its_kind() {
        let mut card = Catalog::built_in().gpu("rtx-3090").unwrap();
        card.calibration = None;
        assert_eq!(card.uncertainty(), Uncertainty::uncalibrated());
        let calibration = |gpus: &[&str]| Calibration {
            name: "ampere".to_owned(),
            gpus: gpus.iter().map(|&name| name.to_owned()).collect(),
            cards: Vec::new(),
            capabilities: vec![card.compute_capability.value],
            error: 0.08,
            source: "a test".to_owned(),
            efficiency: Efficiency::default(),
        };
        let with = |calibration| GpuProfile { calibration: Some(calibration), ..card.clone() };
        let own = with(calibration(&["rtx-3090"])).uncertainty();
        let of_another = with(calibration(&["rtx-3080"])).uncertainty();
        assert!(own.error < of_another.error, "{own:?} {of_another:?}");
        assert!(of_another.basis.contains("ampere"), "{of_another:?}");
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
