//! What goes wrong while a program trains, seen from beside it.
//!
//! ```text
//! NVML, hooks in the program ─► entries (JSON lines) ─► Recording ─► detectors ─► findings
//! ```
//!
//! A recording is the station of this flow: it is written as the program runs, and all that is found
//! is found in it, so that a recorded run can be looked at again.

mod evaluation;
mod finding;
mod growth;
mod history;
mod hooks;
mod kept;
mod leak;
mod meter;
mod processes;
mod record;
mod recording;
mod rhythm;
mod spill;
mod starvation;
mod statistics;
mod summary;
mod thrash;
mod throttle;
mod watching;

pub use evaluation::EvaluationWithGraph;
pub use finding::{Fault, Finding, Numbers, find};
pub use hooks::Hooks;
pub use kept::{Grown, Trap};
pub use leak::{Grows, Leak};
pub use meter::Meter;
pub use record::{RecordFile, Replayed, read_recording};
pub use recording::{
    Collected, Entry, Event, Gpu, KeptAt, Pass, RECORDING_SCHEMA, Reading, Recording, Slowdown,
    Step, Watched,
};
pub use spill::Spill;
pub use starvation::Starvation;
pub use summary::{GpuSummary, ProcessSummary, Summary};
pub use thrash::Thrash;
pub use throttle::Throttle;
pub use watching::{Setup, Told, Watching};
