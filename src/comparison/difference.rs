use serde::{Deserialize, Serialize};

use super::{Compared, Side};
use crate::measurement::{Memory, Outcome};
use crate::units::Bytes;

/// The twin's figure less the card's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// In bytes; negative where the twin says too little.
    pub bytes: i64,
    /// In hundredths of the card's figure; `None` where that is zero and the twin's is not.
    pub percent: Option<f64>,
}

/// By how much the twin is off at one point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// The peak of allocated memory is the same to the byte.
    pub allocated_exact: bool,
    /// Of PyTorch's `max_memory_allocated`.
    pub allocated: Difference,
    /// Of PyTorch's `max_memory_reserved`.
    pub reserved: Difference,
    /// Of the context: what the process holds beyond the allocator's segments.
    pub context: Difference,
    /// Of what NVML sees of the process at its peak.
    pub device: Difference,
}

/// How the errors of many points lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Points without any difference.
    pub exact: usize,
    /// Median of the differences without their sign, in percent.
    pub median_percent: f64,
    /// The difference farthest from zero, with its sign, in percent.
    pub worst_percent: f64,
    /// Index of the point that it is at.
    pub worst: usize,
}

/// What became of all points, and the errors of those that ran on both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Points that ran on both.
    pub compared: usize,
    /// Points that were not tried on the card.
    pub skipped: usize,
    /// Points at which the machine failed, on either.
    pub failed: usize,
    /// Points for which the card's memory was short though the twin's was not.
    pub only_card_out_of_memory: usize,
    /// Errors of the allocated peak.
    pub allocated: Option<Spread>,
    /// Errors of the reserved peak.
    pub reserved: Option<Spread>,
    /// Errors of the context.
    pub context: Option<Spread>,
    /// Errors of the device peak.
    pub device: Option<Spread>,
}

impl Difference {
    fn of(twin: Bytes, card: Bytes) -> Self {
        // Both are far below the 8 EiB of an i64.
        let bytes = twin.get() as i64 - card.get() as i64;
        let percent = match card {
            Bytes::ZERO => (bytes == 0).then_some(0.0),
            card => Some(bytes as f64 / card.get() as f64 * 100.0),
        };
        Self { bytes, percent }
    }
}

impl Errors {
    pub(super) fn of(twin: &Memory, card: &Memory) -> Self {
        let allocated = Difference::of(twin.allocated_peak, card.allocated_peak);
        Self {
            allocated_exact: allocated.bytes == 0,
            allocated,
            reserved: Difference::of(twin.reserved_peak, card.reserved_peak),
            context: Difference::of(twin.context, card.context),
            device: Difference::of(twin.device_peak, card.device_peak),
        }
    }
}

impl Summary {
    pub(super) fn of(results: &[Compared]) -> Self {
        let count = |is: &dyn Fn(&Compared) -> bool| results.iter().filter(|it| is(it)).count();
        let failed = |side: &Option<Side>| {
            side.as_ref().is_some_and(|side| matches!(side.outcome, Outcome::Failed { .. }))
        };
        let short = |side: &Option<Side>| {
            side.as_ref().is_some_and(|side| matches!(side.outcome, Outcome::OutOfMemory { .. }))
        };
        Self {
            compared: count(&|it| it.errors.is_some()),
            skipped: count(&|it| it.skipped.is_some()),
            failed: count(&|it| failed(&it.twin) || failed(&it.card)),
            only_card_out_of_memory: count(&|it| short(&it.card) && !short(&it.twin)),
            allocated: Spread::of(results, |errors| errors.allocated),
            reserved: Spread::of(results, |errors| errors.reserved),
            context: Spread::of(results, |errors| errors.context),
            device: Spread::of(results, |errors| errors.device),
        }
    }
}

impl Spread {
    /// `None` where nothing was compared.
    fn of(results: &[Compared], of: impl Fn(&Errors) -> Difference) -> Option<Self> {
        let differences: Vec<_> = results
            .iter()
            .enumerate()
            .filter_map(|(index, it)| Some((index, of(it.errors.as_ref()?))))
            .collect();
        let mut percents: Vec<_> =
            differences.iter().filter_map(|(index, it)| Some((*index, it.percent?))).collect();
        percents.sort_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()));
        let (worst, worst_percent) = *percents.last()?;
        let middle = percents.len() / 2;
        let (below, above) = (percents[(percents.len() - 1) / 2].1, percents[middle].1);
        Some(Self {
            exact: differences.iter().filter(|(_, it)| it.bytes == 0).count(),
            median_percent: f64::midpoint(below.abs(), above.abs()),
            worst_percent,
            worst,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::compared;
    use super::*;

    #[test]
    fn a_difference_keeps_its_sign_and_is_relative_to_the_card() {
        let low = Difference::of(Bytes(90), Bytes(100));
        assert_eq!(low, Difference { bytes: -10, percent: Some(-10.0) });
        assert_eq!(Difference::of(Bytes(0), Bytes(0)).percent, Some(0.0));
        assert_eq!(Difference::of(Bytes(5), Bytes(0)).percent, None);
    }

    #[test]
    fn a_spread_names_median_and_worst_of_what_was_compared() {
        let results = [
            compared(100, Some(100)),
            compared(98, Some(100)),
            compared(50, None),
            compared(95, Some(100)),
        ];
        let summary = Summary::of(&results);
        assert_eq!((summary.compared, summary.skipped), (3, 1));
        let spread = summary.device.unwrap();
        assert_eq!((spread.exact, spread.worst, spread.worst_percent), (1, 3, -5.0));
        assert_eq!(spread.median_percent, 2.0);
        assert_eq!(Summary::of(&[]).device, None);
    }
}
