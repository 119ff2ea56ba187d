use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{DeviceArgs, MeasuringArgs, WorkloadArgs};
use crate::cli::values::{self, Checkpoint};
use crate::export::Exporter;
use crate::workload::{Lengths, Precision};

const PLAN_EXAMPLES: &str = "\
Examples:
  vramfit plan --target-batch 64
  vramfit plan --target-batch 64 --model resnet50 --gpu rtx-3050-laptop-4gb
  vramfit plan --target-batch 64 --model gpt2-small --seq 512 --precision bf16,fp16 --json
  vramfit plan --target-batch 64 --model gpt2-small --seq 256..1024 --vram 6GiB
  vramfit plan --target-batch 256 --model resnet50 --gpu rtx-3090 --samples 1281167
  vramfit plan --target-batch 64 --workload train.py:workload
  vramfit plan --target-batch 64 -- python train.py --batch-size {micro_batch} --bf16 {bf16}
  vramfit plan --target-batch 256 --world-size 2 --vram 8GiB --reserve 600MiB --output plan.json";

/// Find the settings that reach a target batch within the GPU's memory
///
/// The answer holds the micro-batch, the accumulation steps that make up the target, the precision
/// and the checkpointing. No micro-batch is recommended that was not run.
#[derive(Debug, Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub(in crate::cli) struct PlanArgs {
    /// Samples in one optimizer step, over all GPUs
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = "Training")]
    pub(in crate::cli) target_batch: u32,

    /// Samples to train on, of an epoch or of all epochs: shows how long they take
    #[arg(long, value_name = "N", value_parser = values::samples, help_heading = "Training")]
    pub(in crate::cli) samples: Option<u64>,

    #[command(flatten)]
    pub(in crate::cli) workload: WorkloadArgs,

    /// Tokens in one sample. Several, as 256,512,1024, as 256..4096 (doubling) or as 256..2048:256 (in
    /// steps), show what a shorter context buys, and the longest that fits
    /// [default: the most the model takes, up to 1024]
    #[arg(long, value_name = "N", value_parser = values::lengths, help_heading = "Training")]
    pub(in crate::cli) seq: Option<Lengths>,

    #[command(flatten)]
    pub(in crate::cli) device: DeviceArgs,

    /// Precisions to try, separated by commas: fp32, tf32, bf16, fp16
    /// [default: those the GPU has in hardware]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = values::precision,
        help_heading = "Search"
    )]
    pub(in crate::cli) precision: Vec<Precision>,

    /// Activation checkpointing to try, separated by commas: none, full, selective (the fewest blocks
    /// that make a micro-batch fit), every-2, every-3 …, blocks-0-4+8
    /// [default: none,full,selective]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = values::checkpoint,
        help_heading = "Search"
    )]
    pub(in crate::cli) checkpoint: Vec<Checkpoint>,

    /// GPUs that share the target batch [default: 1, or torchrun's --nproc-per-node]
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = "Training")]
    pub(in crate::cli) world_size: Option<u32>,

    /// Allow a smaller last micro-batch, so that the micro-batch need not divide the target
    #[arg(long, conflicts_with = "command", help_heading = "Search")]
    pub(in crate::cli) ragged: bool,

    /// What the recommended setting is best at
    #[arg(
        long,
        value_name = "GOAL",
        value_enum,
        default_value_t = Objective::Throughput,
        help_heading = "Search"
    )]
    pub(in crate::cli) objective: Objective,

    #[command(flatten)]
    pub(in crate::cli) measuring: MeasuringArgs,

    /// Print the plan as JSON
    #[arg(long, help_heading = "Output")]
    pub(in crate::cli) json: bool,

    /// Print the recommendation for a framework instead of the table, as `vramfit export` does:
    /// pytorch, hf, accelerate, lightning or deepspeed
    #[arg(
        long,
        value_name = "FORMAT",
        conflicts_with = "json",
        hide_possible_values = true,
        value_parser = values::exporter(),
        help_heading = "Output"
    )]
    pub(in crate::cli) export: Option<&'static dyn Exporter>,

    /// Write the plan as JSON to a file, for `vramfit check --plan` and `vramfit export`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) output: Option<PathBuf>,

    /// Write the plan as one page with charts (HTML, for a browser) to a file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) report: Option<PathBuf>,
}

/// What the recommended setting is best at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Objective {
    /// Samples per second; on a virtual GPU as its cost model has them
    Throughput,
    /// Samples in one micro-batch
    MicroBatch,
    /// Least memory
    Memory,
}
