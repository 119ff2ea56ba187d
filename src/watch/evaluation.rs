//! Evaluation that keeps graphs.
//!
//! Looked at are phases without optimizer steps in which a model that is set to evaluate runs forward
//! twice or more and its results have graphs. A frozen teacher runs in each step and is no phase; where
//! backward passes follow (saliency, adversarial examples) the graph has a purpose. The graph is seen
//! directly; open is only whether something will use it, so the confidence is Laplace's rule of
//! succession over the passes that nothing has used.

use serde::Serialize;

use super::finding::{Fault, Finding, Numbers, Worded};
use super::growth::{Sample, growth};
use super::processes::{Process, processes};
use super::recording::{Pass, Recording};
use super::statistics::{median, succession};
use crate::units::{Bytes, count};

/// Numbers of an evaluation that keeps graphs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvaluationWithGraph {
    /// Class of the model.
    pub model: String,
    /// Of a distributed run.
    pub rank: Option<u32>,
    /// Phases in which it was seen.
    pub phases: usize,
    /// Passes with a graph in them.
    pub passes: usize,
    /// Held when such a pass is done, in the middle of them.
    pub held: Bytes,
    /// Of that, what was not held at the optimizer step before.
    pub more: Option<Bytes>,
    /// Held when a pass of the same model without a graph is done.
    pub without: Option<Bytes>,
    /// The highest peak in these phases.
    pub peak: Bytes,
    /// The highest peak of training.
    pub training_peak: Option<Bytes>,
    /// By how many bytes what is held grows from pass to pass: results are kept with their graphs.
    pub slope: Option<f64>,
    /// The program ran out of memory in such a phase.
    pub ran_out: bool,
}

/// Passes that make a phase.
const FEWEST: usize = 2;

pub(super) fn find(recording: &Recording) -> Option<Finding> {
    let processes = processes(recording);
    let found = processes.iter().flat_map(of_process);
    found.max_by_key(|finding| match &finding.numbers {
        Numbers::EvaluationWithGraph(it) => it.held,
        _ => Bytes::ZERO,
    })
}

/// What is found of each model.
fn of_process(process: &Process<'_>) -> Vec<Finding> {
    let mut models: Vec<&str> = process.passes.iter().map(|(_, it)| it.model.as_str()).collect();
    models.sort_unstable();
    models.dedup();
    models.into_iter().filter_map(|model| of_model(process, model)).collect()
}

fn of_model(process: &Process<'_>, model: &str) -> Option<Finding> {
    let own: Vec<(f64, &Pass)> =
        process.passes.iter().filter(|(_, it)| it.model == model).copied().collect();
    let phases: Vec<&[(f64, &Pass)]> = own.chunk_by(|a, b| a.1.step == b.1.step).collect();
    if is_companion(process, &phases) {
        return None;
    }
    let phases: Vec<_> =
        phases.into_iter().filter(|phase| phase.iter().filter(is_kept).count() >= FEWEST).collect();
    let with_graph = || phases.iter().flat_map(|phase| phase.iter()).filter(is_kept);
    let (from, until) = (with_graph().next()?.0, with_graph().next_back()?.0);
    let middle = |passes: Vec<f64>| median(passes).map(|it| Bytes(it as u64));
    let held = middle(with_graph().map(|(_, it)| it.allocated.0 as f64).collect())?;
    let before: Vec<f64> = phases
        .iter()
        .filter_map(|phase| {
            let (at, _) = phase.first()?;
            let before = process.steps.iter().rev().find(|line| line.at <= *at)?;
            Some(before.step.allocated.0 as f64)
        })
        .collect();
    let without = own.iter().filter(|it| !it.1.has_graph).map(|(_, it)| it.allocated.0 as f64);
    let passes = with_graph().count();
    let numbers = EvaluationWithGraph {
        model: model.to_owned(),
        rank: process.rank,
        phases: phases.len(),
        passes,
        held,
        more: middle(before).map(|before| held.saturating_sub(before)),
        without: middle(without.collect()),
        peak: with_graph().map(|(_, it)| it.allocated_peak).max()?,
        training_peak: process.steps.iter().map(|it| it.step.allocated_peak).max(),
        slope: phases.iter().filter_map(|phase| slope(phase)).max_by(f64::total_cmp),
        ran_out: process.out_of_memory.iter().any(|(at, _)| {
            let stepped = process.steps.iter().any(|line| line.at > until && line.at <= *at);
            *at >= until && !stepped
        }),
    };
    Some(Finding {
        fault: Fault::EvaluationWithGraph,
        confidence: succession(passes),
        from,
        until,
        pid: Some(process.pid),
        numbers: Numbers::EvaluationWithGraph(numbers),
    })
}

/// Whether a model runs along with each step, as a frozen teacher does. Only at the beginning every pass
/// and every step has a line.
fn is_companion(process: &Process<'_>, between: &[&[(f64, &Pass)]]) -> bool {
    let passes = between.iter().filter_map(|passes| passes.first()).map(|pass| pass.1.step);
    let steps = process.steps.iter().map(|line| line.step.step);
    first_gap(passes).is_some_and(|own| own <= first_gap(steps).unwrap_or(1.0))
}

/// Steps from one to the next of the first few, in the middle.
fn first_gap(steps: impl Iterator<Item = u64>) -> Option<f64> {
    const FIRST: usize = 6;
    let first: Vec<u64> = steps.take(FIRST).collect();
    let gaps = first.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64);
    if first.len() < 3 { None } else { median(gaps) }
}

/// Whether a pass has a graph that nothing runs backward.
fn is_kept(pass: &&(f64, &Pass)) -> bool {
    pass.1.has_graph && !pass.1.trained
}

fn slope(phase: &[(f64, &Pass)]) -> Option<f64> {
    let samples: Vec<Sample> = phase
        .iter()
        .enumerate()
        .map(|(index, (_, pass))| Sample {
            at: index as f64,
            level: pass.allocated.0 as f64,
            transient: pass.allocated_peak.saturating_sub(pass.allocated).0 as f64,
        })
        .collect();
    growth(samples.get(1..)?, Bytes::mib(1).0 as f64, 4).map(|it| it.slope)
}

impl Worded for EvaluationWithGraph {
    fn headline(&self) -> String {
        let model = &self.model;
        let on = self.rank.map_or_else(String::new, |rank| format!(" on rank {rank}"));
        let more = match (self.without, self.more) {
            (Some(without), _) if self.held > without => {
                format!("{} more than without", self.held.saturating_sub(without))
            }
            (_, Some(more)) if more > Bytes::ZERO => format!("{more} more than after a step"),
            _ => format!("{} held", self.held),
        };
        format!("evaluation of `{model}`{on} keeps graphs that nothing runs backward: {more}")
    }

    fn evidence(&self) -> Vec<String> {
        let passes = match self.phases {
            1 => "in 1 phase".to_owned(),
            phases => format!("in {phases} phases"),
        };
        let mut lines = vec![format!(
            "{} forward passes in evaluation mode with a graph, {passes} without optimizer steps",
            count(self.passes as u64)
        )];
        let held = format!("{} held when such a pass is done", self.held);
        lines.push(match self.without {
            Some(without) => format!("{held}, {without} where there is no graph"),
            None => held,
        });
        lines.push(match self.training_peak {
            Some(training) => format!("peak {} there, {training} in training", self.peak),
            None => format!("peak {} there", self.peak),
        });
        lines.extend(self.slope.map(|slope| {
            let slope = Bytes(slope.max(0.0) as u64);
            format!("{slope} more with each pass: results are kept with their graphs")
        }));
        if self.ran_out {
            lines.push("the program ran out of memory there".to_owned());
        }
        lines
    }

    fn remedies(&self) -> Vec<String> {
        let mut remedies = vec![
            "evaluate under `with torch.inference_mode():`, or `torch.no_grad()`; `model.eval()` alone \
             switches dropout and batch norm"
                .to_owned(),
        ];
        if self.slope.is_some() {
            remedies.push(
                "keep results as `output.detach().cpu()`, or only what is counted of them"
                    .to_owned(),
            );
        }
        remedies.push("then a larger batch fits for evaluation than for training".to_owned());
        remedies
    }
}
