//! Llama and its kin (SmolLM, TinyLlama, Qwen2), operator by operator as Hugging Face's
//! `LlamaForCausalLM` with `sdpa` attention and without a key-value cache.

use tch::{Device, Kind, Tensor};
use vramfit::profile::model::Decoder;

use super::{Batch, Network, language};
use crate::blocks::Blocks;
use crate::model::{Builder, Linear, Then, Weight, dim};

const DEVIATION: f64 = 0.02;
const EPSILON: f64 = 1e-5;
/// Base of the rotary frequencies; memory does not depend on it.
const ROTARY_BASE: f64 = 10_000.0;

pub(super) struct Llama {
    tokens: Weight,
    blocks: Vec<Block>,
    norm: RmsNorm,
    frequencies: Weight,
    /// Python's module keeps the frequencies twice.
    _frequencies_copy: Weight,
    head: Option<Weight>,
    sequence: i64,
    device: Device,
}

impl Llama {
    pub(super) fn new(
        builder: &mut Builder,
        decoder: &Decoder,
        sequence: i64,
    ) -> Result<Self, String> {
        if decoder.kv_heads == 0 || !decoder.heads.is_multiple_of(decoder.kv_heads) {
            return Err(format!(
                "{} query heads do not share {} key heads",
                decoder.heads, decoder.kv_heads
            ));
        }
        let (vocabulary, hidden) = (dim(decoder.vocabulary), dim(decoder.hidden));
        let head_dim = language::head_dim(decoder)?;
        let tokens = builder.normal(&[vocabulary, hidden], DEVIATION);
        let blocks = (0..decoder.layers).map(|_| Block::new(builder, decoder, head_dim)).collect();
        let norm = RmsNorm::new(builder, hidden);
        let frequencies = rotary_frequencies(builder, head_dim);
        let copy = rotary_frequencies(builder, head_dim);
        Ok(Self {
            tokens,
            blocks,
            norm,
            frequencies,
            _frequencies_copy: copy,
            head: (!decoder.tied_embeddings)
                .then(|| builder.normal(&[vocabulary, hidden], DEVIATION)),
            sequence,
            device: builder.device(),
        })
    }

    fn rotations(&self) -> Rotations {
        // The offset of a key-value cache is added even where it is 0.
        let positions = Tensor::arange(self.sequence, (Kind::Int64, self.device))
            .then(|positions| (positions + 0).unsqueeze(0));
        let angles = positions
            .unsqueeze(-1)
            .to_kind(Kind::Float)
            .then(|positions| positions * &*self.frequencies)
            .then(|angles| Tensor::cat(&[angles, angles], -1));
        let (cos, sin) = (angles.cos(), angles.sin());
        Rotations { cos, sin, _positions: positions }
    }

    fn hidden_states(&self, ids: &Tensor, blocks: &Blocks) -> Tensor {
        // Lives to the end of the function, as in Python.
        let embeddings = Tensor::embedding(&self.tokens, ids, -1, false, false);
        let rotations = self.rotations();
        let mut hidden = embeddings.shallow_clone();
        for (index, block) in self.blocks.iter().enumerate() {
            let block = block.clone();
            let rotations = rotations.clone();
            hidden = blocks.run(index, &hidden, move |x| block.forward(x, &rotations));
        }
        self.norm.forward(&hidden)
    }
}

impl Network for Llama {
    fn batch(&self, samples: i64) -> Batch {
        language::batch(samples, self.sequence, self.tokens.size()[0], self.device)
    }

    fn block_count(&self) -> usize {
        self.blocks.len()
    }

    fn loss(&self, batch: &Batch, blocks: &Blocks) -> Tensor {
        let hidden = self.hidden_states(&batch.inputs, blocks);
        let head = self.head.as_ref().unwrap_or(&self.tokens);
        language::head_loss(hidden, head, batch)
    }
}

/// Cosines and sines of each position and frequency, `[1, sequence, head width]`.
struct Rotations {
    cos: Tensor,
    sin: Tensor,
    /// Python hands it to each block, and a checkpointed one keeps what it was handed.
    _positions: Tensor,
}

impl Clone for Rotations {
    fn clone(&self) -> Self {
        Self {
            cos: self.cos.shallow_clone(),
            sin: self.sin.shallow_clone(),
            _positions: self._positions.shallow_clone(),
        }
    }
}

#[derive(Clone)]
struct Block {
    query: Linear,
    key: Linear,
    value: Linear,
    attention_out: Linear,
    gate: Linear,
    up: Linear,
    down: Linear,
    attention_norm: RmsNorm,
    feed_forward_norm: RmsNorm,
    head_dim: i64,
    grouped: bool,
    dropout: f64,
}

impl Block {
    fn new(builder: &mut Builder, decoder: &Decoder, head_dim: i64) -> Self {
        let (hidden, inner) = (dim(decoder.hidden), dim(decoder.feed_forward));
        let width = head_dim * dim(decoder.heads);
        let kv_width = head_dim * dim(decoder.kv_heads);
        let bias = decoder.qkv_bias;
        Self {
            query: Linear::new(builder, hidden, width, bias),
            key: Linear::new(builder, hidden, kv_width, bias),
            value: Linear::new(builder, hidden, kv_width, bias),
            attention_out: Linear::new(builder, width, hidden, false),
            gate: Linear::new(builder, hidden, inner, false),
            up: Linear::new(builder, hidden, inner, false),
            down: Linear::new(builder, inner, hidden, false),
            attention_norm: RmsNorm::new(builder, hidden),
            feed_forward_norm: RmsNorm::new(builder, hidden),
            head_dim,
            grouped: decoder.kv_heads < decoder.heads,
            dropout: decoder.dropout,
        }
    }

    fn forward(&self, residual: &Tensor, rotations: &Rotations) -> Tensor {
        let hidden = self
            .attention_norm
            .forward(residual)
            .then(|x| self.attend(x, rotations))
            .then(|attended| residual + attended);
        self.feed_forward_norm.forward(&hidden).then(|x| self.feed(x)).then(|fed| &hidden + fed)
    }

    fn attend(&self, x: &Tensor, rotations: &Rotations) -> Tensor {
        let size = x.size();
        let (samples, sequence) = (size[0], size[1]);
        let heads = |x: &Tensor| x.view([samples, sequence, -1, self.head_dim]).transpose(1, 2);
        let query = self.query.forward(x).then(heads);
        let key = self.key.forward(x).then(heads);
        let value = self.value.forward(x).then(heads);
        let (query, key) = {
            // The function that rotates holds what it was given until both are rotated.
            let (cos, sin) = (rotations.cos.unsqueeze(1), rotations.sin.unsqueeze(1));
            let rotated = (rotate(&query, &cos, &sin), rotate(&key, &cos, &sin));
            drop((query, key));
            rotated
        };
        Tensor::scaled_dot_product_attention(
            &query,
            &key,
            &value,
            None::<&Tensor>,
            self.dropout,
            sequence > 1,
            (self.head_dim as f64).powf(-0.5),
            self.grouped,
        )
        .then(|x| x.transpose(1, 2).contiguous())
        .then(|x| x.reshape([samples, sequence, -1]).contiguous())
        .then(|x| self.attention_out.forward(x))
    }

    fn feed(&self, x: &Tensor) -> Tensor {
        let gate = self.gate.forward(x).then(Tensor::silu);
        self.up.forward(x).then(|up| &gate * up).then_drop(gate).then(|x| self.down.forward(x))
    }
}

/// Frees a second operand together with the first, where Python's expression does.
trait ThenDrop: Sized {
    fn then_drop(self, other: Tensor) -> Self {
        drop(other);
        self
    }
}

impl ThenDrop for Tensor {}

#[derive(Clone)]
struct RmsNorm {
    weight: Weight,
}

impl RmsNorm {
    fn new(builder: &mut Builder, width: i64) -> Self {
        Self { weight: builder.constant(&[width], 1.0) }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let kind = x.kind();
        let x = x.to_kind(Kind::Float);
        let variance = x
            .pow_tensor_scalar(2)
            .then(|square| square.mean_dim([-1].as_slice(), true, None::<Kind>));
        let scaled = (&variance + EPSILON).then(Tensor::rsqrt).then(|scale| &x * scale);
        drop(x);
        scaled.to_kind(kind).then(|x| &*self.weight * x)
    }
}

fn rotary_frequencies(builder: &mut Builder, head_dim: i64) -> Weight {
    let frequencies = builder.buffer(&[head_dim / 2], Kind::Float, 0.0);
    let exponents: Vec<f32> = (0..head_dim / 2)
        .map(|i| ROTARY_BASE.powf(-2.0 * i as f64 / head_dim as f64) as f32)
        .collect();
    frequencies.shallow_clone().copy_(&Tensor::from_slice(&exponents));
    frequencies
}

fn rotate(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Tensor {
    let straight = x * cos;
    let half = x.size()[3] / 2;
    let (first, second) = (x.narrow(-1, 0, half), x.narrow(-1, half, half));
    let crossed = second.neg().then(|turned| Tensor::cat(&[turned, &first], -1)).then(|x| x * sin);
    straight + crossed
}
