//! What every prober does alike: how many steps it runs, and what it knows of its GPU.

use super::protocol::Hello;
use crate::device::{Gpu, Sight};
use crate::measurement::{Evidence, EvidenceKind};
use crate::units::Bytes;

/// Optimizer steps of a probe: state is created in the first, and only the second sees it in full.
pub(super) const STEPS: u32 = 2;
/// More of them where their time counts as well: the first two warm up.
const TIMED_STEPS: u32 = 5;

/// Optimizer steps that a point runs.
pub(super) fn steps(gpu: &Gpu) -> u32 {
    match gpu.kind() {
        EvidenceKind::Real => TIMED_STEPS,
        EvidenceKind::Virtual => STEPS,
    }
}

/// Where a measurement on `gpu` comes from; without `hello` the versions are not known.
pub(super) fn evidence(gpu: &Gpu, hello: Option<&Hello>) -> Evidence {
    let Hello { torch, cuda, cudnn, .. } = hello.cloned().unwrap_or_default();
    Evidence {
        kind: gpu.kind(),
        gpu: gpu.product().to_owned(),
        driver: gpu.driver().to_owned(),
        torch,
        cuda,
        cudnn,
    }
}

/// What blurred the readings of a GPU, over all points.
#[derive(Debug, Default)]
pub(super) struct Blur {
    /// NVML did not name the process at some point.
    pub(super) unnamed: bool,
    /// The most that the memory of others grew by during one point.
    pub(super) others_grew: Bytes,
}

impl Blur {
    /// Takes in what was seen of a point.
    pub(super) fn take_in(&mut self, sight: &Sight) {
        self.unnamed |= !sight.by_process;
        if sight.by_process {
            let grew = sight.others_peak.saturating_sub(sight.others_least);
            self.others_grew = self.others_grew.max(grew);
        }
    }
}
