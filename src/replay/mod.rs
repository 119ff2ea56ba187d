//! A recorded trace through PyTorch's own allocator, on a virtual card: one child process a setting.

mod answer;
mod child;
mod files;
mod likeness;
mod settings;
mod trial;

use std::path::PathBuf;

use crate::device::{Budget, Setup, budget};
use crate::error::Error;
use crate::probe::Interrupt;
use crate::profile::gpu::GpuProfile;
use crate::units::Bytes;

pub use answer::{Answer, Layout, OutOfMemory, Peaks};
pub use likeness::Likeness;
pub use settings::{Setting, settings};
pub use trial::{Fit, Refused, Trial, trials};

/// Memory of the card that is large enough for any trace: half of what a virtual GPU has addresses
/// for.
const BOUNDLESS: Bytes = Bytes::gib(1024);

/// The card that a trace is replayed on.
#[derive(Clone, Debug)]
pub struct Card {
    profile: GpuProfile,
    budget: Budget,
}

impl Card {
    /// A card of that profile.
    ///
    /// # Errors
    /// When nothing of its memory is left.
    pub fn new(profile: GpuProfile, setup: Setup) -> Result<Self, Error> {
        let budget = budget(&profile, setup)?;
        Ok(Self { profile, budget })
    }

    /// A card whose budget is known: a twin's.
    pub fn with_budget(profile: GpuProfile, budget: Budget) -> Self {
        Self { profile, budget }
    }

    /// A card with this one's context and as much memory as anyone could ask for.
    fn boundless(&self) -> Self {
        let budget = Budget {
            total: BOUNDLESS,
            usable: BOUNDLESS,
            held_by_others: Bytes::ZERO,
            reserve: Bytes::ZERO,
            margin: Bytes::ZERO,
            budget: BOUNDLESS,
        };
        Self { profile: self.profile.clone(), budget }
    }

    /// Its profile.
    pub fn profile(&self) -> &GpuProfile {
        &self.profile
    }

    /// What may be used of it.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// What a process needs of the device besides what the allocator holds.
    pub fn context(&self) -> Bytes {
        self.profile.context.value
    }
}

/// Who replays.
#[derive(Clone, Debug)]
pub struct Player {
    /// A Python with PyTorch.
    pub python: PathBuf,
    /// Ends it.
    pub interrupt: Interrupt,
}
