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
    /// Profiles of cards that nobody measured and that are built and sold like those.
    #[serde(default)]
    pub cards: Vec<String>,
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

/// The one among `all` for `gpu`: the card's own, else that of a card like it, else its architecture's,
/// else that of the next older one, else the oldest.
pub(super) fn choose(all: Vec<Calibration>, gpu: &GpuProfile) -> Option<Calibration> {
    let capability = gpu.compute_capability.value;
    let older =
        |it: &Calibration| it.capabilities.iter().filter(|it| **it <= capability).max().copied();
    let own = all.iter().find(|it| it.is_of(gpu));
    let of_kin = || all.iter().find(|it| it.cards.contains(&gpu.name));
    own.or_else(of_kin)
        .or_else(|| all.iter().filter(|it| older(it).is_some()).max_by_key(|it| older(it)))
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
        if self.gpus.is_empty() && self.cards.is_empty() && self.capabilities.is_empty() {
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

#[cfg(test)]
mod tests {
    use vramfit_vgpu_cost::{Arithmetic, Product, Work, price};

    use super::*;
    use crate::profile::Catalog;

    #[test]
    fn every_card_has_a_calibration() {
        let catalog = Catalog::built_in();
        for gpu in catalog.gpus().unwrap() {
            let gpu = catalog.calibrated(gpu).unwrap();
            assert!(gpu.calibration.is_some(), "{}", gpu.name);
        }
    }

    #[test]
    fn cards_of_calibrations_are_in_the_catalog() {
        let catalog = Catalog::built_in();
        for calibration in catalog.calibrations().unwrap() {
            for gpu in calibration.gpus.iter().chain(&calibration.cards) {
                assert!(catalog.gpu(gpu).is_ok(), "`{gpu}` of `{}`", calibration.name);
            }
        }
    }

    #[test]
    fn a_large_product_on_tensor_cores_takes_no_longer_in_fp16_than_in_fp32_on_any_card() {
        let catalog = Catalog::built_in();
        let product = |arithmetic, bytes| {
            Work::Product(Product {
                m: 4096,
                n: 4096,
                k: 4096,
                batch: 1,
                arithmetic,
                input_bytes: bytes,
                output_bytes: bytes,
            })
        };
        for gpu in catalog.gpus().unwrap().into_iter().filter(GpuProfile::has_tensor_cores) {
            let speed = catalog.calibrated(gpu.clone()).unwrap().speed();
            let seconds = |arithmetic, bytes| price(&product(arithmetic, bytes), &speed).seconds;
            let (fp16, fp32) = (seconds(Arithmetic::Fp16, 2), seconds(Arithmetic::Fp32, 4));
            assert!(fp16 <= fp32, "{}: {fp16} s in fp16, {fp32} s in fp32", gpu.name);
            if gpu.compute_capability.value.has_tf32() {
                let tf32 = seconds(Arithmetic::Tf32, 4);
                assert!(fp16 <= tf32, "{}: {fp16} s in fp16, {tf32} s in TF32", gpu.name);
            }
        }
    }

    #[test]
    fn a_card_of_no_calibrated_architecture_gets_the_next_older_one() {
        let named = |name: &str, capabilities: &[&str]| Calibration {
            name: name.to_owned(),
            gpus: Vec::new(),
            cards: Vec::new(),
            capabilities: capabilities.iter().map(|it| it.parse().unwrap()).collect(),
            error: 0.1,
            source: "test".to_owned(),
            efficiency: Efficiency::default(),
        };
        let all = vec![named("new", &["8.9"]), named("old", &["7.5", "8.0"])];
        let chosen = |gpu: &str| {
            let gpu = Catalog::built_in().gpu(gpu).unwrap();
            choose(all.clone(), &gpu).unwrap().name
        };
        assert_eq!(chosen("rtx-4090"), "new");
        assert_eq!(chosen("rtx-3090"), "old");
        assert_eq!(chosen("rtx-5090"), "new");
        assert_eq!(chosen("p100-16gb"), "old");
    }
}
