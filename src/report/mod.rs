//! What was found out, in a person's or a program's eyes: a plan, a comparison, a replay, a run on a
//! virtual GPU, a watched run, a small training, a machine, or traps in scripts.

mod comparison;
mod contexts;
mod doctor;
mod equivalence;
mod html;
mod json;
mod lint;
mod paint;
mod replay;
mod run;
mod sparkline;
mod table;
mod time;
mod watch;

use crate::plan::Plan;

pub use comparison::{compared, comparison};
pub use doctor::doctor;
pub use equivalence::equivalence;
pub use html::{RecordedPeak, plan as plan_page, run as run_page, watch as watch_page};
pub use lint::{LINT_SCHEMA, LintDocument, LintSummary, lint, sarif};
pub use paint::painted;
pub use replay::{
    REPLAY_SCHEMA, ReplayDocument, ReplayedDevice, ReplayedOn, ReplayedSetting, SmallestGpu,
    replay, replay_notes,
};
pub use run::{RUN_SCHEMA, RunDocument, summary as run_summary};
pub use table::wrap;
pub use watch::{
    FoundFault, WATCH_SCHEMA, WatchDocument, announcement as watch_announcement,
    lines as watch_lines,
};

/// A way to show a plan.
pub trait Report: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// The plan as text, without a line end at its end.
    fn render(&self, plan: &Plan) -> String;
}

/// All of them.
pub static REPORTS: &[&dyn Report] = &[&table::Table, &json::Json];

/// The report of that name, if there is one.
pub fn named(name: &str) -> Option<&'static dyn Report> {
    REPORTS.iter().copied().find(|report| report.name() == name)
}
