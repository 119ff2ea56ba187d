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
    let longest = model.architecture.max_sequence();
    let workload = Workload {
        model,
        sequence: args.seq.or_else(|| longest.map(|longest| longest.min(DEFAULT_SEQUENCE))),
        optimizer: args.optimizer,
        optimizer_implementation: OptimizerImplementation::default(),
        gradient_clipping: None,
    };
    workload.check_sequence()?;
    Ok(workload)
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
