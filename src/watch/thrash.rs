//! The allocator gives its cache back to the driver to get memory, step after step.
//!
//! Retries during warm-up are usual; looked at are those after it. The confidence is Laplace's rule of
//! succession over the steps that had some.

use serde::Serialize;

use super::finding::{Fault, Finding, Numbers, Worded};
use super::processes::{Line, Process, processes};
use super::recording::Recording;
use super::statistics::{median, succession};
use crate::units::{Bytes, count, duration, significant};

/// Numbers of a thrash.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Thrash {
    /// Of a distributed run.
    pub rank: Option<u32>,
    /// How often the allocator had to flush its cache.
    pub retries: u64,
    /// Steps in which it did.
    pub steps: usize,
    /// Steps that were looked at.
    pub of: usize,
    /// Seconds of a step with a flush, in the middle.
    pub seconds: Option<f64>,
    /// And of one without.
    pub seconds_without: Option<f64>,
    /// The most that tensors held.
    pub allocated: Bytes,
    /// The most that the allocator held.
    pub reserved: Bytes,
    /// The program ran out of memory.
    pub ran_out: bool,
}

/// Steps with retries that are needed.
const FEWEST: usize = 3;
/// And their share of all.
const SHARE: f64 = 0.02;

pub(super) fn find(recording: &Recording) -> Option<Finding> {
    let found = processes(recording).iter().filter_map(of_process).collect::<Vec<_>>();
    found.into_iter().max_by(|a, b| a.confidence.total_cmp(&b.confidence))
}

fn of_process(process: &Process<'_>) -> Option<Finding> {
    let steps = process.steady();
    let retried: Vec<&Line<'_>> = steps.iter().filter(|line| line.step.retries > 0).collect();
    let second_half = steps.get(steps.len() / 2)?.at;
    let (from, until) = (retried.first()?.at, retried.last()?.at);
    let often = retried.len() >= FEWEST && retried.len() as f64 >= SHARE * steps.len() as f64;
    if !often || until < second_half {
        return None;
    }
    let seconds = |with: bool| {
        let own = steps.iter().filter(|line| (line.step.retries > 0) == with);
        median(own.filter_map(Line::seconds))
    };
    let thrash = Thrash {
        rank: process.rank,
        retries: retried.iter().fold(0, |sum: u64, line| sum.saturating_add(line.step.retries)),
        steps: retried.len(),
        of: steps.len(),
        seconds: seconds(true),
        seconds_without: seconds(false),
        allocated: steps.iter().map(|it| it.step.allocated_peak).max().unwrap_or_default(),
        reserved: steps.iter().map(|it| it.step.reserved).max().unwrap_or_default(),
        ran_out: !process.out_of_memory.is_empty(),
    };
    Some(Finding {
        fault: Fault::Thrash,
        confidence: succession(retried.len()),
        from,
        until,
        pid: Some(process.pid),
        numbers: Numbers::Thrash(thrash),
    })
}

impl Worded for Thrash {
    fn headline(&self) -> String {
        let on = self.rank.map_or_else(String::new, |rank| format!(" on rank {rank}"));
        format!(
            "the allocator runs short{on}: it flushes its cache in {} % of the steps",
            significant(100.0 * self.steps as f64 / self.of as f64, 2)
        )
    }

    fn evidence(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} flushes in {} of {} steps after warm-up",
            count(self.retries),
            count(self.steps as u64),
            count(self.of as u64)
        )];
        if let (Some(with), Some(without)) = (self.seconds, self.seconds_without) {
            lines.push(format!(
                "a step with one takes {}, one without {}",
                duration(with, 2),
                duration(without, 2)
            ));
        }
        lines.push(format!(
            "tensors hold up to {}, the allocator up to {}",
            self.allocated, self.reserved
        ));
        if self.ran_out {
            lines.push("it ran out of memory, too".to_owned());
        }
        lines
    }

    fn remedies(&self) -> Vec<String> {
        let mut remedies = vec![
            "take a micro-batch that leaves room, and accumulate: `vramfit plan` finds it"
                .to_owned(),
            "`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` wastes less between blocks (Linux)"
                .to_owned(),
            "where batches vary in length, sort them into buckets, or begin with the longest"
                .to_owned(),
        ];
        // Much that is held by no tensor is what lies between them.
        if self.reserved.0 as f64 > 1.2 * self.allocated.0 as f64 {
            remedies.swap(0, 1);
        }
        remedies
    }
}
