//! GPT-2, operator by operator as Hugging Face's `GPT2LMHeadModel` with `sdpa` attention and
//! without a key-value cache (`use_cache=False`, as its Trainer sets).

use std::f64::consts::PI;

use tch::{Device, Kind, Tensor};
use vramfit::profile::model::Decoder;

use super::{Batch, Network, language};
use crate::blocks::Blocks;
use crate::model::{Builder, Then, Weight, dim};

/// Standard deviation of initial weights.
const DEVIATION: f64 = 0.02;
const EPSILON: f64 = 1e-5;

pub(super) struct Gpt2 {
    tokens: Weight,
    positions: Weight,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: Option<Weight>,
    dropout: f64,
    sequence: i64,
    device: Device,
}

impl Gpt2 {
    pub(super) fn new(
        builder: &mut Builder,
        decoder: &Decoder,
        sequence: i64,
    ) -> Result<Self, String> {
        if decoder.kv_heads != decoder.heads {
            return Err(format!(
                "GPT-2 has as many key as query heads, not {} and {}",
                decoder.kv_heads, decoder.heads
            ));
        }
        let (vocabulary, hidden) = (dim(decoder.vocabulary), dim(decoder.hidden));
        let head_dim = language::head_dim(decoder)?;
        Ok(Self {
            tokens: builder.normal(&[vocabulary, hidden], DEVIATION),
            positions: builder.normal(&[dim(decoder.context), hidden], DEVIATION),
            blocks: (0..decoder.layers).map(|_| Block::new(builder, decoder, head_dim)).collect(),
            norm: LayerNorm::new(builder, hidden),
            head: (!decoder.tied_embeddings)
                .then(|| builder.normal(&[vocabulary, hidden], DEVIATION)),
            dropout: decoder.dropout,
            sequence,
            device: builder.device(),
        })
    }

    fn hidden_states(&self, ids: &Tensor, blocks: &Blocks) -> Tensor {
        // Both embeddings live to the end of the function, as they do in Python.
        let token_embeddings = Tensor::embedding(&self.tokens, ids, -1, false, false);
        // The offset of a key-value cache is added even where it is 0.
        let positions = Tensor::arange(self.sequence, (Kind::Int64, self.device))
            .then(|positions| (positions + 0).unsqueeze(0));
        let position_embeddings = Tensor::embedding(&self.positions, &positions, -1, false, false);
        let mut hidden =
            (&token_embeddings + &position_embeddings).then(|x| x.dropout(self.dropout, true));
        for (index, block) in self.blocks.iter().enumerate() {
            let block = block.clone();
            hidden = blocks.run(index, &hidden, move |x| block.forward(x));
        }
        let normed = self.norm.forward(&hidden);
        drop((token_embeddings, positions, position_embeddings));
        normed
    }
}

impl Network for Gpt2 {
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

#[derive(Clone)]
struct Block {
    attention_norm: LayerNorm,
    attention: Conv1d,
    attention_out: Conv1d,
    feed_forward_norm: LayerNorm,
    feed_forward: Conv1d,
    feed_forward_out: Conv1d,
    head_dim: i64,
    dropout: f64,
}

impl Block {
    fn new(builder: &mut Builder, decoder: &Decoder, head_dim: i64) -> Self {
        let (hidden, inner) = (dim(decoder.hidden), dim(decoder.feed_forward));
        let width = head_dim * dim(decoder.heads);
        Self {
            attention_norm: LayerNorm::new(builder, hidden),
            attention: Conv1d::new(builder, hidden, 3 * width),
            attention_out: Conv1d::new(builder, width, hidden),
            feed_forward_norm: LayerNorm::new(builder, hidden),
            feed_forward: Conv1d::new(builder, hidden, inner),
            feed_forward_out: Conv1d::new(builder, inner, hidden),
            head_dim,
            dropout: decoder.dropout,
        }
    }

    fn forward(&self, residual: &Tensor) -> Tensor {
        // The names of Python's function die where they are bound anew, and at its end in order.
        let normed = self.attention_norm.forward(residual);
        let attended = self.attend(&normed);
        let hidden = &attended + residual;
        drop(normed);
        let normed = self.feed_forward_norm.forward(&hidden);
        let fed = self
            .feed_forward
            .forward(&normed)
            .then(gelu_tanh)
            .then(|x| self.feed_forward_out.forward(x))
            .then(|x| x.dropout(self.dropout, true));
        let out = &hidden + &fed;
        drop(normed);
        drop((hidden, attended, fed));
        out
    }

    fn attend(&self, x: &Tensor) -> Tensor {
        let size = x.size();
        let (samples, sequence) = (size[0], size[1]);
        let fused = self.attention.forward(x);
        let width = fused.size()[2] / 3;
        let heads = |x: &Tensor| x.view([samples, sequence, -1, self.head_dim]).transpose(1, 2);
        let parts = fused.split(width, 2);
        drop(fused);
        let (query, key, value) = (heads(&parts[0]), heads(&parts[1]), heads(&parts[2]));
        Tensor::scaled_dot_product_attention(
            &query,
            &key,
            &value,
            None::<&Tensor>,
            self.dropout,
            // One token attends to itself: no mask needed, and a kernel without one is chosen.
            sequence > 1,
            (self.head_dim as f64).powf(-0.5),
            false,
        )
        .then(|x| x.transpose(1, 2).contiguous())
        .then(|x| x.reshape([samples, sequence, width]).contiguous())
        .then(|x| self.attention_out.forward(x))
        .then(|x| x.dropout(self.dropout, true))
    }
}

#[derive(Clone)]
struct LayerNorm {
    weight: Weight,
    bias: Weight,
}

impl LayerNorm {
    fn new(builder: &mut Builder, width: i64) -> Self {
        Self { weight: builder.constant(&[width], 1.0), bias: builder.constant(&[width], 0.0) }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        x.layer_norm(self.weight.size(), Some(&*self.weight), Some(&*self.bias), EPSILON, true)
    }
}

/// Hugging Face's `Conv1D`: a linear layer whose weight is stored transposed.
#[derive(Clone)]
struct Conv1d {
    weight: Weight,
    bias: Weight,
}

impl Conv1d {
    fn new(builder: &mut Builder, inputs: i64, outputs: i64) -> Self {
        Self {
            weight: builder.normal(&[inputs, outputs], DEVIATION),
            bias: builder.constant(&[outputs], 0.0),
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let mut size = x.size();
        let flat = x.view([-1, self.weight.size()[0]]);
        if let Some(width) = size.last_mut() {
            *width = self.weight.size()[1];
        }
        self.bias.addmm(&flat, &self.weight).view(size.as_slice())
    }
}

/// Hugging Face's `gelu_new`: one operator after the other, each with its temporary.
fn gelu_tanh(x: &Tensor) -> Tensor {
    let half = x * 0.5;
    let bent = x
        .pow_tensor_scalar(3.0)
        .then(|x| x * 0.044715)
        .then(|cubic| x + cubic)
        .then(|x| x * (2.0 / PI).sqrt())
        .then(Tensor::tanh)
        .then(|x| x + 1.0);
    half * bent
}
