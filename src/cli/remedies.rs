//! What to change where a point does not fit.

use super::planner::Planner;
use super::{inputs, twin};
use crate::device::{Gpu, Setup, VirtualGpu};
use crate::error::Error;
use crate::measurement::{Point, Verdict};
use crate::probe::{Change, Record, Remedies};
use crate::profile::gpu::GpuProfile;
use crate::workload::Precision;

/// Changes that are named when nothing fits.
const MOST_CHANGES: usize = 3;

/// Changes with which a point that does not fit would, tried on the virtual GPU or twin: first on
/// the same card, then a larger one. What was found before a failure is in `changes`.
///
/// # Errors
/// As [`Prober::probe`](crate::probe::Prober::probe).
pub(super) fn find(
    planner: &Planner<'_>,
    point: Point,
    record: Option<Record>,
    changes: &mut Vec<Change>,
) -> Result<(), Error> {
    let workload = &planner.workload;
    let capability = planner.gpu.compute_capability();
    let settable = workload.subject.command().map(|it| it.precisions().unwrap_or_default());
    let mixed: Vec<_> = [Precision::Bf16, Precision::Fp16]
        .into_iter()
        .filter(|precision| inputs::has(capability, *precision))
        .filter(|precision| settable.as_ref().is_none_or(|it| it.contains(precision)))
        .take(1)
        .collect();
    let budget = planner.gpu.budget().budget;
    let search = Remedies { workload, point, mixed: &mixed, budget };
    let twin = twin::of(planner.gpu, planner.catalog)?;
    let mut prober = planner.launch.prober(&twin, record.clone());
    changes.extend(search.on_this_card(prober.as_mut(), MOST_CHANGES)?);
    drop(prober);
    let cards = larger_cards(planner)?;
    let ranks = workload.subject.ranks();
    let setup = Setup { vram: None, ..planner.setup };
    let another = search.on_another_card(&cards, &mut |card| {
        let gpu = Gpu::Virtual(Box::new(VirtualGpu::several(card, setup, ranks)?));
        let mut prober = planner.launch.prober(&gpu, record.clone());
        Ok(prober.probe(workload, point)?.verdict(gpu.budget().budget) == Verdict::Fits)
    })?;
    changes.extend(another);
    Ok(())
}

/// Cards with more memory that have the precisions of this one, one of each size, ascending.
fn larger_cards(planner: &Planner<'_>) -> Result<Vec<GpuProfile>, Error> {
    let (capability, usable) = (planner.gpu.compute_capability(), planner.gpu.budget().usable);
    let mut cards = planner.catalog.gpus()?;
    cards.retain(|card| {
        card.compute_capability.value >= capability && card.usable_memory.value > usable
    });
    cards.sort_by(|a, b| {
        let key = |card: &GpuProfile| (card.usable_memory.value, card.segment);
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    cards.dedup_by_key(|card| card.total_memory.value.as_mib() as u64 / 1000);
    Ok(cards)
}
