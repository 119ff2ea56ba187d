use serde::Serialize;

use super::Recording;

/// Something that costs memory or time, or will.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What it is, with its numbers.
    pub fault: Fault,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// When it was seen first, in seconds since the program's start.
    pub from: f64,
    /// And last.
    pub until: f64,
    /// In which process, where it is of one.
    pub pid: Option<u32>,
}

/// What a finding is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Memory grows from step to step after warm-up.
    Leak,
    /// Evaluation keeps graphs that nothing will run backward.
    EvaluationWithGraph,
    /// The driver keeps in host memory what does not fit.
    Spill,
    /// The allocator must give memory back to get some, again and again.
    Thrash,
    /// The clock is held back.
    Throttle,
    /// The GPU waits for data.
    Starvation,
}

impl Finding {
    /// In one line, what is wrong.
    pub fn headline(&self) -> String {
        String::new()
    }

    /// The numbers that it rests on, one line each.
    pub fn evidence(&self) -> Vec<String> {
        Vec::new()
    }

    /// What to do, the first best first.
    pub fn remedies(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What goes wrong in a run, the surest first.
pub fn find(_recording: &Recording) -> Vec<Finding> {
    Vec::new()
}
