//! From values to places on an axis, and the values that deserve a mark there.

use crate::units::{Bytes, significant};

/// Marks of an axis, about.
const MARKS: f64 = 5.0;

/// An even axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    /// At its beginning.
    low: f64,
    /// At its end; more than `low`.
    high: f64,
}

/// A mark of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Where, in hundredths of the axis.
    pub(super) at: f64,
    /// What stands there.
    pub(super) label: String,
}

impl Scale {
    /// From zero to a little more than `most`.
    pub(super) fn from_zero(most: f64) -> Self {
        Self { low: 0.0, high: if most > 0.0 { most * 1.06 } else { 1.0 } }
    }

    /// From `low` to `high`, which may be the same.
    pub(super) fn between(low: f64, high: f64) -> Self {
        Self { low, high: if high > low { high } else { low + 1.0 } }
    }

    /// Where a value lies, in hundredths of the axis, from 0 to 100.
    pub(super) fn place(self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        if share.is_finite() { share.clamp(0.0, 1.0) * 100.0 } else { 0.0 }
    }

    /// Marks at multiples of a power of two, as batches are.
    pub(super) fn powers(self) -> Vec<Tick> {
        let step = 2f64.powf((self.length() / MARKS).log2().ceil()).max(1.0);
        self.every(step, |value| value.to_string())
    }

    /// Marks at round numbers.
    pub(super) fn numbers(self) -> Vec<Tick> {
        self.every(round(self.length() / MARKS), |value| match value {
            0.0 => "0".to_owned(),
            _ if value >= 1000.0 => significant(value, 4),
            _ => format!("{}", (value * 1000.0).round() / 1000.0),
        })
    }

    /// Marks at round numbers, as many as a low chart has room for.
    pub(super) fn few(self) -> Vec<Tick> {
        self.every(round(self.length() / 2.0), |value| value.to_string())
    }

    /// Marks at round times, of seconds.
    pub(super) fn times(self) -> Vec<Tick> {
        let (unit, name) = match self.high {
            ..180.0 => (1.0, "s"),
            ..10_800.0 => (60.0, "min"),
            _ => (3600.0, "h"),
        };
        self.every(round(self.length() / unit / MARKS) * unit, |value| match value {
            0.0 => "0".to_owned(),
            _ => format!("{} {name}", (value / unit * 1000.0).round() / 1000.0),
        })
    }

    /// Marks at round sizes.
    pub(super) fn sizes(self) -> Vec<Tick> {
        const UNITS: [(f64, &str); 4] =
            [(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")];
        let known = UNITS.iter().find(|(size, _)| self.high >= *size).copied();
        let (unit, name) = known.unwrap_or((1.0, "B"));
        let step = round(self.length() / unit / MARKS);
        self.every(step * unit, |value| match value {
            0.0 => "0".to_owned(),
            _ => format!("{} {name}", (value / unit * 100.0).round() / 100.0),
        })
    }

    fn length(self) -> f64 {
        self.high - self.low
    }

    fn every(self, step: f64, label: impl Fn(f64) -> String) -> Vec<Tick> {
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        let tick = |index: i64| {
            let value = index as f64 * step;
            Tick { at: self.place(value), label: label(value) }
        };
        // Of nothing that is no number come no marks without end.
        (first..=last.min(first.saturating_add(20))).map(tick).collect()
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn round(step: f64) -> f64 {
    if !(step.is_finite() && step > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|it| it * power >= step * 0.999);
    factor.unwrap_or(10.0) * power
}

/// A size as a value of a scale.
pub(super) fn size(bytes: Bytes) -> f64 {
    bytes.get() as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn marks_stand_at_round_values() {
        let sizes = Scale::from_zero(size(Bytes::gib(4))).sizes();
        assert_eq!(labels(&sizes), ["0", "1 GiB", "2 GiB", "3 GiB", "4 GiB"]);
        let sizes = Scale::from_zero(size(Bytes::mib(700))).sizes();
        assert_eq!(labels(&sizes), ["0", "200 MiB", "400 MiB", "600 MiB"]);
        assert_eq!(labels(&Scale::from_zero(160.0).numbers()), ["0", "50", "100", "150"]);
        assert_eq!(labels(&Scale::from_zero(0.3).numbers()), ["0", "0.1", "0.2", "0.3"]);
        let powers = |most| Scale::from_zero(most).powers();
        assert_eq!(labels(&powers(64.0)), ["0", "16", "32", "48", "64"]);
        assert_eq!(labels(&powers(2.0)), ["0", "1", "2"]);
        let times = |most| Scale::between(0.0, most).times();
        assert_eq!(labels(&times(95.0)), ["0", "20 s", "40 s", "60 s", "80 s"]);
        assert_eq!(labels(&times(7200.0)), ["0", "50 min", "100 min"]);
    }

    #[test]
    fn an_axis_of_nothing_is_one_too() {
        for scale in [Scale::from_zero(0.0), Scale::from_zero(f64::NAN), Scale::between(3.0, 3.0)] {
            for ticks in [scale.numbers(), scale.sizes(), scale.powers()] {
                assert!(ticks.len() < 25, "{scale:?}");
            }
            assert!((0.0..=100.0).contains(&scale.place(3.0)), "{scale:?}");
        }
    }

    proptest! {
        #[test]
        fn marks_are_on_the_axis_and_apart(most in 1e-6..1e15f64) {
            let scale = Scale::from_zero(most);
            for ticks in [scale.numbers(), scale.sizes()] {
                prop_assert!((2..=14).contains(&ticks.len()), "{most}: {ticks:?}");
                prop_assert!(ticks.windows(2).all(|pair| pair[1].at - pair[0].at > 5.0));
                prop_assert!(ticks.iter().all(|tick| (0.0..=100.0).contains(&tick.at)));
            }
        }

        #[test]
        fn more_lies_further(a in 0.1..1e6f64, b in 0.1..1e6f64) {
            let (low, high) = (a.min(b), a.max(b));
            for scale in [Scale::from_zero(high), Scale::between(low, high)] {
                prop_assert!(scale.place(low) <= scale.place(high));
            }
        }
    }
}
