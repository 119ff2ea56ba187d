//! Checkpointing in part: the micro-batches for which it may be worth it, and for each the cheapest
//! blocks with which it was run and fits.

use super::selection::Selection;
use crate::error::Error;
use crate::measurement::{Point, Setting, Verdict};
use crate::probe::{Findings, GpuProber, Searched};
use crate::survey::{BlockCost, Survey};
use crate::units::Bytes;
use crate::workload::{Blocks, Checkpointing, Goal, Precision, Workload};

/// Choices that are tried for one micro-batch. The first is usually right; what it took corrects the
/// next.
const TRIES: usize = 4;

/// Looks for blocks to checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct Selective<'a> {
    /// What is trained.
    pub workload: &'a Workload,
    /// What the micro-batches add up to.
    pub goal: &'a Goal,
    /// What may be used.
    pub budget: Bytes,
}

impl Selective<'_> {
    /// Adds to `findings`, in which no and full checkpointing were searched, a search for each
    /// micro-batch that a careful person would want: the next admissible one above what fits without
    /// checkpointing, and the largest that fits with all of it. Says in one line why the blocks of
    /// this model cannot be chosen, if so.
    ///
    /// # Errors
    /// As [`Prober::probe`](crate::probe::Prober::probe).
    pub fn search(
        &self,
        precision: Precision,
        findings: &mut Findings,
        prober: &mut dyn GpuProber,
    ) -> Result<Option<String>, Error> {
        for micro_batch in self.wanted(precision, findings) {
            match self.at(precision, micro_batch, findings, prober)? {
                Ok(Some(largest)) => keep(findings, largest),
                Ok(None) => {}
                Err(reason) => return Ok(Some(reason)),
            }
        }
        Ok(None)
    }

    fn wanted(&self, precision: Precision, findings: &Findings) -> Vec<u32> {
        let largest = |checkpointing| {
            let searched = findings.searched(Setting { precision, checkpointing })?;
            let size = searched.largest.map(|index| findings.measurements[index].point.micro_batch);
            searched.complete.then_some(size.unwrap_or(0))
        };
        let (Some(plain), Some(full)) =
            (largest(Checkpointing::None), largest(Checkpointing::Full))
        else {
            return Vec::new();
        };
        let sizes = self.goal.micro_batches();
        let mut between: Vec<u32> =
            sizes.into_iter().filter(|size| plain < *size && *size <= full).collect();
        if between.len() > 2 {
            between.drain(1..between.len() - 1);
        }
        between
    }

    /// The index of the try at `micro_batch` that fits and computes least twice; none where nothing
    /// but full checkpointing fits, or that neither. In the inner error is why blocks cannot be chosen.
    ///
    /// # Errors
    /// As [`Prober::probe`](crate::probe::Prober::probe).
    pub fn at(
        &self,
        precision: Precision,
        micro_batch: u32,
        findings: &mut Findings,
        prober: &mut dyn GpuProber,
    ) -> Result<Result<Option<usize>, String>, Error> {
        let point = |checkpointing| {
            Point::to_probe(Setting { precision, checkpointing }, micro_batch, self.goal)
        };
        let all = point(Checkpointing::Full);
        let whole = findings.probe(prober, self.workload, all)?;
        let whole = &findings.measurements[whole];
        let full = match whole.ran() {
            Some(ran) if whole.verdict(self.budget) == Verdict::Fits => ran.memory.device_peak,
            _ => return Ok(Ok(None)),
        };
        let blocks = match prober.survey(self.workload, all)? {
            Ok(blocks) => blocks,
            Err(reason) => return Ok(Err(reason)),
        };
        if blocks.is_empty() {
            return Ok(Ok(None));
        }
        let survey = Survey { setting: all.setting, micro_batch, blocks: blocks.clone() };
        findings.surveys.push(survey);
        let none = self.unchecked(point(Checkpointing::None), &blocks, full, findings);
        let selection = Selection::new(&blocks, none, full);
        let mut best: Option<(u64, usize)> = None;
        let mut tried: Vec<Blocks> = Vec::new();
        // In the eyes of the selection, which a try may correct.
        let mut budget = self.budget;
        while tried.len() < TRIES {
            let Some(chosen) = selection.cheapest(budget) else { break };
            let in_part = 0 < chosen.count() && (chosen.count() as usize) < blocks.len();
            let price = selection.price(chosen);
            let is_better = best.is_none_or(|(least, _)| price < least);
            if !in_part || !is_better || tried.contains(&chosen) {
                break;
            }
            tried.push(chosen);
            let index =
                findings.probe(prober, self.workload, point(Checkpointing::Blocks(chosen)))?;
            let measurement = &findings.measurements[index];
            let expected = selection.peak(chosen);
            match (measurement.verdict(self.budget), measurement.ran()) {
                (Verdict::Fits, Some(ran)) => {
                    best = Some((price, index));
                    budget = expected + self.budget.saturating_sub(ran.memory.device_peak);
                }
                // After one that fits, a cheaper one was worth a try, and no more.
                _ if best.is_some() => break,
                (Verdict::TooLarge, Some(ran)) => {
                    let over = ran.memory.device_peak.saturating_sub(self.budget);
                    budget = expected.saturating_sub(over);
                }
                // By how much is not known: half way to all blocks.
                (Verdict::TooLarge | Verdict::Tight, _) => {
                    let extra = expected.saturating_sub(full);
                    budget = full + Bytes(extra.get() / 2);
                }
                (Verdict::Fits | Verdict::Unknown, _) => break,
            }
        }
        Ok(Ok(best.map(|(_, index)| index)))
    }

    /// The peak of `point`, which checkpoints nothing: as measured, or on the line through the tries
    /// of the same setting, but no more than what all blocks save on top of the peak `full`. It is too
    /// large in any case.
    fn unchecked(
        &self,
        point: Point,
        blocks: &[BlockCost],
        full: Bytes,
        findings: &Findings,
    ) -> Bytes {
        let mut tries: Vec<(Point, Bytes, Bytes)> = findings
            .measurements
            .iter()
            .filter(|known| known.point.setting == point.setting)
            .filter_map(|known| {
                let memory = known.ran()?.memory;
                Some((known.point, memory.device_peak, memory.activations))
            })
            .collect();
        tries.sort_by_key(|(point, ..)| point.micro_batch);
        let saved: u64 = blocks.iter().map(|block| block.saved.get()).sum();
        let most = full + Bytes(saved);
        let size = |point: &Point| f64::from(point.micro_batch);
        let peak = match tries.as_slice() {
            [] => most,
            [.., (last, peak, _)] if *last == point => *peak,
            [.., (near, low, _), (far, high, _)] if far.micro_batch > near.micro_batch => {
                let slope = (high.get() as f64 - low.get() as f64) / (size(far) - size(near));
                Bytes((high.get() as f64 + slope * (size(&point) - size(far))).max(0.0) as u64)
            }
            [.., (far, high, activations)] => {
                let more = size(&point) / size(far) - 1.0;
                Bytes((high.get() as f64 + activations.get() as f64 * more).max(0.0) as u64)
            }
        };
        peak.min(most).max(self.budget + Bytes(1))
    }
}

/// Adds a search whose largest is `index`, unless its blocks were found for a larger micro-batch.
fn keep(findings: &mut Findings, index: usize) {
    let Point { setting, micro_batch, .. } = findings.measurements[index].point;
    let found = Searched { setting, largest: Some(index), successor: None, complete: true };
    let known = findings.searches.iter_mut().find(|searched| searched.setting == setting);
    match known {
        None => findings.searches.push(found),
        Some(known) => {
            let size = known.largest.map(|index| findings.measurements[index].point.micro_batch);
            if size.is_none_or(|size| size < micro_batch) {
                *known = found;
            }
        }
    }
}
