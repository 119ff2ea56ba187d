use serde::Serialize;

use super::evaluation::EvaluationWithGraph;
use super::leak::Leak;
use super::recording::Recording;
use super::spill::Spill;
use super::starvation::Starvation;
use super::thrash::Thrash;
use super::throttle::Throttle;
use super::{evaluation, leak, spill, starvation, thrash, throttle};

/// Something that costs memory or time, or will.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What it is.
    pub fault: Fault,
    /// How sure it is, from 0 to 1; each detector says by which statistic.
    pub confidence: f64,
    /// When it was seen first, in seconds since the program's start.
    pub from: f64,
    /// And last.
    pub until: f64,
    /// In which process, where it is of one; the worst of several.
    pub pid: Option<u32>,
    /// The numbers that it rests on.
    pub numbers: Numbers,
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

/// What a finding rests on, by its fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Numbers {
    /// Of [`Fault::Leak`].
    Leak(Leak),
    /// Of [`Fault::EvaluationWithGraph`].
    EvaluationWithGraph(EvaluationWithGraph),
    /// Of [`Fault::Spill`].
    Spill(Spill),
    /// Of [`Fault::Thrash`].
    Thrash(Thrash),
    /// Of [`Fault::Throttle`].
    Throttle(Throttle),
    /// Of [`Fault::Starvation`].
    Starvation(Starvation),
}

/// How what was found is told; a remedy begins with what to do.
pub(super) trait Worded {
    fn headline(&self) -> String;
    fn evidence(&self) -> Vec<String>;
    fn remedies(&self) -> Vec<String>;
}

impl Numbers {
    fn told(&self) -> &dyn Worded {
        match self {
            Self::Leak(it) => it,
            Self::EvaluationWithGraph(it) => it,
            Self::Spill(it) => it,
            Self::Thrash(it) => it,
            Self::Throttle(it) => it,
            Self::Starvation(it) => it,
        }
    }
}

impl Finding {
    /// In one line, what is wrong.
    pub fn headline(&self) -> String {
        self.numbers.told().headline()
    }

    /// The numbers that it rests on, one line each.
    pub fn evidence(&self) -> Vec<String> {
        self.numbers.told().evidence()
    }

    /// What to do, the first best first.
    pub fn remedies(&self) -> Vec<String> {
        self.numbers.told().remedies()
    }
}

/// What goes wrong in a run, the surest first; each fault once, of the process or GPU where it is worst.
pub fn find(recording: &Recording) -> Vec<Finding> {
    let detectors =
        [leak::find, evaluation::find, spill::find, thrash::find, throttle::find, starvation::find];
    let mut found: Vec<_> = detectors.iter().filter_map(|find| find(recording)).collect();
    found.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    found
}
