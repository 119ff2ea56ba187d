//! What a leak is made of, by where it was made.

use serde::Serialize;

use super::processes::Process;
use super::recording::KeptAt;
use crate::units::{Bytes, count};

/// More is held of what was made at one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grown {
    /// The line of the program's own code; empty where there is none.
    pub place: String,
    /// The innermost function of PyTorch.
    pub operator: String,
    /// The innermost module.
    pub module: Option<String>,
    /// By so many bytes.
    pub bytes: Bytes,
    /// And so many blocks.
    pub blocks: u64,
}

/// The mistake that a leak looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trap {
    /// Losses are summed or listed with their graphs.
    RunningLoss,
    /// A recurrent state is handed on with its graph.
    HiddenState,
    /// Tensors of each step are kept in a list or the like.
    KeptTensors,
    /// Whole graphs are kept, all that a forward pass saves.
    WholeGraph,
}

/// Blocks up to this size are scalars, or nearly: the allocator gives no less than 512 bytes.
const SCALAR: u64 = 4096;
/// A place that grows by less than this share of the largest one is not told.
const MINOR: f64 = 0.05;

/// What has grown from the first telling of what is held, after so many steps, to the last; largest
/// first.
pub(super) fn grown(process: &Process<'_>, warm_up: u64) -> Vec<Grown> {
    let told = || process.kept.iter().filter(|(step, _)| *step >= warm_up);
    // A last telling at the process's end may come when a list that has grown is gone.
    let fullest = told().max_by_key(|(_, places)| {
        places.iter().fold(0, |sum: u64, it| sum.saturating_add(it.bytes.0))
    });
    let (Some((_, first)), Some((_, last))) = (told().next(), fullest) else {
        return Vec::new();
    };
    let before = |now: &KeptAt| {
        let is_same = |it: &&KeptAt| {
            (&it.place, &it.operator, &it.module) == (&now.place, &now.operator, &now.module)
        };
        first.iter().find(is_same).map_or((Bytes::ZERO, 0), |it| (it.bytes, it.blocks))
    };
    let mut grown: Vec<Grown> = last
        .iter()
        .filter_map(|now| {
            let (bytes, blocks) = before(now);
            (now.bytes > bytes && now.blocks > blocks).then(|| Grown {
                place: now.place.clone(),
                operator: now.operator.clone(),
                module: now.module.clone(),
                bytes: now.bytes.saturating_sub(bytes),
                blocks: now.blocks - blocks,
            })
        })
        .collect();
    grown.sort_by_key(|it| std::cmp::Reverse(it.bytes));
    let most = grown.first().map_or(0, |it| it.bytes.0);
    grown.retain(|it| it.bytes.0 as f64 >= MINOR * most as f64);
    grown
}

/// The mistake it looks like, by what has grown, whether graphs of backward passes are held though the
/// GPU holds hardly more, and whether these passes retain what graphs save.
pub(super) fn trap(grown: &[Grown], only_graphs: bool, retains: bool) -> Option<Trap> {
    let Some(most) = grown.first() else {
        return match (only_graphs, retains) {
            (true, _) => Some(Trap::RunningLoss),
            (false, true) => Some(Trap::HiddenState),
            (false, false) => None,
        };
    };
    let recurrent = |it: &Grown| {
        let named = |name: &str| {
            let name = name.to_lowercase();
            ["rnn", "lstm", "gru"].iter().any(|kind| name.contains(kind))
        };
        named(&it.operator) || it.module.as_deref().is_some_and(named)
    };
    let scalars = grown.iter().all(|it| it.bytes.0 / it.blocks.max(1) <= SCALAR);
    // As many new blocks as at the largest place: one or more for each step.
    let alike = grown.iter().filter(|it| it.blocks >= most.blocks.div_ceil(2)).count();
    Some(match () {
        () if retains || grown.iter().any(recurrent) => Trap::HiddenState,
        () if scalars => Trap::RunningLoss,
        () if alike >= 3 => Trap::WholeGraph,
        () => Trap::KeptTensors,
    })
}

impl Grown {
    /// ``120 blocks of `relu` in ReLU, 1.20 GiB, made at train.py:42 in main``
    pub(super) fn words(&self) -> String {
        let Self { place, operator, module, bytes, blocks } = self;
        let blocks = match blocks {
            1 => "1 block".to_owned(),
            more => format!("{} blocks", count(*more)),
        };
        let of = if operator.is_empty() { String::new() } else { format!(" of `{operator}`") };
        let module = module.as_ref().map_or_else(String::new, |it| format!(" in {it}"));
        let place = if place.is_empty() { String::new() } else { format!(", made at {place}") };
        format!("{blocks}{of}{module}, {bytes}{place}")
    }
}
