//! Which share of its best a card reaches, as found out by comparing with measurements:
//! `profiles/calibrations/*.toml`, one of each card that was measured and one of each architecture.

use serde::{Deserialize, Serialize};
use vramfit_vgpu_cost::Efficiency;

use super::check::Check;
use super::gpu::{ComputeCapability, GpuProfile};

/// The constants of the cost model for a card or an architecture, read from one file whose stem is its
/// name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The file's stem.
    pub name: String,
    /// Profiles of the cards that were measured; empty of an architecture's.
    #[serde(default)]
    pub gpus: Vec<String>,
    /// Compute capabilities that it stands for where no card's own is there.
    #[serde(default)]
    pub capabilities: Vec<ComputeCapability>,
    /// Median of the relative error of step times on measurements that the constants were not fitted to,
    /// or that of the nearest architecture for which there are some.
    pub error: f64,
    /// What it was fitted to, and what the error is from.
    pub source: String,
    /// The constants.
    pub efficiency: Efficiency,
}

impl Calibration {
    /// Whether the card itself was measured, not only others of its architecture.
    pub fn is_of(&self, gpu: &GpuProfile) -> bool {
        self.gpus.contains(&gpu.name)
    }
}

/// The one among `all` for `gpu`: the card's own, else its architecture's, else that of the next older
/// one, else the oldest.
pub(super) fn choose(all: Vec<Calibration>, gpu: &GpuProfile) -> Option<Calibration> {
    let capability = gpu.compute_capability.value;
    let older =
        |it: &Calibration| it.capabilities.iter().filter(|it| **it <= capability).max().copied();
    let own = all.iter().find(|it| it.is_of(gpu));
    own.or_else(|| all.iter().filter(|it| older(it).is_some()).max_by_key(|it| older(it)))
        .or_else(|| {
            all.iter()
                .filter(|it| !it.capabilities.is_empty())
                .min_by_key(|it| it.capabilities.iter().min())
        })
        .cloned()
}

impl Check for Calibration {
    fn name(&self) -> &str {
        &self.name
    }

    fn contradiction(&self) -> Option<String> {
        if self.gpus.is_empty() && self.capabilities.is_empty() {
            return Some("it is of no card and of no architecture".to_owned());
        }
        if self.source.trim().is_empty() {
            return Some("`source` is empty".to_owned());
        }
        if !(self.error > 0.0 && self.error < 1.0) {
            return Some(format!("an `error` of {} is no share between 0 and 1", self.error));
        }
        self.efficiency.contradiction()
    }
}
