//! DeepSpeed's configuration: JSON, in which it passes over keys that it does not know.

use serde::Serialize;

use super::facts::{dtype, whole_steps};
use super::{Artefact, Exporter, Recommended, evidence};
use crate::error::one_line;
use crate::workload::{Checkpointing, Optimizer, OptimizerImplementation, Precision};

/// `ds_config.json`.
#[derive(Debug)]
pub(super) struct DeepSpeed;

/// Field names are DeepSpeed's, except for `vramfit`.
#[derive(Serialize)]
struct Config {
    /// What is known of the plan; DeepSpeed does not look at it.
    vramfit: Known,
    train_batch_size: u32,
    train_micro_batch_size_per_gpu: u32,
    gradient_accumulation_steps: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    gradient_clipping: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    torch_autocast: Option<Autocast>,
    zero_optimization: Zero,
    #[serde(skip_serializing_if = "Option::is_none")]
    optimizer: Option<Type>,
    dataloader_drop_last: bool,
}

#[derive(Serialize)]
struct Known {
    planned: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    to_do: Vec<String>,
}

/// Autocast over 32-bit weights, as planned; the sections `bf16` and `fp16` train 16-bit weights with
/// 32-bit copies, which takes other memory.
#[derive(Serialize)]
struct Autocast {
    enabled: bool,
    dtype: &'static str,
}

#[derive(Serialize)]
struct Zero {
    stage: u32,
}

#[derive(Serialize)]
struct Type {
    r#type: &'static str,
    params: Parameters,
}

#[derive(Default, Serialize)]
struct Parameters {
    /// PyTorch's own Adam, rather than one that DeepSpeed compiles when it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    torch_adam: Option<bool>,
    /// `false`: weight decay as in Adam; DeepSpeed's default makes AdamW of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    adam_w_mode: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    momentum: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    foreach: Option<bool>,
}

impl Exporter for DeepSpeed {
    fn name(&self) -> &'static str {
        "deepspeed"
    }

    fn about(&self) -> &'static str {
        "a JSON configuration of DeepSpeed"
    }

    fn render(&self, recommended: Recommended<'_>) -> Artefact {
        let Recommended { plan, choice } = recommended;
        let (steps, micro_batch) = (whole_steps(recommended), choice.micro_batch);
        let remarks = remarks(recommended);
        let config = Config {
            vramfit: Known { planned: evidence::lines(recommended), to_do: remarks.clone() },
            train_batch_size: micro_batch
                .saturating_mul(steps)
                .saturating_mul(plan.goal.world_size),
            train_micro_batch_size_per_gpu: micro_batch,
            gradient_accumulation_steps: steps,
            gradient_clipping: plan.workload.gradient_clipping,
            torch_autocast: dtype(choice.precision).map(|dtype| Autocast { enabled: true, dtype }),
            zero_optimization: Zero { stage: 0 },
            optimizer: plan
                .workload
                .optimizer
                .map(|it| optimizer(it, plan.workload.optimizer_implementation)),
            // All micro-batches weigh the same to DeepSpeed: none may be smaller.
            dataloader_drop_last: true,
        };
        let text = serde_json::to_string_pretty(&config).unwrap_or_default();
        Artefact { text, remarks }
    }
}

fn optimizer(optimizer: Optimizer, implementation: OptimizerImplementation) -> Type {
    let mut params = Parameters::default();
    match implementation {
        OptimizerImplementation::Foreach => {}
        OptimizerImplementation::Fused => params.fused = Some(true),
        OptimizerImplementation::ForLoop => params.foreach = Some(false),
    }
    let r#type = match optimizer {
        Optimizer::Sgd => "SGD",
        Optimizer::SgdMomentum => {
            params.momentum = Some(0.9);
            "SGD"
        }
        Optimizer::Adam => {
            params.torch_adam = Some(true);
            params.adam_w_mode = Some(false);
            "Adam"
        }
        Optimizer::Adamw => {
            params.torch_adam = Some(true);
            "AdamW"
        }
    };
    Type { r#type, params }
}

/// What DeepSpeed's JSON cannot say.
fn remarks(recommended: Recommended<'_>) -> Vec<String> {
    let Recommended { plan, choice } = recommended;
    let mut remarks = vec![match plan.workload.optimizer {
        Some(_) => "the learning rate is PyTorch's default until `optimizer.params.lr` sets yours"
            .to_owned(),
        None => {
            "give `deepspeed.initialize` the optimizer that the planned function makes".to_owned()
        }
    }];
    remarks.extend(match choice.checkpointing {
        Checkpointing::None | Checkpointing::AsIs => None,
        Checkpointing::Full => Some(
            "checkpointing is switched on in the model, before `deepspeed.initialize`: \
             `model.activation_checkpointing_enable()` of transformers, else `checkpoint_blocks` of \
             `--to pytorch`"
                .to_owned(),
        ),
        Checkpointing::Every(n) => Some(format!(
            "checkpointing every-{n} is switched on in the model, before `deepspeed.initialize`: \
             `model.activation_checkpointing_enable(every_n_layers={n})` of transformers, else \
             `checkpoint_blocks` of `--to pytorch`"
        )),
        Checkpointing::Blocks(blocks) => Some(format!(
            "checkpointing of the blocks {blocks}, counted from 0, is switched on in the model, \
             before `deepspeed.initialize`: `checkpoint_blocks` of `--to pytorch`; that of \
             transformers takes all layers or every n-th"
        )),
    });
    if choice.precision == Precision::Tf32 {
        remarks.push(
            "tf32 is switched on by `torch.set_float32_matmul_precision(\"high\")`".to_owned(),
        );
    }
    if let Some(rest) = choice.remainder {
        remarks.push(format!(
            "DeepSpeed has micro-batches of one size: {} x {} samples on each GPU in one optimizer \
             step, not the planned {} x {} + {rest}",
            whole_steps(recommended),
            choice.micro_batch,
            choice.accumulation,
            choice.micro_batch,
        ));
    }
    if whole_steps(recommended) > 1 {
        remarks.push(
            "an optimizer step that an epoch's end cuts short goes on in the next epoch".to_owned(),
        );
    }
    remarks.extend(
        evidence::variables(plan)
            .map(|(name, value)| format!("set `{name}={value}` in the environment, as measured")),
    );
    remarks.iter().map(|remark| one_line(remark)).collect()
}
