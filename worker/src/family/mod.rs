//! Families of models: each builds its network on the device and computes the loss of a batch.

mod gpt2;
mod language;
mod llama;
mod mlp;
mod pinn;
mod resnet;

use tch::{Device, Tensor};
use vramfit::profile::model::{Architecture, DecoderStyle};
use vramfit::workload::{Checkpointing, Workload};

use crate::model::Builder;
use crate::shim::checkpoint;

/// One micro-batch on the device.
#[derive(Debug)]
pub(crate) struct Batch {
    /// What goes in: token ids, images, features, coordinates.
    pub(crate) inputs: Tensor,
    /// What should come out; coordinates of a physics-informed network have no target.
    pub(crate) targets: Option<Tensor>,
}

/// A network that can be trained.
pub(crate) trait Network {
    /// Makes a micro-batch of random samples of full length on the device.
    fn batch(&self, samples: i64) -> Batch;

    /// Mean loss of a micro-batch. Panics as tch's operators do.
    fn loss(&self, batch: &Batch, checkpointing: Checkpointing) -> Tensor;
}

/// A network with its parameters, in PyTorch's order.
pub(crate) struct Model {
    pub(crate) network: Box<dyn Network>,
    pub(crate) parameters: Vec<Tensor>,
}

impl Model {
    /// Number of elements of all parameters.
    pub(crate) fn parameter_count(&self) -> u64 {
        self.parameters.iter().map(|parameter| parameter.numel() as u64).sum()
    }
}

/// Builds the network of a workload on `device`. Panics as tch's operators do.
///
/// # Errors
/// When the workload asks for what the family does not have, in one line.
pub(crate) fn build(workload: &Workload, device: Device) -> Result<Model, String> {
    let mut builder = Builder::new(device);
    let Some(profile) = workload.subject.built_in() else {
        return Err("this worker trains the models of profiles alone".to_owned());
    };
    let network: Box<dyn Network> = match &profile.architecture {
        Architecture::Decoder(decoder) => {
            let sequence = language::sequence(workload, decoder)?;
            match decoder.style {
                DecoderStyle::Gpt2 => Box::new(gpt2::Gpt2::new(&mut builder, decoder, sequence)?),
                DecoderStyle::Llama => {
                    Box::new(llama::Llama::new(&mut builder, decoder, sequence)?)
                }
            }
        }
        Architecture::Resnet(resnet) => Box::new(resnet::Resnet::new(&mut builder, resnet)),
        Architecture::Mlp(mlp) => Box::new(mlp::Mlp::new(&mut builder, mlp)),
        Architecture::Pinn(pinn) => Box::new(pinn::Pinn::new(&mut builder, pinn)),
    };
    Ok(Model { network, parameters: builder.into_parameters() })
}

/// Runs `block` on `x`, checkpointed where `checkpointing` covers block `index`.
fn run_block(
    checkpointing: Checkpointing,
    index: usize,
    x: &Tensor,
    block: impl Fn(&Tensor) -> Tensor + Send + 'static,
) -> Tensor {
    let index = u32::try_from(index).unwrap_or(u32::MAX);
    if !checkpointing.covers(index) {
        return block(x);
    }
    match checkpoint::checkpointed(Box::new(block), x) {
        Ok(y) => y,
        // Where tch's operators panic, this does: one way for failures to travel.
        Err(error) => panic!("{error}"),
    }
}
