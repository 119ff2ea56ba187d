//! The GPU waits for data.
//!
//! Where the loader's share of each step is known, that is it: the run is cut into eight parts, and the
//! confidence is Laplace's rule of succession over those in which the loader takes long. Where nothing
//! of the program is known, a low utilisation that comes and goes in a rhythm is a weaker sign: the
//! confidence is half the autocorrelation of the rhythm.

use serde::Serialize;

use super::finding::{Fault, Finding, Numbers, Worded};
use super::processes::{Process, processes, readings};
use super::recording::{Gpu, Recording};
use super::rhythm::{interval, rhythm};
use super::statistics::{median, quantile, succession};
use crate::units::{duration, significant};

/// Numbers of a starvation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Starvation {
    /// Of a distributed run.
    pub rank: Option<u32>,
    /// The GPU, where no steps are known.
    pub gpu: Option<u32>,
    /// Share of the time in which the program waits for its loader, or the GPU idles.
    pub share: f64,
    /// Seconds that a step takes, in the middle.
    pub seconds: Option<f64>,
    /// Seconds of waiting in a step, on average.
    pub waiting: Option<f64>,
    /// Of all waiting, what falls on the tenth of the steps that wait longest.
    pub in_few: Option<f64>,
    /// Utilisation in percent, in the middle.
    pub utilisation: Option<f64>,
    /// Seconds from gap to gap, where no steps are known.
    pub period: Option<f64>,
}

/// Share of the time from which on waiting matters.
const SHARE: f64 = 0.2;
/// Parts of the run, and in how many of them it must wait.
const PARTS: usize = 8;
const MOST_PARTS: usize = 6;
/// Utilisation in percent from which on the GPU has enough to do, whatever the host waits for.
const BUSY: f64 = 90.0;
/// How much less sure it is where utilisation is not known: the host may wait while the GPU works.
const UNSEEN: f64 = 0.7;
/// Waiting is concentrated if a tenth of the steps has so much of it.
const FEW: f64 = 0.8;
/// Readings that are needed where there is nothing else.
const FEWEST_READINGS: usize = 30;
/// Mean utilisation in percent below which a GPU idles much.
const IDLE: f64 = 60.0;
/// Autocorrelation from which on gaps come in a rhythm.
const RHYTHM: f64 = 0.4;
/// How much a rhythm says of its cause: data, or anything else that the host does in each step.
const BY_RHYTHM: f64 = 0.5;

pub(super) fn find(recording: &Recording) -> Option<Finding> {
    let processes = processes(recording);
    let known = processes
        .iter()
        .any(|process| process.steady().iter().any(|line| line.waiting().is_some()));
    let found: Vec<Finding> = match known {
        true => processes.iter().filter_map(|it| of_steps(recording, it)).collect(),
        false => {
            let gpus = recording.watched.gpus.iter().filter(|gpu| !gpu.virtual_gpu);
            gpus.filter_map(|gpu| of_readings(recording, gpu)).collect()
        }
    };
    found.into_iter().max_by(|a, b| share(a).total_cmp(&share(b)))
}

fn share(finding: &Finding) -> f64 {
    match &finding.numbers {
        Numbers::Starvation(it) => it.share,
        _ => 0.0,
    }
}

fn of_steps(recording: &Recording, process: &Process<'_>) -> Option<Finding> {
    let steps: Vec<(f64, f64, f64)> = process
        .steady()
        .iter()
        .filter_map(|line| Some((line.at, line.seconds()?, line.waiting()?)))
        .collect();
    if steps.len() < PARTS {
        return None;
    }
    let waits = |part: &[(f64, f64, f64)]| {
        let (all, waiting) = sums(part);
        waiting / all
    };
    let starved = (0..PARTS)
        .map(|part| &steps[part * steps.len() / PARTS..(part + 1) * steps.len() / PARTS])
        .filter(|part| waits(part) >= SHARE)
        .count();
    let (from, until) = (steps.first()?.0, steps.last()?.0);
    let utilisation = utilisation(recording, from, until);
    if starved < MOST_PARTS || waits(&steps) < SHARE || utilisation.is_some_and(|it| it >= BUSY) {
        return None;
    }
    let is_seen = utilisation.is_some() || recording.watched.gpus.iter().all(|gpu| gpu.virtual_gpu);
    let waiting: Vec<f64> = steps.iter().map(|step| step.2).collect();
    let all: f64 = waiting.iter().sum();
    let long = quantile(waiting.iter().copied(), 0.9)?;
    let in_few: f64 = waiting.iter().filter(|it| **it > long).sum();
    Some(Finding {
        fault: Fault::Starvation,
        confidence: succession(starved) * if is_seen { 1.0 } else { UNSEEN },
        from,
        until,
        pid: Some(process.pid),
        numbers: Numbers::Starvation(Starvation {
            rank: process.rank,
            gpu: None,
            share: waits(&steps),
            seconds: median(steps.iter().map(|step| step.1)),
            waiting: Some(all / steps.len() as f64),
            in_few: Some(in_few / all),
            utilisation,
            period: None,
        }),
    })
}

fn sums(steps: &[(f64, f64, f64)]) -> (f64, f64) {
    steps.iter().fold((0.0, 0.0), |(all, waiting), step| (all + step.1, waiting + step.2))
}

/// Of the busiest GPU, which tells whether waiting costs anything: the host may run ahead of it.
fn utilisation(recording: &Recording, from: f64, until: f64) -> Option<f64> {
    let of_gpu = |gpu: &Gpu| {
        let readings = readings(recording, gpu.index);
        let within = readings.iter().filter(|(at, _)| (from..=until).contains(at));
        median(within.filter_map(|(_, it)| it.utilisation).map(f64::from))
    };
    recording.watched.gpus.iter().filter_map(of_gpu).max_by(f64::total_cmp)
}

fn of_readings(recording: &Recording, gpu: &Gpu) -> Option<Finding> {
    const WORKS: f64 = 10.0;
    let all: Vec<(f64, f64)> = readings(recording, gpu.index)
        .into_iter()
        .filter_map(|(at, it)| Some((at, f64::from(it.utilisation?))))
        .collect();
    let first = all.iter().position(|it| it.1 >= WORKS)?;
    let last = all.iter().rposition(|it| it.1 >= WORKS)?;
    let working = &all[first..=last];
    let mean = working.iter().map(|it| it.1).sum::<f64>() / working.len() as f64;
    if working.len() < FEWEST_READINGS || mean >= IDLE {
        return None;
    }
    let values: Vec<f64> = working.iter().map(|it| it.1).collect();
    let times: Vec<f64> = working.iter().map(|it| it.0).collect();
    let found = rhythm(&values).filter(|it| it.strength >= RHYTHM)?;
    Some(Finding {
        fault: Fault::Starvation,
        confidence: BY_RHYTHM * found.strength.min(1.0),
        from: working.first()?.0,
        until: working.last()?.0,
        pid: None,
        numbers: Numbers::Starvation(Starvation {
            rank: None,
            gpu: Some(gpu.index),
            share: 1.0 - mean / 100.0,
            seconds: None,
            waiting: None,
            in_few: None,
            utilisation: median(values),
            period: interval(&times).map(|it| it * found.period as f64),
        }),
    })
}

impl Starvation {
    fn percent(&self) -> String {
        format!("{:.0} %", 100.0 * self.share)
    }

    /// Most of the waiting is in few steps: those that begin an epoch.
    fn is_concentrated(&self) -> bool {
        self.in_few.is_some_and(|it| it >= FEW)
    }
}

impl Worded for Starvation {
    fn headline(&self) -> String {
        match self.gpu {
            None => format!("the GPU waits for the loader: {} of the time", self.percent()),
            Some(gpu) => format!(
                "GPU {gpu} idles in {} of the time, in a rhythm: it may wait for data",
                self.percent()
            ),
        }
    }

    fn evidence(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(waiting), Some(seconds)) = (self.waiting, self.seconds) {
            lines.push(format!(
                "{} of waiting for the DataLoader in a step, on average, which takes {} in the middle",
                duration(waiting, 2),
                duration(seconds, 2)
            ));
        }
        if let Some(in_few) = self.in_few.filter(|_| self.is_concentrated()) {
            lines.push(format!("{:.0} % of it in a tenth of the steps", 100.0 * in_few));
        }
        lines.extend(self.utilisation.map(|it| format!("utilisation {it:.0} % in the middle")));
        lines.extend(self.period.map(|it| format!("a gap each {} s", significant(it, 2))));
        if self.gpu.is_some() {
            lines.push("what the program does in the gaps is not known".to_owned());
        }
        lines
    }

    fn remedies(&self) -> Vec<String> {
        let workers =
            "load beside the training: more `DataLoader(num_workers=…)`, up to the CPU's cores";
        let persistent =
            "keep the workers from epoch to epoch: `DataLoader(persistent_workers=True)`";
        let prefetch = "let workers run further ahead: `DataLoader(prefetch_factor=4)`";
        let pinned =
            "let copies overlap: `DataLoader(pin_memory=True)`, `x.to(device, non_blocking=True)`";
        let small = "load uint8 or fp16 and cast on the GPU: a quarter or half of the bytes";
        let cache = "decode and resize once beforehand, or keep the data in memory";
        let order = match self.is_concentrated() {
            true => [persistent, prefetch, workers, pinned, cache, small],
            false => [workers, pinned, cache, small, prefetch, persistent],
        };
        order.map(str::to_owned).to_vec()
    }
}
