//! A model to train: a family and its dimensions, as stated in `profiles/models/*.toml`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One model, read from one file whose stem is its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelProfile {
    /// Name on the command line; the file's stem.
    pub name: String,
    /// One line for lists.
    pub description: String,
    /// Where the dimensions come from.
    pub source: String,
    /// Trainable parameters, shared ones counted once. The worker refuses to measure a model whose
    /// own count differs.
    pub parameters: u64,
    /// Family and dimensions.
    pub architecture: Architecture,
}

/// A family of models with the dimensions of one member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// A causal language model.
    Decoder(Decoder),
    /// A residual convolutional image classifier.
    Resnet(Resnet),
    /// A multi-layer perceptron.
    Mlp(Mlp),
    /// A physics-informed network: an MLP whose loss holds second derivatives.
    Pinn(Pinn),
}

impl Architecture {
    /// The family's name.
    pub fn family(&self) -> &'static str {
        match self {
            Self::Decoder(_) => "decoder",
            Self::Resnet(_) => "resnet",
            Self::Mlp(_) => "mlp",
            Self::Pinn(_) => "pinn",
        }
    }

    /// Longest sequence in tokens, for families that have sequences.
    pub fn max_sequence(&self) -> Option<u32> {
        match self {
            Self::Decoder(decoder) => Some(decoder.context),
            Self::Resnet(_) | Self::Mlp(_) | Self::Pinn(_) => None,
        }
    }
}

/// Transformer decoder, GPT-2 or Llama style.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decoder {
    /// Tokens in the vocabulary.
    pub vocabulary: u32,
    /// Longest sequence in tokens.
    pub context: u32,
    /// Width of the residual stream.
    pub hidden: u32,
    /// Blocks.
    pub layers: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads; fewer than `heads` is grouped-query attention.
    pub kv_heads: u32,
    /// Width of one head where it is not `hidden / heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<u32>,
    /// Inner width of the feed-forward part.
    pub feed_forward: u32,
    /// Which of the two lineages the block follows.
    pub style: DecoderStyle,
    /// Output projection shares the token embedding.
    pub tied_embeddings: bool,
    /// Query, key and value projections have a bias though the style has none (Qwen2).
    #[serde(default)]
    pub qkv_bias: bool,
    /// Dropout probability on embeddings, attention and residuals.
    #[serde(default)]
    pub dropout: f64,
}

/// What a decoder block is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecoderStyle {
    /// Layer norm, learned positions, GELU (tanh), biases, one fused query-key-value projection.
    Gpt2,
    /// RMS norm, rotary positions, SwiGLU, no biases.
    Llama,
}

/// Residual network for images, torchvision's layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resnet {
    /// Residual block.
    pub block: ResidualBlock,
    /// Blocks in each of the four stages.
    pub stages: [u32; 4],
    /// Classes.
    pub classes: u32,
    /// Height and width of the input, in pixels.
    pub image: u32,
}

/// Residual block of a [`Resnet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResidualBlock {
    /// Two 3×3 convolutions (ResNet-18, -34).
    Basic,
    /// 1×1, 3×3, 1×1 convolutions with a widening of four (ResNet-50 and up).
    Bottleneck,
}

/// Multi-layer perceptron with a classification loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mlp {
    /// Input features.
    pub inputs: u32,
    /// Width of each hidden layer.
    pub hidden: Vec<u32>,
    /// Classes.
    pub outputs: u32,
    /// Between layers.
    pub activation: Activation,
}

/// Fully connected network u(x₁ … xₙ) trained on the residual of a heat equation,
/// ∂u/∂x₁ − Σ ∂²u/∂xᵢ² for i > 1, so that the loss holds second derivatives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pinn {
    /// Coordinates: time, then space.
    pub inputs: u32,
    /// Width of the hidden layers.
    pub width: u32,
    /// Number of hidden layers.
    pub depth: u32,
    /// Collocation points in one sample of the batch.
    pub points: u32,
}

/// Activation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// max(x, 0).
    Relu,
    /// x·Φ(x).
    Gelu,
    /// Hyperbolic tangent.
    Tanh,
}
