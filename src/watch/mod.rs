//! What goes wrong while a program trains, seen from beside it.
//!
//! ```text
//! NVML, hooks in the program ─► entries (JSON lines) ─► Recording ─► detectors ─► findings
//! ```
//!
//! A recording is the station of this flow: it is written as the program runs, and all that is found
//! is found in it, so that a recorded run can be looked at again.

mod finding;
mod history;
mod hooks;
mod meter;
mod record;
mod recording;
mod summary;
mod watching;

pub use finding::{Fault, Finding, find};
pub use hooks::Hooks;
pub use meter::Meter;
pub use record::{RecordFile, Replayed, read_recording};
pub use recording::{
    Collected, Entry, Event, Gpu, KeptAt, Pass, RECORDING_SCHEMA, Reading, Recording, Slowdown,
    Step, Watched,
};
pub use summary::{GpuSummary, ProcessSummary, Summary};
pub use watching::{Seen, Setup, Told, Watching};
