//! What causal language models share: token batches, and the loss of Hugging Face's models.

use tch::{Device, Kind, Reduction, Tensor};
use vramfit::profile::model::Decoder;
use vramfit::workload::Workload;

use super::Batch;
use crate::model::dim;

/// Label that the loss ignores, by PyTorch's and Hugging Face's custom.
const IGNORED: i64 = -100;

/// Tokens in one sample.
pub(super) fn sequence(workload: &Workload, decoder: &Decoder) -> Result<i64, String> {
    match workload.sequence {
        None => Err(format!("`{}` needs a sequence length", workload.subject.name())),
        Some(0) => Err("a sequence of 0 tokens".to_owned()),
        Some(sequence) if sequence > decoder.context => Err(format!(
            "a sequence of {sequence} tokens, where `{}` has at most {}",
            workload.subject.name(),
            decoder.context
        )),
        Some(sequence) => Ok(dim(sequence)),
    }
}

/// Width of one head, checked.
pub(super) fn head_dim(decoder: &Decoder) -> Result<i64, String> {
    match decoder.head_dim {
        Some(width) if width > 0 => Ok(dim(width)),
        None if decoder.heads > 0 && decoder.hidden.is_multiple_of(decoder.heads) => {
            Ok(dim(decoder.hidden / decoder.heads))
        }
        _ => Err(format!("{} heads do not share a width of {}", decoder.heads, decoder.hidden)),
    }
}

/// Random tokens, and the labels as a tensor of their own, as data collators make them.
pub(super) fn batch(samples: i64, sequence: i64, vocabulary: i64, device: Device) -> Batch {
    let ids = Tensor::randint(vocabulary, [samples, sequence], (Kind::Int64, device));
    let mut labels = ids.empty_like();
    labels.copy_(&ids);
    Batch { inputs: ids, targets: Some(labels) }
}

/// Loss of the next token after `hidden`, by a head without bias.
pub(super) fn head_loss(hidden: Tensor, head: &Tensor, batch: &Batch) -> Tensor {
    let logits = hidden.linear(head, None::<&Tensor>);
    let loss = causal_loss(&logits, batch.targets.as_ref().unwrap_or(&batch.inputs));
    drop((hidden, logits));
    loss
}

/// Loss of the next token: logits in fp32 whatever they came in, labels shifted by one
/// (`ForCausalLMLoss` of transformers 5).
fn causal_loss(logits: &Tensor, labels: &Tensor) -> Tensor {
    let logits = logits.to_kind(Kind::Float);
    let vocabulary = logits.size()[2];
    let padded = labels.pad([0, 1], "constant", IGNORED as f64);
    let shifted = padded.narrow(-1, 1, padded.size()[1] - 1).contiguous();
    let loss = logits.view([-1, vocabulary]).cross_entropy_loss(
        &shifted.view([-1]),
        None::<&Tensor>,
        Reduction::Mean,
        IGNORED,
        0.0,
    );
    // In the order in which Python's names die.
    drop((logits, padded, shifted));
    loss
}
