use serde::{Deserialize, Serialize};

use super::{Errors, Level, Summary};
use crate::device::{BoardMemory, Budget};
use crate::measurement::{Evidence, EvidenceKind, Outcome, Point, Ran};
use crate::plan::Versions;
use crate::probe::Observation;
use crate::profile::gpu::GpuProfile;
use crate::units::Bytes;
use crate::workload::{Precision, Workload};

/// Version of the document; raised by every change that an older reader would misread.
pub const COMPARISON_VERSION: u32 = 1;

/// A card beside its virtual twin, point by point. Sizes are bytes, times seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// [`COMPARISON_VERSION`] of the writer.
    pub comparison_version: u32,
    /// The card was itself a virtual one: the document proves that the comparison works, and nothing
    /// about any card.
    pub rehearsal: bool,
    /// Every point has its result. Otherwise it was stopped, and can be taken up again.
    pub complete: bool,
    /// How many points there are to try.
    pub level: Level,
    /// Points of that level.
    pub planned: usize,
    /// When it was begun, in seconds since 1970 (UTC).
    pub begun: u64,
    /// Of everything that the numbers depend on.
    pub versions: Versions,
    /// The card.
    pub card: Card,
    /// Its twin.
    pub twin: Twin,
    /// What came back, in the order of trying.
    pub results: Vec<Compared>,
    /// What it amounts to.
    pub summary: Summary,
}

/// A card as NVML and CUDA describe it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Whether kernels run on it.
    pub evidence: EvidenceKind,
    /// Product name.
    pub product: String,
    /// `GPU-…`.
    pub uuid: String,
    /// CUDA compute capability, e.g. `8.6`.
    pub compute_capability: String,
    /// Streaming multiprocessors, where the driver tells the number of cores.
    pub multiprocessors: Option<u32>,
    /// Highest clock of the multiprocessors in MHz.
    pub clock: Option<u32>,
    /// Power limit in milliwatts.
    pub power_limit: Option<u32>,
    /// What NVML said of its memory before the first point.
    pub nvml: BoardMemory,
    /// What may be used of it.
    pub budget: Budget,
    /// `cudaMemGetInfo`'s total as the first worker saw it.
    pub cuda_total: Option<Bytes>,
    /// `cudaMemGetInfo`'s free memory, with that worker's context made.
    pub cuda_free: Option<Bytes>,
}

/// A virtual twin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Twin {
    /// Always `virtual`.
    pub evidence: EvidenceKind,
    /// Name of the card's profile, where there is one.
    pub of_profile: Option<String>,
    /// What the twin was made from.
    pub profile: GpuProfile,
    /// `cudaMemGetInfo`'s total as the first worker saw it.
    pub cuda_total: Option<Bytes>,
}

/// One point on both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// What was trained.
    pub workload: Workload,
    /// What was tried.
    pub point: Point,
    /// Why the card was left out.
    pub skipped: Option<Skipped>,
    /// What the twin said.
    pub twin: Option<Side>,
    /// What the card said.
    pub card: Option<Side>,
    /// The twin less the card, where the point ran on both.
    pub errors: Option<Errors>,
}

/// Why a point was not tried on the card.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Skipped {
    /// The card would have to emulate the precision.
    NotInHardware {
        /// The precision.
        precision: Precision,
    },
    /// It does not fit the twin, or only by flushing the allocator's cache.
    DoesNotFit,
}

/// A point on one of the two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// Where the numbers come from.
    pub evidence: Evidence,
    /// What became of it.
    pub outcome: Outcome,
    /// What was seen from outside; `None` when the worker did not answer.
    pub observation: Option<Observation>,
    /// What trying took, in seconds of wall time, the start of a worker included.
    pub probe_seconds: f64,
}

impl Side {
    /// What was measured, of a point that ran to the end.
    pub fn ran(&self) -> Option<&Ran> {
        match &self.outcome {
            Outcome::Ran(ran) => Some(ran),
            Outcome::OutOfMemory { .. } | Outcome::Failed { .. } => None,
        }
    }
}

impl Compared {
    /// Puts both sides together.
    pub fn new(workload: Workload, point: Point, twin: Side, card: Option<Side>) -> Self {
        let errors = twin
            .ran()
            .zip(card.as_ref().and_then(Side::ran))
            .map(|(twin, card)| Errors::of(twin, card));
        let skipped = card.is_none().then_some(Skipped::DoesNotFit);
        Self { workload, point, skipped, twin: Some(twin), card, errors }
    }

    /// A point of a precision that the card would have to emulate.
    pub fn not_in_hardware(workload: Workload, point: Point) -> Self {
        let skipped = Some(Skipped::NotInHardware { precision: point.setting.precision });
        Self { workload, point, skipped, twin: None, card: None, errors: None }
    }
}

impl Comparison {
    /// Takes in a result, and counts again.
    pub fn push(&mut self, result: Compared) {
        self.results.push(result);
        self.complete = self.results.len() == self.planned;
        self.summary = Summary::of(&self.results);
    }

    /// The result of a point, if it has one already.
    pub fn result(&self, workload: &Workload, point: &Point) -> Option<&Compared> {
        self.results.iter().find(|known| known.point == *point && known.workload == *workload)
    }

    /// Whether this goes on where `other` was stopped: the same points of the same card by the same
    /// program.
    pub fn continues(&self, other: &Self) -> bool {
        let same_versions = self.versions.vramfit == other.versions.vramfit
            && self.versions.driver == other.versions.driver;
        !other.complete
            && same_versions
            && (self.card.uuid.as_str(), self.rehearsal, self.level, self.planned)
                == (other.card.uuid.as_str(), other.rehearsal, other.level, other.planned)
            && self.twin.profile.states_the_same_as(&other.twin.profile)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::comparison::groups;
    use crate::measurement::Memory;

    fn side(device_peak: u64) -> Side {
        let memory = Memory { device_peak: Bytes(device_peak), ..Memory::default() };
        Side {
            evidence: Evidence::of(EvidenceKind::Virtual),
            outcome: Outcome::Ran(Ran {
                memory,
                allocator_retries: 0,
                step_seconds: 0.1,
                step_time: None,
            }),
            observation: None,
            probe_seconds: 0.2,
        }
    }

    /// A point at which only the device peaks are above zero.
    pub(in crate::comparison) fn compared(twin: u64, card: Option<u64>) -> Compared {
        let group = groups(Level::Quick).unwrap().remove(0);
        Compared::new(group.workload, group.points[0], side(twin), card.map(side))
    }

    #[test]
    fn a_point_that_the_card_was_spared_has_no_errors() {
        let skipped = compared(100, None);
        assert_eq!((skipped.skipped, skipped.errors), (Some(Skipped::DoesNotFit), None));
        let both = compared(100, Some(101));
        assert_eq!(both.skipped, None);
        assert_eq!(both.errors.map(|errors| errors.device.bytes), Some(-1));
    }
}
