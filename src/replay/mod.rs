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
use crate::snapshot::History;
use crate::units::Bytes;

pub use answer::{Answer, Layout, OutOfMemory, Peaks};
pub use likeness::Likeness;
pub use settings::{Setting, settings};
pub use trial::{Fit, Refused, Trial, trials};

/// Least and most memory of a card that is large enough for a trace. With expandable segments PyTorch
/// reserves 9/8 of the card's memory in addresses for each stream, twice, and a virtual GPU has 4 TiB
/// of them.
const LEAST_BOUNDLESS: Bytes = Bytes::gib(64);
const MOST_BOUNDLESS: Bytes = Bytes::gib(1024);
/// How much more a setting may need than was asked for at once.
const HEADROOM: u64 = 4;

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

    /// A card with this one's context and more memory than `history` can need with any setting.
    fn boundless(&self, history: &History<'_>) -> Self {
        let wanted = Bytes(history.most_wanted().get().saturating_mul(HEADROOM));
        let room = wanted.clamp(LEAST_BOUNDLESS, MOST_BOUNDLESS) + self.context();
        let budget = Budget {
            total: room,
            usable: room,
            held_by_others: Bytes::ZERO,
            reserve: Bytes::ZERO,
            margin: Bytes::ZERO,
            budget: room,
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
