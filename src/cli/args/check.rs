use std::path::PathBuf;

use clap::Args;

use super::{DeviceArgs, MeasuringArgs, WorkloadArgs};
use crate::cli::values::{self, Checkpoint};
use crate::workload::Precision;

const CHECK_EXAMPLES: &str = "\
Examples:
  vramfit check --model resnet50 --micro-batch 16 --precision bf16
  vramfit check --plan plan.json";

/// Say whether one setting fits the GPU as it is now
///
/// Counts what other processes hold. Exit status 0: it fits; 1: it does not, and the smallest change
/// that would is named.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(in crate::cli) struct CheckArgs {
    /// Check the recommended setting of a plan that `vramfit plan --output` wrote
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["micro_batch", "accumulation", "precision", "checkpoint", "model",
            "workload", "optimizer", "seq", "vary", "command"],
        help_heading = "Setting"
    )]
    pub(in crate::cli) plan: Option<PathBuf>,

    /// Samples in one micro-step
    #[arg(
        long,
        value_name = "N",
        required_unless_present = "plan",
        value_parser = values::count,
        help_heading = "Setting"
    )]
    pub(in crate::cli) micro_batch: Option<u32>,

    /// Micro-steps in one optimizer step
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = values::count,
        help_heading = "Setting"
    )]
    pub(in crate::cli) accumulation: u32,

    /// Precision: fp32, tf32, bf16 or fp16
    /// [default: fp32]
    #[arg(long, value_name = "NAME", value_parser = values::precision, help_heading = "Setting")]
    pub(in crate::cli) precision: Option<Precision>,

    /// Activation checkpointing: none, full, selective (the fewest blocks with which it fits), every-2,
    /// every-3 …, blocks-0-4+8 [default: none]
    #[arg(
        long,
        value_name = "NAME",
        value_parser = values::checkpoint,
        help_heading = "Setting"
    )]
    pub(in crate::cli) checkpoint: Option<Checkpoint>,

    #[command(flatten)]
    pub(in crate::cli) workload: WorkloadArgs,

    /// Tokens in one sample [default: the most the model takes, up to 1024]
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = "Training")]
    pub(in crate::cli) seq: Option<u32>,

    #[command(flatten)]
    pub(in crate::cli) device: DeviceArgs,

    #[command(flatten)]
    pub(in crate::cli) measuring: MeasuringArgs,

    /// Print the answer as JSON
    #[arg(long, help_heading = "Output")]
    pub(in crate::cli) json: bool,
}
