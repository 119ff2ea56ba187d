//! What does not fit lies in host memory, and steps wait for the bus.
//!
//! Steps while the GPU's memory is full are held against the steps before. The confidence is the share
//! of pairs, one of each, in which the one with full memory took longer, less the rest (Mann–Whitney);
//! less where the traffic on the bus is not known. Where memory is full from the beginning only the
//! traffic tells: training sends next to nothing to the host.

use serde::Serialize;

use super::finding::{Fault, Finding, Numbers, Worded};
use super::processes::{Process, processes, readings};
use super::recording::{Gpu, Reading, Recording};
use super::statistics::{self, median};
use crate::units::{Bytes, duration, significant};

/// Numbers of a spill.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spill {
    /// The GPU.
    pub gpu: u32,
    /// The most that was held of it.
    pub used: Bytes,
    /// All its memory.
    pub total: Bytes,
    /// Seconds of a step before memory was full, in the middle; none where it always was.
    pub before: Option<f64>,
    /// And while it was.
    pub full: f64,
    /// Bytes a second on the bus, both ways, before.
    pub traffic_before: Option<f64>,
    /// And while it was full.
    pub traffic: Option<f64>,
    /// Utilisation in percent while it was full.
    pub utilisation: Option<f64>,
}

/// Percent of the memory from which on it is full: the driver keeps the rest to itself.
const FULL: f64 = 97.0;
/// Steps of each kind that are needed.
const FEWEST: usize = 5;
/// So many times as long are steps of a program that spills, and where the bus cannot be seen.
const LONGER: f64 = 1.5;
const LONGER_UNSEEN: f64 = 2.0;
/// Bytes a second from which on a bus has traffic that no loader explains.
const BUSY: f64 = 500e6;
/// How much less sure it is where the bus is not seen.
const UNSEEN: f64 = 0.7;
/// How sure it is by traffic alone.
const BY_TRAFFIC: f64 = 0.6;
/// Chance of a difference by accident that counts as none.
const CHANCE: f64 = 1e-3;
/// A reading tells of what happens up to so many seconds from it.
const NEAR: f64 = 10.0;

pub(super) fn find(recording: &Recording) -> Option<Finding> {
    if !recording.watched.may_spill {
        return None;
    }
    let processes = processes(recording);
    let on = |gpu| processes.iter().filter_map(move |process| of_gpu(recording, gpu, process));
    let gpus = recording.watched.gpus.iter().filter(|gpu| !gpu.virtual_gpu);
    gpus.flat_map(on).max_by(|a, b| a.confidence.total_cmp(&b.confidence))
}

fn of_gpu(recording: &Recording, gpu: &Gpu, process: &Process<'_>) -> Option<Finding> {
    let readings = readings(recording, gpu.index);
    let is_full = |reading: &Reading| reading.used.0 as f64 >= gpu.total.0 as f64 * FULL / 100.0;
    let (mut before, mut full) = (Vec::new(), Vec::new());
    let mut times = Vec::new();
    for line in process.steady() {
        let Some(seconds) = line.seconds() else { continue };
        match (nearest(&readings, line.at).is_some_and(is_full), full.is_empty()) {
            (true, _) => {
                full.push(seconds);
                times.push(line.at);
            }
            (false, true) => before.push(seconds),
            // Steps after it was full are neither.
            (false, false) => {}
        }
    }
    if full.len() < FEWEST {
        return None;
    }
    let (from, until) = (*times.first()?, *times.last()?);
    let of = |reading: fn(&Reading) -> Option<f64>, in_full: bool| {
        let own = readings.iter().filter(|(at, it)| match in_full {
            true => (from..=until).contains(at) && is_full(it),
            false => *at < from && !is_full(it),
        });
        median(own.filter_map(|(_, it)| reading(it)))
    };
    let spill = Spill {
        gpu: gpu.index,
        used: readings.iter().map(|(_, it)| it.used).max().unwrap_or_default(),
        total: gpu.total,
        before: median(before.iter().copied()).filter(|_| before.len() >= FEWEST),
        full: median(full.iter().copied())?,
        traffic_before: of(traffic, false),
        traffic: of(traffic, true),
        utilisation: of(|it| it.utilisation.map(f64::from), true),
    };
    let confidence = match spill.before {
        Some(_) => {
            let clocks = of(clock, false).zip(of(clock, true));
            let by_clock = clocks.map_or(1.0, |(before, now)| (before / now.max(1.0)).max(1.0));
            by_steps(&spill, &before, &full, by_clock)
        }
        None => of(|it| it.sent.map(|sent| sent as f64), true)
            .filter(|sent| *sent >= BUSY)
            .map(|_| BY_TRAFFIC),
    };
    Some(Finding {
        fault: Fault::Spill,
        confidence: confidence?,
        from,
        until,
        pid: Some(process.pid),
        numbers: Numbers::Spill(spill),
    })
}

/// How sure it is by how much longer steps take, which a lower clock explains in part.
fn by_steps(spill: &Spill, before: &[f64], full: &[f64], by_clock: f64) -> Option<f64> {
    let longer = statistics::higher(before, full)?;
    let slower = spill.full / spill.before?;
    let busier = |now: f64| now >= BUSY && now >= 2.0 * spill.traffic_before.unwrap_or(0.0);
    let (needed, sure) = match spill.traffic.map(busier) {
        Some(true) => (LONGER, 1.0),
        Some(false) => return None,
        None => (LONGER_UNSEEN, UNSEEN),
    };
    let is_spill = longer.chance < CHANCE && slower >= needed * by_clock;
    is_spill.then_some((2.0 * longer.share - 1.0) * sure)
}

/// The last reading up to that time, or else the next, unless it is far away.
fn nearest<'a>(readings: &[(f64, &'a Reading)], at: f64) -> Option<&'a Reading> {
    let next = readings.partition_point(|reading| reading.0 <= at);
    let reading = readings.get(next.saturating_sub(1))?;
    ((reading.0 - at).abs() <= NEAR).then_some(reading.1)
}

fn traffic(reading: &Reading) -> Option<f64> {
    Some(reading.received? as f64 + reading.sent? as f64)
}

fn clock(reading: &Reading) -> Option<f64> {
    reading.clock.map(f64::from)
}

impl Worded for Spill {
    fn headline(&self) -> String {
        let gpu = self.gpu;
        match self.before {
            Some(before) => format!(
                "GPU {gpu} spills into host memory: steps take {} times as long since its memory is full",
                significant(self.full / before, 2)
            ),
            None => format!(
                "GPU {gpu} spills into host memory: it is full, and much is sent to the host all the time"
            ),
        }
    }

    fn evidence(&self) -> Vec<String> {
        let full = duration(self.full, 2);
        let mut lines = vec![
            format!("{} of {} held, at most", self.used, self.total),
            match self.before {
                Some(before) => format!("a step took {} before, {full} since", duration(before, 2)),
                None => format!("a step takes {full}; memory has been full from the beginning"),
            },
        ];
        let rate = |it: f64| format!("{}/s", Bytes(it as u64));
        lines.extend(self.traffic.map(|now| match self.traffic_before {
            Some(before) => format!("{} on the bus before, {} since", rate(before), rate(now)),
            None => format!("{} on the bus since", rate(now)),
        }));
        lines.extend(self.utilisation.map(|it| format!("utilisation {it} % since")));
        lines
    }

    fn remedies(&self) -> Vec<String> {
        [
            "let it fit: `vramfit plan` finds the micro-batch that does, with accumulation to keep the batch",
            "in Windows: NVIDIA Control Panel, Manage 3D settings, CUDA - Sysmem Fallback Policy: Prefer \
             No Sysmem Fallback; then it fails instead of crawling",
            "end what else holds the GPU's memory: browsers, games, other notebooks",
        ]
        .map(str::to_owned)
        .to_vec()
    }
}
