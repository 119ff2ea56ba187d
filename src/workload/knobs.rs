//! The knobs of a training step: closed sets, each with the name it has on the command line.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Blocks;

/// In which precision a step computes. Weights, gradients and optimizer state stay fp32.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// fp32 as PyTorch has it by default: matrix products in fp32, convolutions as cuDNN likes, which
    /// may be tf32.
    Fp32,
    /// fp32 with tf32 matrix products too (`torch.backends.cuda.matmul.allow_tf32`).
    Tf32,
    /// bf16 autocast.
    Bf16,
    /// fp16 autocast with a gradient scaler.
    Fp16,
    /// As the user's command computes, which has no placeholder for it.
    AsIs,
}

impl Precision {
    /// All that can be asked for, in order of growing numerical risk.
    pub const ALL: [Self; 4] = [Self::Fp32, Self::Tf32, Self::Bf16, Self::Fp16];

    /// Name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
            Self::AsIs => "as-is",
        }
    }

    /// Computes partly in 16 bits.
    pub fn is_mixed(self) -> bool {
        matches!(self, Self::Bf16 | Self::Fp16)
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|precision| precision.name() == text)
            .ok_or_else(|| format!("`{text}` is no precision; one of fp32, tf32, bf16, fp16"))
    }
}

/// Which blocks of the model are checkpointed: their activations are dropped after the forward pass
/// and computed again in the backward pass.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Checkpointing {
    /// No block.
    None,
    /// Of each `n` blocks in a row the first is checkpointed; `n` is at least 2.
    Every(u32),
    /// These blocks; not none.
    Blocks(Blocks),
    /// Each block.
    Full,
    /// As the user's command does, which has no placeholder for it.
    AsIs,
}

impl Checkpointing {
    /// Whether it is known that blocks are checkpointed.
    pub fn is_on(self) -> bool {
        matches!(self, Self::Every(_) | Self::Blocks(_) | Self::Full)
    }

    /// Whether block `index`, counted from 0, is checkpointed.
    pub fn covers(self, index: u32) -> bool {
        match self {
            Self::None | Self::AsIs => false,
            Self::Every(n) => index.is_multiple_of(n),
            Self::Blocks(blocks) => blocks.contains(index),
            Self::Full => true,
        }
    }
}

impl fmt::Display for Checkpointing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Every(n) => f.pad(&format!("every-{n}")),
            Self::Blocks(blocks) => f.pad(&format!("blocks-{blocks}")),
            Self::Full => f.pad("full"),
            Self::AsIs => f.pad("as-is"),
        }
    }
}

impl FromStr for Checkpointing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || {
            format!(
                "`{text}` is no checkpointing; one of none, full, every-2, every-3 …, blocks-0-4+8"
            )
        };
        match text.split_once('-') {
            None if text == "none" => Ok(Self::None),
            None if text == "full" => Ok(Self::Full),
            Some(("every", n)) => {
                n.parse().ok().filter(|n| *n >= 2).map(Self::Every).ok_or_else(unknown)
            }
            Some(("blocks", blocks)) => blocks.parse().map(Self::Blocks).map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }
}

/// The optimizer. Hyper-parameters are PyTorch's defaults: they do not change memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Optimizer {
    /// Plain stochastic gradient descent, no state.
    Sgd,
    /// SGD with momentum 0.9: one state a parameter.
    SgdMomentum,
    /// Adam: two states a parameter.
    Adam,
    /// AdamW, decoupled weight decay 0.01: two states a parameter.
    #[default]
    Adamw,
}

impl Optimizer {
    /// All, in the order of the command line.
    pub const ALL: [Self; 4] = [Self::Sgd, Self::SgdMomentum, Self::Adam, Self::Adamw];

    /// Name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sgd => "sgd",
            Self::SgdMomentum => "sgd-momentum",
            Self::Adam => "adam",
            Self::Adamw => "adamw",
        }
    }
}

impl fmt::Display for Optimizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Optimizer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|optimizer| optimizer.name() == text).ok_or_else(|| {
            format!("`{text}` is no optimizer; one of sgd, sgd-momentum, adam, adamw")
        })
    }
}

/// How the optimizer's step is carried out; decides its temporaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerImplementation {
    /// Horizontally over all parameters at once: PyTorch's default on a GPU.
    #[default]
    Foreach,
    /// One kernel for the whole step.
    Fused,
    /// Parameter by parameter.
    ForLoop,
}
