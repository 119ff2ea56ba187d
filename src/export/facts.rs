//! What the Python templates know of a plan.

use super::template::{Facts, string};
use super::{Recommended, evidence};
use crate::profile::model::Architecture;
use crate::report::wrap;
use crate::workload::{
    Blocks, Checkpointing, Optimizer, OptimizerImplementation, Precision, Subject,
};

/// Everything but the parts that are templates themselves.
pub(super) fn of(recommended: Recommended<'_>) -> Facts {
    let Recommended { plan, choice } = recommended;
    let mut facts = Facts::default();
    let goal = plan.goal;
    let value = |n: u32| n.to_string();
    facts.values.extend([
        ("micro_batch", value(choice.micro_batch)),
        ("accumulation", value(choice.accumulation)),
        ("micro_steps", value(choice.accumulation + u32::from(choice.remainder.is_some()))),
        ("whole_steps", value(whole_steps(recommended))),
        ("world_size", value(goal.world_size)),
        ("blocks", blocks(&plan.workload.subject)),
    ]);
    facts.values.extend(choice.remainder.map(|rest| ("remainder", value(rest))));
    facts.values.extend(plan.workload.sequence.map(|tokens| ("sequence", value(tokens))));
    let clipping = plan.workload.gradient_clipping;
    // As a number with a point, in Python as in Rust.
    facts.values.extend(clipping.map(|norm| ("clip", format!("{norm:?}"))));
    for (flag, holds) in [
        ("accumulate", choice.accumulation > 1 || choice.remainder.is_some()),
        ("remainder", choice.remainder.is_some()),
        ("distributed", goal.world_size > 1),
        ("sequence", plan.workload.sequence.is_some()),
        ("clip", clipping.is_some()),
    ] {
        if holds {
            facts.flags.insert(flag);
        }
    }
    precision(&mut facts, choice.precision);
    checkpointing(&mut facts, choice.checkpointing);
    optimizer(&mut facts, plan.workload.optimizer, plan.workload.optimizer_implementation);
    let lines = evidence::lines(recommended);
    let comment: Vec<_> = lines.iter().map(|line| wrap(line, "# ", "#   ")).collect();
    facts.parts.insert("evidence", format!("# Planned with vramfit:\n{}", comment.join("\n")));
    let variables: Vec<_> = evidence::variables(plan)
        .map(|(name, value)| format!("os.environ[{}] = {}", string(name), string(value)))
        .collect();
    if !variables.is_empty() {
        let why = "# The plan was measured with this; PyTorch reads it when it is imported.";
        facts.parts.insert("allocator", format!("{why}\n{}\n", variables.join("\n")));
    }
    facts
}

/// Micro-batches of one size that come nearest to a step's samples, for frameworks that know no
/// smaller one.
pub(super) fn whole_steps(Recommended { choice, .. }: Recommended<'_>) -> u32 {
    let more = choice.remainder.is_some_and(|rest| rest.saturating_mul(2) >= choice.micro_batch);
    choice.accumulation + u32::from(more)
}

fn precision(facts: &mut Facts, precision: Precision) {
    let (flag, lightning, accelerate) = match precision {
        Precision::Fp32 | Precision::AsIs => ("fp32", "32-true", "no"),
        Precision::Tf32 => ("tf32", "32-true", "no"),
        Precision::Bf16 => ("bf16", "bf16-mixed", "bf16"),
        Precision::Fp16 => ("fp16", "16-mixed", "fp16"),
    };
    facts.flags.insert(flag);
    facts.values.insert("lightning_precision", lightning.to_owned());
    facts.values.insert("accelerate_precision", accelerate.to_owned());
    if let Some(dtype) = dtype(precision) {
        facts.flags.insert("mixed");
        facts.values.insert("dtype", dtype.to_owned());
    }
}

/// PyTorch's name of what autocast casts to, where there is autocast.
pub(super) fn dtype(precision: Precision) -> Option<&'static str> {
    match precision {
        Precision::Fp32 | Precision::Tf32 | Precision::AsIs => None,
        Precision::Bf16 => Some("bfloat16"),
        Precision::Fp16 => Some("float16"),
    }
}

fn checkpointing(facts: &mut Facts, checkpointing: Checkpointing) {
    match checkpointing {
        Checkpointing::None | Checkpointing::AsIs => {}
        Checkpointing::Every(n) => {
            facts.flags.extend(["checkpoint", "every"]);
            facts.values.insert("every", n.to_string());
        }
        Checkpointing::Blocks(blocks) => {
            facts.flags.extend(["checkpoint", "some"]);
            facts.values.insert("chosen", python_list(blocks));
        }
        Checkpointing::Full => facts.flags.extend(["checkpoint", "full"]),
    }
}

/// `[*range(0, 5), 8]`.
fn python_list(blocks: Blocks) -> String {
    let row = |(first, last): (u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("*range({first}, {})", last + 1),
    };
    format!("[{}]", blocks.rows().into_iter().map(row).collect::<Vec<_>>().join(", "))
}

fn optimizer(
    facts: &mut Facts,
    optimizer: Option<Optimizer>,
    implementation: OptimizerImplementation,
) {
    let Some(optimizer) = optimizer else {
        facts.flags.insert("own");
        return;
    };
    let (class, momentum) = match optimizer {
        Optimizer::Sgd => ("SGD", ""),
        Optimizer::SgdMomentum => ("SGD", ", momentum=0.9"),
        Optimizer::Adam => ("Adam", ""),
        Optimizer::Adamw => ("AdamW", ""),
    };
    let how = match implementation {
        // PyTorch's default on a GPU.
        OptimizerImplementation::Foreach => "",
        OptimizerImplementation::Fused => ", fused=True",
        OptimizerImplementation::ForLoop => ", foreach=False",
    };
    facts.values.insert("optimizer", class.to_owned());
    facts.values.insert("optimizer_arguments", format!("{momentum}{how}"));
    let hf = match (optimizer, implementation) {
        (Optimizer::Sgd | Optimizer::SgdMomentum, _) => "sgd",
        (_, OptimizerImplementation::Fused) => "adamw_torch_fused",
        (_, _) => "adamw_torch",
    };
    facts.values.insert("hf_optimizer", hf.to_owned());
    match optimizer {
        Optimizer::SgdMomentum => facts.flags.insert("momentum"),
        Optimizer::Adam => facts.flags.insert("adam"),
        Optimizer::Sgd | Optimizer::Adamw => false,
    };
    if implementation == OptimizerImplementation::ForLoop {
        facts.flags.insert("for_loop");
    }
}

/// What is checkpointed, in words that name a model's own modules where they are known.
fn blocks(subject: &Subject) -> String {
    match subject {
        Subject::BuiltIn(model) => match &model.architecture {
            Architecture::Decoder(_) => "the decoder blocks",
            Architecture::Resnet(_) => "the residual blocks",
            Architecture::Mlp(_) | Architecture::Pinn(_) => "the hidden layers",
        },
        Subject::Function(_) | Subject::Command(_) => "the blocks that were planned with",
    }
    .to_owned()
}
