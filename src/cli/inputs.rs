//! From flags to what they mean: the questions that need a profile to answer.

use super::args::WorkloadArgs;
use super::choose_gpu::Chosen;
use crate::error::{Error, ErrorKind};
use crate::profile::Catalog;
use crate::profile::gpu::ComputeCapability;
use crate::workload::{OptimizerImplementation, Precision, Workload};

/// Sequence in tokens where none is asked for and the model takes longer ones.
const DEFAULT_SEQUENCE: u32 = 1024;

/// What is to be trained.
pub(super) fn workload(args: &WorkloadArgs, catalog: &Catalog) -> Result<Workload, Error> {
    let model = catalog.model(&args.model)?;
    let sequence = match (args.seq, model.architecture.max_sequence()) {
        (Some(sequence), None) => {
            return Err(ErrorKind::NoSequences { model: model.name, sequence }.into());
        }
        (Some(sequence), Some(longest)) if sequence > longest => {
            return Err(ErrorKind::SequenceTooLong { model: model.name, sequence, longest }.into());
        }
        (Some(sequence), Some(_)) => Some(sequence),
        (None, longest) => longest.map(|longest| longest.min(DEFAULT_SEQUENCE)),
    };
    Ok(Workload {
        model,
        sequence,
        optimizer: args.optimizer,
        optimizer_implementation: OptimizerImplementation::default(),
        gradient_clipping: None,
    })
}

/// The samples that one GPU has to go through in one optimizer step.
pub(super) fn samples_per_gpu(target: u32, world_size: u32) -> Result<u32, Error> {
    match target % world_size {
        0 => Ok(target / world_size),
        _ => Err(ErrorKind::UnevenTarget { target, world_size }.into()),
    }
}

/// Whether the card computes in this precision, rather than emulating it.
pub(super) fn has(capability: ComputeCapability, precision: Precision) -> bool {
    match precision {
        Precision::Fp32 | Precision::Fp16 => true,
        Precision::Tf32 => capability.has_tf32(),
        Precision::Bf16 => capability.has_bf16(),
    }
}

/// Refuses a precision that the card would have to emulate.
pub(super) fn in_hardware(precision: Precision, gpu: &Chosen) -> Result<(), Error> {
    let capability = gpu.compute_capability();
    if has(capability, precision) {
        return Ok(());
    }
    Err(ErrorKind::NoHardware {
        precision: precision.name(),
        gpu: gpu.name().to_owned(),
        capability: capability.to_string(),
    }
    .into())
}
