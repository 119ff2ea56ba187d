use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Compared, Side};
use crate::measurement::{Outcome, Ran};
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
    /// Of the step time that the twin's cost model has; `None` where it has none.
    #[serde(default)]
    pub step: Option<StepDifference>,
}

/// The twin's modelled step time less the card's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepDifference {
    /// In seconds; negative where the twin is too fast.
    pub seconds: f64,
    /// In hundredths of the card's time.
    pub percent: f64,
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Errors of modelled step times, of each family of models, and of all last; empty where there are
    /// none.
    #[serde(default)]
    pub step: Vec<StepSpread>,
    /// Whether the twin tells which of two points of a workload is faster.
    #[serde(default)]
    pub order: Order,
}

/// How the errors of step times lie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpread {
    /// Which models: `resnet`, or `all`.
    pub family: String,
    /// Points that were compared.
    pub compared: usize,
    /// Median of the differences without their sign, in percent.
    pub median_percent: f64,
    /// The difference farthest from zero, with its sign, in percent.
    pub worst_percent: f64,
    /// Index of the point that it is at.
    pub worst: usize,
}

/// Pairs of points of the same workload whose samples per second differ by more than 5 % on the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// How many there are.
    pub pairs: usize,
    /// Of how many the twin has the same one as the faster.
    pub right: usize,
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
    pub(super) fn of(of_twin: &Ran, of_card: &Ran) -> Self {
        let (twin, card) = (&of_twin.memory, &of_card.memory);
        let allocated = Difference::of(twin.allocated_peak, card.allocated_peak);
        Self {
            allocated_exact: allocated.bytes == 0,
            allocated,
            reserved: Difference::of(twin.reserved_peak, card.reserved_peak),
            context: Difference::of(twin.context, card.context),
            device: Difference::of(twin.device_peak, card.device_peak),
            step: StepDifference::of(of_twin, of_card),
        }
    }
}

impl StepDifference {
    /// Only of a time that was modelled: else the twin's is that of PyTorch's dispatch.
    fn of(twin: &Ran, card: &Ran) -> Option<Self> {
        twin.step_time.filter(|_| card.step_seconds > 0.0)?;
        let seconds = twin.step_seconds - card.step_seconds;
        Some(Self { seconds, percent: seconds / card.step_seconds * 100.0 })
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
            step: StepSpread::of(results),
            order: Order::of(results),
        }
    }
}

impl StepSpread {
    fn of(results: &[Compared]) -> Vec<Self> {
        let mut families: BTreeMap<String, Vec<(usize, f64)>> = BTreeMap::new();
        let mut all = Vec::new();
        for (index, result) in results.iter().enumerate() {
            let Some(step) = result.errors.as_ref().and_then(|errors| errors.step) else {
                continue;
            };
            families.entry(family(result)).or_default().push((index, step.percent));
            all.push((index, step.percent));
        }
        let of_family = |(family, percents): (String, Vec<(usize, f64)>)| {
            let compared = percents.len();
            let (median_percent, worst_percent, worst) = median_and_worst(percents)?;
            Some(Self { family, compared, median_percent, worst_percent, worst })
        };
        families.into_iter().chain([("all".to_owned(), all)]).filter_map(of_family).collect()
    }
}

fn family(result: &Compared) -> String {
    let model = result.workload.subject.built_in();
    model.map_or_else(|| "other".to_owned(), |model| model.architecture.family().to_owned())
}

impl Order {
    fn of(results: &[Compared]) -> Self {
        /// Speeds that differ by less, in hundredths, are no pair.
        const APART: f64 = 5.0;
        let timed: Vec<_> = results
            .iter()
            .filter(|result| result.errors.is_some_and(|errors| errors.step.is_some()))
            .filter_map(|result| {
                let samples = f64::from(result.point.samples());
                let rate = |side: &Option<Side>| Some(samples / side.as_ref()?.ran()?.step_seconds);
                Some((&result.workload, rate(&result.card)?, rate(&result.twin)?))
            })
            .collect();
        let mut order = Self::default();
        for (index, (workload, card, twin)) in timed.iter().enumerate() {
            for (other, other_card, other_twin) in &timed[index + 1..] {
                let faster = card.max(*other_card);
                if workload == other && (card - other_card).abs() > faster * APART / 100.0 {
                    order.pairs += 1;
                    order.right += usize::from((card > other_card) == (twin > other_twin));
                }
            }
        }
        order
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
        let percents =
            differences.iter().filter_map(|(index, it)| Some((*index, it.percent?))).collect();
        let (median_percent, worst_percent, worst) = median_and_worst(percents)?;
        Some(Self {
            exact: differences.iter().filter(|(_, it)| it.bytes == 0).count(),
            median_percent,
            worst_percent,
            worst,
        })
    }
}

/// The median without signs, and the farthest from zero with its index.
fn median_and_worst(mut percents: Vec<(usize, f64)>) -> Option<(f64, f64, usize)> {
    percents.sort_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()));
    let (worst, worst_percent) = *percents.last()?;
    let middle = percents.len() / 2;
    let (below, above) = (percents[(percents.len() - 1) / 2].1, percents[middle].1);
    Some((f64::midpoint(below.abs(), above.abs()), worst_percent, worst))
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::compared;
    use super::*;
    use crate::measurement::StepTime;

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

    #[test]
    fn step_times_are_compared_by_family_and_by_which_is_faster() {
        let timed = |twin: f64, card: f64| {
            let mut result = compared(100, Some(100));
            result.twin = result.twin.map(|side| with_time(side, twin, true));
            result.card = result.card.map(|side| with_time(side, card, false));
            let (twin, card) = (result.twin.unwrap(), result.card);
            Compared::new(result.workload, result.point, twin, card)
        };
        // The card's first two are a tie; of the other pairs the twin has one the wrong way round.
        let results = [timed(1.1, 1.0), timed(0.9, 1.02), timed(1.0, 2.0)];
        let summary = Summary::of(&results);
        let families: Vec<_> = summary.step.iter().map(|it| it.family.as_str()).collect();
        assert_eq!(families, ["mlp", "all"]);
        let all = summary.step.last().unwrap();
        assert_eq!((all.compared, all.worst, all.worst_percent), (3, 2, -50.0));
        assert!((all.median_percent - (0.12 / 1.02 * 100.0)).abs() < 1e-9);
        assert_eq!(summary.order, Order { pairs: 2, right: 1 });
        // Times that nobody modelled are not compared.
        assert_eq!(Summary::of(&[compared(100, Some(100))]).step, []);
    }

    fn with_time(mut side: Side, seconds: f64, modelled: bool) -> Side {
        if let Outcome::Ran(ran) = &mut side.outcome {
            ran.step_seconds = seconds;
            ran.step_time = modelled.then(StepTime::default);
        }
        side
    }
}
