//! The GPU's clock is held back while it works.
//!
//! Drivers tell the reasons, so that what is open is only whether they last: the confidence is Laplace's
//! rule of succession over the readings with a reason, less where no clock is known. That a card draws
//! all it may is usual under load; it counts only where its clock is far below the highest.

use std::collections::BTreeMap;

use serde::Serialize;

use super::finding::{Fault, Finding, Numbers, Worded};
use super::processes::readings;
use super::recording::{Gpu, Reading, Recording, Slowdown};
use super::statistics::{median, quantile, succession};

/// Numbers of a throttle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Throttle {
    /// The GPU.
    pub gpu: u32,
    /// NVML's name for it.
    pub name: String,
    /// A laptop's.
    pub laptop: bool,
    /// Share of the time under load for each reason.
    pub reasons: BTreeMap<Slowdown, f64>,
    /// Share of the time under load in which it was held back.
    pub share: f64,
    /// Readings under load.
    pub readings: usize,
    /// The clock while it was held back, in MHz, in the middle.
    pub clock: Option<f64>,
    /// The clock under load while it was not, near its highest.
    pub free_clock: Option<f64>,
    /// The highest that the GPU has.
    pub highest_clock: Option<u32>,
    /// The highest temperature in degrees Celsius.
    pub temperature: Option<u32>,
    /// Watts drawn while it was held back.
    pub power: Option<f64>,
    /// Watts that it may draw.
    pub power_limit: Option<f64>,
}

/// From this utilisation on, in percent, a GPU is under load.
const LOADED: u32 = 50;
/// Readings under load that are needed.
const FEWEST: usize = 10;
/// Share of the time under load from which on it matters.
const SHARE: f64 = 0.05;
/// And the share of its speed that is lost over the whole time. A driver that keeps a card at its
/// target temperature takes less.
const LOST: f64 = 0.05;
/// A power cap is usual; below this share of the highest clock it is not. A server's card without much
/// power (T4) works at half of it.
const CAPPED: f64 = 0.5;
/// On a laptop, whose maker's modes and power supplies decide.
const CAPPED_LAPTOP: f64 = 0.6;
/// A free clock is as much of the highest, where none was seen: boost falls with warmth and load.
const USUAL: f64 = 0.85;
/// Share of time from which on a reason counts where no clocks are known, and how sure it is then.
const SHARE_UNSEEN: f64 = 0.25;
const UNSEEN: f64 = 0.6;

pub(super) fn find(recording: &Recording) -> Option<Finding> {
    let gpus = recording.watched.gpus.iter().filter(|gpu| !gpu.virtual_gpu);
    let found = gpus.filter_map(|gpu| of_gpu(recording, gpu));
    found.max_by(|a, b| a.confidence.total_cmp(&b.confidence))
}

fn of_gpu(recording: &Recording, gpu: &Gpu) -> Option<Finding> {
    let all = readings(recording, gpu.index);
    let loaded: Vec<_> = all.into_iter().filter(|(_, it)| is_loaded(it, gpu)).collect();
    if loaded.len() < FEWEST {
        return None;
    }
    let free = loaded.iter().filter(|(_, it)| it.slowdowns.is_empty());
    let clocks: Vec<f64> = free.filter_map(|(_, it)| it.clock).map(f64::from).collect();
    let free_clock = match clocks.len() {
        ..5 => None,
        _ => quantile(clocks, 0.95),
    };
    let highest = gpu.highest_clock.map(f64::from);
    let reference = free_clock.or(highest.map(|it| it * USUAL));
    let held: Vec<_> = loaded.iter().filter(|(_, it)| holds(it, gpu)).collect();
    let share = held.len() as f64 / loaded.len() as f64;
    let clock = median(held.iter().filter_map(|(_, it)| it.clock).map(f64::from));
    let lost = clock.zip(reference).map(|(clock, free)| share * (1.0 - clock / free));
    let matters = match lost {
        Some(lost) => share >= SHARE && lost >= LOST,
        None => share >= SHARE_UNSEEN,
    };
    if !matters {
        return None;
    }
    let mut reasons = BTreeMap::new();
    for reason in held.iter().flat_map(|(_, it)| &it.slowdowns) {
        *reasons.entry(*reason).or_insert(0.0) += 1.0 / loaded.len() as f64;
    }
    let watts = |milliwatts: f64| milliwatts / 1000.0;
    Some(Finding {
        fault: Fault::Throttle,
        confidence: succession(held.len()) * if lost.is_some() { 1.0 } else { UNSEEN },
        from: held.first()?.0,
        until: held.last()?.0,
        pid: None,
        numbers: Numbers::Throttle(Throttle {
            gpu: gpu.index,
            name: gpu.name.clone(),
            laptop: gpu.laptop,
            reasons,
            share,
            readings: loaded.len(),
            clock,
            free_clock,
            highest_clock: gpu.highest_clock,
            temperature: held.iter().filter_map(|(_, it)| it.temperature).max(),
            power: median(held.iter().filter_map(|(_, it)| it.power).map(f64::from)).map(watts),
            power_limit: gpu.power_limit.map(f64::from).map(watts),
        }),
    })
}

/// Whether it works; idle GPUs have reasons of their own to be slow.
fn is_loaded(reading: &Reading, gpu: &Gpu) -> bool {
    match (reading.utilisation, reading.power, gpu.power_limit) {
        (Some(utilisation), ..) => utilisation >= LOADED,
        (None, Some(power), Some(limit)) => power >= limit / 2,
        _ => false,
    }
}

/// Whether a reason holds it back that is not just usual.
fn holds(reading: &Reading, gpu: &Gpu) -> bool {
    let far_below = match (reading.clock, gpu.highest_clock) {
        (Some(clock), Some(highest)) => {
            let usual = if gpu.laptop { CAPPED_LAPTOP } else { CAPPED };
            f64::from(clock) < usual * f64::from(highest)
        }
        _ => false,
    };
    reading.slowdowns.iter().any(|it| *it != Slowdown::PowerCap || far_below)
}

impl Slowdown {
    /// As the part of a sentence that begins with "held back by".
    fn words(self) -> &'static str {
        match self {
            Self::PowerCap => "its power limit",
            Self::Heat => "heat, by the driver",
            Self::HardwareHeat => "heat, by the hardware",
            Self::PowerBrake => "the power supply",
            Self::Hardware => "the hardware, for heat or power",
        }
    }
}

impl Throttle {
    /// The reasons, the most frequent first.
    fn by_share(&self) -> Vec<(Slowdown, f64)> {
        let mut reasons: Vec<_> =
            self.reasons.iter().map(|(reason, share)| (*reason, *share)).collect();
        reasons.sort_by(|a, b| b.1.total_cmp(&a.1));
        reasons
    }

    fn has(&self, reason: Slowdown) -> bool {
        self.reasons.contains_key(&reason)
    }
}

/// A share in percent.
fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

impl Worded for Throttle {
    fn headline(&self) -> String {
        let reason = self.by_share().first().map_or("the driver", |it| it.0.words());
        let clocks = match (self.clock, self.highest_clock) {
            (Some(clock), Some(highest)) => format!(": {clock:.0} of {highest} MHz"),
            (Some(clock), None) => format!(": {clock:.0} MHz"),
            _ => String::new(),
        };
        format!(
            "GPU {} is held back by {reason} in {} of its time under load{clocks}",
            self.gpu,
            percent(self.share)
        )
    }

    fn evidence(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .by_share()
            .into_iter()
            .map(|(reason, share)| format!("{} in {} of the time", reason.words(), percent(share)))
            .collect();
        lines.push(format!("{} readings under load", self.readings));
        lines.extend(self.clock.map(|clock| match self.free_clock {
            Some(free) => format!("{clock:.0} MHz then, {free:.0} MHz where nothing held it back"),
            None => format!("{clock:.0} MHz then"),
        }));
        lines.extend(self.temperature.map(|it| format!("up to {it} °C")));
        lines.extend(self.power.map(|power| match self.power_limit {
            Some(limit) => format!("{power:.0} W drawn, of {limit:.0} W allowed"),
            None => format!("{power:.0} W drawn"),
        }));
        lines
    }

    fn remedies(&self) -> Vec<String> {
        let heat = self.has(Slowdown::Heat) || self.has(Slowdown::HardwareHeat);
        let hardware = self.has(Slowdown::Hardware);
        let brake = self.has(Slowdown::PowerBrake) || (hardware && !heat);
        let cap = self.has(Slowdown::PowerCap);
        let less = match self.power_limit {
            Some(limit) => format!(
                "draw less: `sudo nvidia-smi -pl {:.0}` costs little speed and much heat",
                0.8 * limit
            ),
            None => "draw less: a lower power limit or an undervolted card costs little speed"
                .to_owned(),
        };
        let steady =
            "a smaller load: mixed precision, or a shorter stretch with pauses between".to_owned();
        let mut remedies = Vec::new();
        match self.laptop {
            true => {
                if brake || cap {
                    remedies.push(
                        "plug in the laptop's own power supply; USB-C and batteries give the GPU less"
                            .to_owned(),
                    );
                    remedies.push("choose the performance mode of the laptop's maker".to_owned());
                }
                if heat {
                    remedies.push(
                        "let air in: raise the laptop, clean its fans, turn them up".to_owned(),
                    );
                    remedies.push(less);
                    remedies.push(steady);
                }
            }
            false => {
                if brake {
                    remedies.push(
                        "check the power supply and the cables to the card: each connector on a cable of \
                         its own"
                            .to_owned(),
                    );
                }
                if heat {
                    remedies
                        .push("let air in: clean filters and fans, a faster fan curve".to_owned());
                    remedies.push(less);
                }
                if cap {
                    remedies.push(
                        "`nvidia-smi -q -d POWER` tells the limit and the highest; `sudo nvidia-smi -pl \
                         WATTS` sets it"
                            .to_owned(),
                    );
                }
            }
        }
        remedies
    }
}
