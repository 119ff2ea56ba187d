//! A line on standard error for work that takes a while.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::measurement::Outcome;
use crate::probe::Findings;

/// Work that ends sooner needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows how far a campaign is.
pub(super) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    drawn: bool,
    settings: usize,
    /// Settings of parts that have ended.
    before: usize,
    /// What is searched now, where that is a part of the campaign.
    part: Option<String>,
    quiet: bool,
}

impl Progress {
    /// For a campaign over so many settings; a `quiet` one shows nothing.
    pub(super) fn new(settings: usize, quiet: bool) -> Self {
        let bar = ProgressBar::hidden();
        bar.set_length(settings as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} settings, {msg}") {
            bar.set_style(style);
        }
        Self { bar, begun: Instant::now(), drawn: false, settings, before: 0, part: None, quiet }
    }

    /// A part of the campaign begins, which goes through all settings; the bar has room for `parts`.
    pub(super) fn begin(&mut self, part: String, parts: usize) {
        if self.part.replace(part).is_some() {
            self.before += self.settings;
        }
        self.bar.set_length((self.settings * parts) as u64);
    }

    /// Says what takes a while before the first point.
    pub(super) fn say(&mut self, what: String) {
        self.draw();
        self.bar.set_message(what);
    }

    /// Takes in what is known now.
    pub(super) fn update(&mut self, findings: &Findings) {
        if self.begun.elapsed() > PATIENCE {
            self.draw();
        }
        let complete = findings.searches.iter().filter(|searched| searched.complete).count();
        self.bar.set_position((self.before + complete.min(self.settings)) as u64);
        if let Some(last) = findings.measurements.last() {
            let point = last.point;
            let end = match last.outcome {
                Outcome::Ran(_) => "ran",
                Outcome::OutOfMemory { .. } => "out of memory",
                Outcome::Failed { .. } => "failed",
            };
            let part = self.part.as_ref().map_or_else(String::new, |part| format!("{part}, "));
            self.bar.set_message(format!(
                "{part}{} points: {}, micro-batch {} {end}",
                findings.measurements.len(),
                point.setting,
                point.micro_batch,
            ));
        }
    }

    fn draw(&mut self) {
        if !self.drawn && !self.quiet {
            self.drawn = true;
            // Draws nothing where standard error is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
