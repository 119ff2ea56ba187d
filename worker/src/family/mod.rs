//! Families of models: each builds its network on the device and computes the loss of a batch.

mod gpt2;
mod language;
mod llama;
mod mlp;
mod pinn;
mod resnet;

use tch::{Device, Tensor};
use vramfit::profile::model::{Architecture, DecoderStyle};
use vramfit::workload::Workload;

use crate::blocks::Blocks;
use crate::model::Builder;

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

    /// How many blocks it has that can be checkpointed.
    fn block_count(&self) -> usize;

    /// Mean loss of a micro-batch, its blocks run by `blocks`. Panics as tch's operators do.
    fn loss(&self, batch: &Batch, blocks: &Blocks) -> Tensor;
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
