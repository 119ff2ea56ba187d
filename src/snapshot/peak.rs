//! What was in use when most was, by where in the program it was made, and how it came to that.

use std::collections::HashMap;

use super::source::Sources;
use super::{Action, Frame, Stack, Trace};
use crate::units::Bytes;

/// Where PyTorch lies in whichever environment.
const TORCH: &str = "/torch/";
/// Folders of what is not the user's.
const LIBRARIES: [&str; 4] = ["/site-packages/", "/dist-packages/", "/lib/python3", "<frozen"];

/// The moment at which most was in use, or would have been.
#[derive(Clone, Debug, PartialEq)]
pub struct Peak {
    /// In use then, as it was asked for.
    pub bytes: Bytes,
    /// What was asked for then and not there, where the allocator ran out of memory.
    pub wanted: Option<Bytes>,
    /// Where that was asked for.
    pub wanted_at: Option<Kept>,
    /// Its place among `samples`.
    pub at: usize,
    /// What was in use, by where it was made, the largest first.
    pub kept: Vec<Kept>,
    /// What was in use after each event of the step around it; from the end of an optimizer's step to the
    /// end of the next.
    pub samples: Vec<Sample>,
    /// The trace begins at the program's first allocation.
    pub is_whole: bool,
}

/// What was in use of what was made at one place of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kept {
    /// In which phase it was made.
    pub phase: Phase,
    /// The innermost function of PyTorch, where that is known.
    pub operator: Option<String>,
    /// Where it is not, the innermost line.
    pub code: Option<String>,
    /// Class of the innermost module whose `forward` was running.
    pub module: Option<String>,
    /// The innermost line of the user's own code, as `train.py:42 in main`.
    pub place: Option<String>,
    /// All its blocks.
    pub bytes: Bytes,
    /// How many.
    pub blocks: u64,
}

/// A part of a training step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// None of the others: building, loading, evaluating what is neither.
    #[default]
    Other,
    /// In some module's `forward`.
    Forward,
    /// On the thread of the autograd engine, which has no calls of Python.
    Backward,
    /// In an optimizer.
    Optimizer,
}

/// What was in use after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// As it was asked for.
    pub bytes: Bytes,
    /// In which phase.
    pub phase: Phase,
}

impl Kept {
    /// What it is told by, so that equally large ones have an order.
    fn names(&self) -> [Option<&str>; 4] {
        let Self { operator, code, module, place, .. } = self;
        [operator, code, module, place].map(Option::as_deref)
    }
}

impl Phase {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Optimizer => "optimizer",
        }
    }

    fn of(stack: &Stack) -> Self {
        let Some(outermost) = stack.last() else { return Self::Backward };
        // Functions in Python and recomputation run on the engine's thread too.
        let of_engine = ["/torch/autograd/", "/torch/utils/checkpoint.py"];
        if of_engine.iter().any(|part| outermost.file.contains(part))
            || stack.iter().any(|frame| frame.file.ends_with("/torch/autograd/__init__.py"))
        {
            return Self::Backward;
        }
        // The innermost counts: an optimizer may run the model, as LBFGS does.
        let phase = |frame: &Frame| match frame {
            frame if frame.file.contains("/torch/optim/") => Some(Self::Optimizer),
            frame if frame.function == "forward" => Some(Self::Forward),
            _ => None,
        };
        stack.iter().find_map(phase).unwrap_or_default()
    }
}

impl Trace {
    /// The moment at which most was in use; none of a trace in which nothing ever was.
    pub fn peak(&self) -> Option<Peak> {
        let history = self.history();
        let before = history.live_before().get();
        let phases: Vec<_> = self.stacks.iter().map(Phase::of).collect();
        let (samples, at, wanted) = self.samples(before, &phases)?;
        let (from, until) = step_around(&samples, at);
        let mut sources = Sources::default();
        let kept = self.kept(at, before, &phases, &mut sources);
        let wanted_at = wanted.map(|_| self.made_at(self.events[at].stack, &phases, &mut sources));
        Some(Peak {
            bytes: samples[at].bytes,
            wanted,
            wanted_at,
            at: at - from,
            kept,
            samples: samples[from..until].to_vec(),
            is_whole: history.is_whole(),
        })
    }

    /// After each event what was in use, and at which most was or was wanted, with what was wanted.
    fn samples(
        &self,
        before: u64,
        phases: &[Phase],
    ) -> Option<(Vec<Sample>, usize, Option<Bytes>)> {
        let (mut used, mut phase) = (before, Phase::Other);
        let (mut most, mut at, mut wanted) = (0, None, None);
        let mut samples = Vec::with_capacity(self.events.len());
        for (index, event) in self.events.iter().enumerate() {
            let mut refused = None;
            match event.action {
                Action::Alloc => {
                    used = used.saturating_add(event.bytes);
                    let known = event.stack.and_then(|it| phases.get(it as usize));
                    phase = known.copied().unwrap_or(phase);
                }
                Action::Free => used = used.saturating_sub(event.bytes),
                Action::OutOfMemory => refused = Some(Bytes(event.bytes)),
                Action::FreeRequested | Action::SegmentAlloc | Action::SegmentFree(_) => {}
            }
            let asked = used.saturating_add(refused.map_or(0, Bytes::get));
            if asked > most {
                (most, at, wanted) = (asked, Some(index), refused);
            }
            samples.push(Sample { bytes: Bytes(used), phase });
        }
        Some((samples, at?, wanted))
    }

    /// What was in use after event `at`, by place.
    fn kept(&self, at: usize, before: u64, phases: &[Phase], sources: &mut Sources) -> Vec<Kept> {
        let mut live: HashMap<u64, (u64, Option<u32>)> = HashMap::new();
        let mut older = before;
        for event in &self.events[..=at] {
            match event.action {
                Action::Alloc => {
                    live.insert(event.address, (event.bytes, event.stack));
                }
                Action::Free if live.remove(&event.address).is_none() => {
                    older = older.saturating_sub(event.bytes);
                }
                _ => {}
            }
        }
        let mut by_stack: HashMap<Option<u32>, (u64, u64)> = HashMap::new();
        for (bytes, stack) in live.into_values() {
            let (all, blocks) = by_stack.entry(stack).or_default();
            *all = all.saturating_add(bytes);
            *blocks += 1;
        }
        // Stacks differ in more than what is told of them.
        let mut together: HashMap<Kept, (u64, u64)> = HashMap::new();
        for (stack, (bytes, blocks)) in by_stack {
            let (all, count) = together.entry(self.made_at(stack, phases, sources)).or_default();
            *all = all.saturating_add(bytes);
            *count += blocks;
        }
        if older > 0 {
            let before = Kept { operator: Some("before the record".to_owned()), ..Kept::default() };
            together.insert(before, (older, 0));
        }
        let whole =
            |(kept, (bytes, blocks)): (Kept, _)| Kept { bytes: Bytes(bytes), blocks, ..kept };
        let mut kept: Vec<_> = together.into_iter().map(whole).collect();
        kept.sort_by(|a, b| (b.bytes, a.names()).cmp(&(a.bytes, b.names())));
        kept
    }

    fn made_at(&self, stack: Option<u32>, phases: &[Phase], sources: &mut Sources) -> Kept {
        let index = stack.map(|it| it as usize);
        let stack = index.and_then(|it| self.stacks.get(it));
        let phase = index.and_then(|it| phases.get(it)).copied().unwrap_or_default();
        let Some(stack) = stack else { return Kept::default() };
        let operator = operator(stack, sources);
        let code = match (&operator, stack.first()) {
            (None, Some(innermost)) => sources.line(innermost),
            _ => None,
        };
        let forward = stack.iter().find(|frame| frame.function == "forward");
        Kept {
            phase,
            operator,
            code,
            module: forward.and_then(|frame| sources.class(frame)),
            place: stack.iter().find(|frame| is_users(frame)).map(place),
            ..Kept::default()
        }
    }
}

/// The events of the step around an event: from the end of one optimizer's step to that of the next.
fn step_around(samples: &[Sample], at: usize) -> (usize, usize) {
    // What comes between, such as loading, belongs to the step that follows.
    let from = (0..at).rev().find(|index| is_end(samples, *index)).map_or(0, |index| index + 1);
    let until = (at..samples.len())
        .find(|index| is_end(samples, *index))
        .map_or(samples.len(), |index| index + 1);
    (from, until)
}

/// Whether an optimizer's step ends with an event.
fn is_end(samples: &[Sample], index: usize) -> bool {
    samples[index].phase == Phase::Optimizer
        && samples.get(index + 1).is_none_or(|next| next.phase != Phase::Optimizer)
}

/// The innermost function of PyTorch's that was called; of a call in C, its name where it is called.
fn operator(stack: &Stack, sources: &mut Sources) -> Option<String> {
    let innermost = stack.first()?;
    let of_torch = innermost.file.contains(TORCH) || innermost.file.starts_with("torch/");
    match of_torch && innermost.function != "forward" {
        true => Some(innermost.function.clone()),
        false => sources.call(innermost),
    }
}

/// Whether a line is the user's own.
fn is_users(frame: &Frame) -> bool {
    !frame.file.is_empty() && !LIBRARIES.iter().any(|part| frame.file.contains(part))
}

fn place(frame: &Frame) -> String {
    let name = frame.file.rsplit('/').next().unwrap_or_default();
    match frame.function.as_str() {
        "<module>" | "" => format!("{name}:{}", frame.line),
        function => format!("{name}:{} in {function}", frame.line),
    }
}
