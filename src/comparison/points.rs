use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::measurement::{Point, Setting};
use crate::profile::Catalog;
use crate::workload::Checkpointing::{self, Every, Full, None as Plain};
use crate::workload::Optimizer::{self, Adam, Adamw, Sgd, SgdMomentum};
use crate::workload::OptimizerImplementation::{self, ForLoop, Foreach, Fused};
use crate::workload::Precision::{self, Bf16, Fp16, Fp32, Tf32};
use crate::workload::{Subject, Workload};

/// How many points are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// One or two of each family.
    Quick,
    /// All.
    Full,
}

/// Points of one workload, which one worker tries one after the other.
#[derive(Clone, Debug)]
pub struct Group {
    /// What is trained.
    pub workload: Workload,
    /// What is tried, smaller first.
    pub points: Vec<Point>,
}

/// A workload with its points: the model, its sequence in tokens (0 for none), the optimizer, and how
/// its step is carried out.
type Row = (&'static str, u32, Optimizer, OptimizerImplementation, &'static [Try]);

/// Precision, checkpointing, micro-batch, accumulation, and whether a quick run has it.
type Try = (Precision, Checkpointing, u32, u32, bool);

/// Each family in each precision, with and without checkpointing, from what fits a laptop's 4 GB up
/// to tens of gigabytes; each takes seconds on the cards that it fits. Each optimizer and each way to
/// carry out its step appears, and so does accumulation.
const ROWS: &[Row] = &[
    (
        "mlp",
        0,
        Adamw,
        Foreach,
        &[
            (Fp32, Plain, 64, 1, true),
            (Tf32, Plain, 1024, 1, false),
            (Bf16, Plain, 1024, 1, true),
            (Fp16, Full, 1024, 2, false),
        ],
    ),
    ("mlp", 0, Sgd, ForLoop, &[(Fp32, Plain, 256, 1, false)]),
    (
        "pinn",
        0,
        Adam,
        Foreach,
        &[
            (Fp32, Plain, 1, 1, true),
            (Fp32, Plain, 16, 1, false),
            (Tf32, Plain, 16, 1, false),
            (Bf16, Plain, 16, 2, false),
        ],
    ),
    (
        "resnet18",
        0,
        SgdMomentum,
        Foreach,
        &[(Fp32, Plain, 16, 1, false), (Bf16, Plain, 64, 1, false), (Fp16, Plain, 64, 1, false)],
    ),
    (
        "resnet50",
        0,
        Adamw,
        Foreach,
        &[
            (Fp32, Plain, 8, 1, true),
            (Fp16, Plain, 16, 1, false),
            (Bf16, Full, 32, 1, true),
            (Bf16, Plain, 32, 2, false),
            (Fp32, Full, 32, 1, false),
            (Fp32, Plain, 32, 1, true),
            (Tf32, Plain, 32, 1, false),
            (Bf16, Plain, 128, 1, false),
            (Fp32, Plain, 256, 1, false),
        ],
    ),
    (
        "gpt2-small",
        256,
        Adamw,
        Fused,
        &[
            (Fp32, Plain, 1, 1, false),
            (Bf16, Plain, 1, 1, false),
            (Bf16, Full, 4, 1, false),
            (Fp16, Plain, 2, 2, false),
        ],
    ),
    (
        "gpt2-small",
        1024,
        Adamw,
        Foreach,
        &[
            (Bf16, Full, 1, 1, true),
            (Fp32, Plain, 1, 1, true),
            (Bf16, Plain, 4, 1, true),
            (Bf16, Every(2), 4, 1, false),
            (Fp16, Plain, 4, 1, false),
            (Fp32, Full, 4, 2, false),
            (Fp32, Plain, 4, 1, false),
            (Tf32, Plain, 4, 1, false),
            (Bf16, Full, 16, 1, false),
            (Bf16, Plain, 16, 2, false),
            (Bf16, Plain, 64, 1, false),
        ],
    ),
    (
        "smollm-135m",
        256,
        Adamw,
        Fused,
        &[(Bf16, Full, 1, 1, false), (Fp32, Plain, 1, 1, false), (Bf16, Every(3), 2, 2, false)],
    ),
    (
        "smollm-135m",
        512,
        Adamw,
        Foreach,
        &[
            (Fp32, Plain, 2, 1, false),
            (Bf16, Plain, 2, 1, true),
            (Bf16, Full, 8, 1, false),
            (Fp16, Plain, 8, 1, false),
        ],
    ),
    ("qwen2.5-0.5b", 1024, Adamw, Foreach, &[(Bf16, Plain, 2, 1, false)]),
    ("tinyllama-1.1b", 2048, Adamw, Foreach, &[(Bf16, Full, 4, 1, false)]),
];

/// The points of a level, by workload. Models are those built in: a user's own of the same name
/// would not be comparable.
///
/// # Errors
/// When a built-in profile is broken.
pub fn groups(level: Level) -> Result<Vec<Group>, Error> {
    let catalog = Catalog::built_in();
    let mut groups = Vec::new();
    for &(model, sequence, optimizer, optimizer_implementation, tries) in ROWS {
        let points: Vec<_> = tries
            .iter()
            .filter(|(.., quick)| *quick || level == Level::Full)
            .map(|&(precision, checkpointing, micro_batch, accumulation, _)| Point {
                setting: Setting { precision, checkpointing },
                micro_batch,
                accumulation,
                remainder: None,
            })
            .collect();
        if points.is_empty() {
            continue;
        }
        let workload = Workload {
            subject: Subject::BuiltIn(catalog.model(model)?),
            sequence: Some(sequence).filter(|tokens| *tokens > 0),
            optimizer: Some(optimizer),
            optimizer_implementation,
            gradient_clipping: None,
        };
        groups.push(Group { workload, points });
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all(level: Level) -> Vec<(Workload, Point)> {
        let groups = groups(level).unwrap();
        let pairs = |group: Group| {
            let workload = group.workload;
            group.points.into_iter().map(move |point| (workload.clone(), point))
        };
        groups.into_iter().flat_map(pairs).collect()
    }

    #[test]
    fn the_full_level_has_each_family_in_each_precision_with_each_optimizer() {
        let all = all(Level::Full);
        assert!(all.len() >= 24, "{}", all.len());
        for precision in Precision::ALL {
            let families: BTreeSet<_> = all
                .iter()
                .filter(|(_, point)| point.setting.precision == precision)
                .map(|(workload, _)| workload.subject.built_in().unwrap().architecture.family())
                .collect();
            assert!(families.len() >= 3, "{precision}: {families:?}");
        }
        for optimizer in Optimizer::ALL {
            assert!(
                all.iter().any(|(workload, _)| workload.optimizer == Some(optimizer)),
                "{optimizer}"
            );
        }
        assert!(all.iter().any(|(_, point)| point.accumulation == 2));
    }

    #[test]
    fn a_quick_run_is_a_part_of_the_full_one_with_all_families() {
        let (quick, full) = (all(Level::Quick), all(Level::Full));
        assert!(quick.iter().all(|pair| full.contains(pair)) && quick.len() < full.len() / 2);
        let families: BTreeSet<_> = quick
            .iter()
            .map(|(workload, _)| workload.subject.built_in().unwrap().architecture.family())
            .collect();
        assert_eq!(families.into_iter().collect::<Vec<_>>(), ["decoder", "mlp", "pinn", "resnet"]);
    }

    #[test]
    fn no_point_is_listed_twice() {
        let all = all(Level::Full);
        let twice = |(i, pair)| all[..i].contains(pair);
        assert!(!all.iter().enumerate().any(twice));
    }
}
