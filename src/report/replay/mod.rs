//! A replayed trace, for a person and for a program.

mod notes;
mod table;

use serde::Serialize;

use crate::replay::{Fit, Likeness, OutOfMemory, Peaks};
use crate::snapshot::{Begin, Recorded};
use crate::units::Bytes;

pub use notes::notes as replay_notes;
pub use table::replay;

/// Version of [`ReplayDocument`].
pub const REPLAY_SCHEMA: u32 = 1;

/// A replay, as `--json` prints it. Sizes are bytes.
#[derive(Debug, Serialize)]
pub struct ReplayDocument {
    /// Version of the document.
    pub schema: u32,
    /// The file.
    pub snapshot: String,
    /// Version of vramfit.
    pub vramfit: &'static str,
    /// Version of the PyTorch whose allocator it was.
    pub torch: Option<String>,
    /// The card; none where only sizes were asked for.
    pub gpu: Option<ReplayedOn>,
    /// Whether every device's trace fits, as recorded or with a setting that was asked for.
    pub fits: Option<bool>,
    /// One of each device that was replayed.
    pub devices: Vec<ReplayedDevice>,
}

/// The card of a replay.
#[derive(Debug, Serialize)]
pub struct ReplayedOn {
    /// Its profile.
    pub name: String,
    /// Its product name.
    pub product: String,
    /// What one process could have of it, context included.
    pub budget: Bytes,
    /// The context.
    pub context: Bytes,
}

/// What one device did.
#[derive(Debug, Serialize)]
pub struct ReplayedDevice {
    /// Its index in the snapshot.
    pub device: u32,
    /// Events in its trace.
    pub events: usize,
    /// What the file itself says.
    pub recorded: Recorded,
    /// In use before the first event, as it was asked for; zero of a trace that begins with the
    /// program.
    pub live_before: Bytes,
    /// Held of the device before the first event.
    pub reserved_before: Bytes,
    /// The replay with the recorded setting beside the file; none if it was refused.
    pub likeness: Option<Likeness>,
    /// The settings, the recorded one first.
    pub settings: Vec<ReplayedSetting>,
    /// The smallest card of the catalog that holds it with the recorded setting, and its memory.
    pub smallest_gpu: Option<SmallestGpu>,
    /// What one should know.
    pub notes: Vec<String>,
}

/// A card, and its memory.
#[derive(Debug, Serialize)]
pub struct SmallestGpu {
    /// Its profile.
    pub name: String,
    /// On its board.
    pub memory: Bytes,
    /// What it needs there, context included.
    pub device_peak: Bytes,
}

/// What came of one setting.
#[derive(Debug, Serialize)]
pub struct ReplayedSetting {
    /// What `PYTORCH_CUDA_ALLOC_CONF` held.
    pub conf: String,
    /// It is the snapshot's own.
    pub recorded: bool,
    /// It was asked for.
    pub asked: bool,
    /// How what was there before the trace was put back.
    #[serde(serialize_with = "begin")]
    pub begin: Begin,
    /// What the process limited itself to of the card's memory.
    pub memory_fraction: Option<f64>,
    /// Without want of memory.
    pub peaks: Option<Peaks>,
    /// The allocator's peak and the context.
    pub device_peak: Option<Bytes>,
    /// On the card: `fits`, `only-by-flushing` the cache, or `does-not-fit`.
    #[serde(serialize_with = "fit")]
    pub fit: Option<Fit>,
    /// How often the cache had to be emptied on the card.
    pub flushes: u64,
    /// The request that failed on the card.
    pub out_of_memory: Option<OutOfMemory>,
    /// Why it could not be replayed.
    pub refused: Option<String>,
}

fn begin<S: serde::Serializer>(begin: &Begin, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match begin {
        Begin::AsRecorded => "as-recorded",
        Begin::Afresh => "afresh",
    })
}

fn fit<S: serde::Serializer>(fit: &Option<Fit>, serializer: S) -> Result<S::Ok, S::Error> {
    match fit {
        None => serializer.serialize_none(),
        Some(Fit::Fits) => serializer.serialize_str("fits"),
        Some(Fit::ByFlushing(_)) => serializer.serialize_str("only-by-flushing"),
        Some(Fit::DoesNotFit(_)) => serializer.serialize_str("does-not-fit"),
    }
}
