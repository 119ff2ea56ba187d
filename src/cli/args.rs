//! The command line as clap sees it, and nothing that does anything.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::values::{self, FunctionName};
use crate::export::Exporter;
use crate::units::{Bytes, Share};
use crate::workload::{Checkpointing, Optimizer, Precision, Variable};

/// Plans the memory of a training run before it starts
///
/// Runs the real training step with PyTorch, on your GPU or on a virtual one that executes nothing
/// but accounts for every byte, and says which micro-batch fits.
#[derive(Debug, Parser)]
#[command(name = "vramfit", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

const AFTER_HELP: &str = "\
For those who want to check or correct vramfit itself:
  gpu-check    Compare the GPU of this machine with its virtual twin

Exit status: 0 it fits, or the work is done; 1 it does not fit; 2 bad input; 3 could not measure.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Plan(PlanArgs),
    Check(CheckArgs),
    Export(ExportArgs),
    Run(RunArgs),
    Gpus(GpusArgs),
    Models(ModelsArgs),
    #[command(hide = true)]
    GpuCheck(GpuCheckArgs),
    Completions(CompletionsArgs),
}

impl Command {
    /// Whether a model is to be trained that no command of the user's trains.
    pub(super) fn trains_a_model(&self) -> bool {
        match self {
            Self::Plan(args) => args.workload.command.is_empty(),
            Self::Check(args) => args.workload.command.is_empty(),
            _ => false,
        }
    }
}

const PLAN_EXAMPLES: &str = "\
Examples:
  vramfit plan --target-batch 64
  vramfit plan --target-batch 64 --model resnet50 --gpu rtx-3050-laptop-4gb
  vramfit plan --target-batch 64 --model gpt2-small --seq 512 --precision bf16,fp16 --json
  vramfit plan --target-batch 64 --workload train.py:workload
  vramfit plan --target-batch 64 -- python train.py --batch-size {micro_batch} --bf16 {bf16}
  vramfit plan --target-batch 256 --world-size 2 --vram 8GiB --reserve 600MiB --output plan.json";

/// Find the settings that reach a target batch within the GPU's memory
///
/// The answer holds the micro-batch, the accumulation steps that make up the target, the precision
/// and the checkpointing. No micro-batch is recommended that was not run.
#[derive(Debug, Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub(super) struct PlanArgs {
    /// Samples in one optimizer step, over all GPUs
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = "Training")]
    pub(super) target_batch: u32,

    #[command(flatten)]
    pub(super) workload: WorkloadArgs,

    #[command(flatten)]
    pub(super) device: DeviceArgs,

    /// Precisions to try, separated by commas: fp32, tf32, bf16, fp16
    /// [default: those the GPU has in hardware]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = values::precision,
        help_heading = "Search"
    )]
    pub(super) precision: Vec<Precision>,

    /// Activation checkpointing to try, separated by commas: none, full, every-2, every-3 …
    /// [default: none,full]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = values::checkpointing,
        help_heading = "Search"
    )]
    pub(super) checkpoint: Vec<Checkpointing>,

    /// GPUs that share the target batch [default: 1, or torchrun's --nproc-per-node]
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = "Training")]
    pub(super) world_size: Option<u32>,

    /// Allow a smaller last micro-batch, so that the micro-batch need not divide the target
    #[arg(long, conflicts_with = "command", help_heading = "Search")]
    pub(super) ragged: bool,

    /// What the recommended setting is best at
    #[arg(
        long,
        value_name = "GOAL",
        value_enum,
        default_value_t = Objective::Throughput,
        help_heading = "Search"
    )]
    pub(super) objective: Objective,

    #[command(flatten)]
    pub(super) measuring: MeasuringArgs,

    /// Print the plan as JSON
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,

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
    pub(super) export: Option<&'static dyn Exporter>,

    /// Write the plan as JSON to a file, for `vramfit check --plan` and `vramfit export`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  vramfit export plan.json --to pytorch --output planned.py
  vramfit export plan.json --to hf
  vramfit export plan.json --to deepspeed --output ds_config.json";

/// Hand a plan over to a training framework
///
/// Prints a Python module, or the configuration, that applies what the plan recommends: micro-batch,
/// accumulation, precision, checkpointing, optimizer, allocator and loader. Evidence is at its head.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(super) struct ExportArgs {
    /// A plan that `vramfit plan --output` wrote
    #[arg(value_name = "PLAN")]
    pub(super) plan: PathBuf,

    /// The framework
    #[arg(long, value_name = "FORMAT", value_parser = values::exporter())]
    pub(super) to: &'static dyn Exporter,

    /// Write it to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

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
pub(super) struct CheckArgs {
    /// Check the recommended setting of a plan that `vramfit plan --output` wrote
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["micro_batch", "accumulation", "precision", "checkpoint", "model",
            "workload", "optimizer", "seq", "vary", "command"],
        help_heading = "Setting"
    )]
    pub(super) plan: Option<PathBuf>,

    /// Samples in one micro-step
    #[arg(
        long,
        value_name = "N",
        required_unless_present = "plan",
        value_parser = values::count,
        help_heading = "Setting"
    )]
    pub(super) micro_batch: Option<u32>,

    /// Micro-steps in one optimizer step
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = values::count,
        help_heading = "Setting"
    )]
    pub(super) accumulation: u32,

    /// Precision: fp32, tf32, bf16 or fp16
    /// [default: fp32]
    #[arg(long, value_name = "NAME", value_parser = values::precision, help_heading = "Setting")]
    pub(super) precision: Option<Precision>,

    /// Activation checkpointing: none, full, every-2, every-3 … [default: none]
    #[arg(
        long,
        value_name = "NAME",
        value_parser = values::checkpointing,
        help_heading = "Setting"
    )]
    pub(super) checkpoint: Option<Checkpointing>,

    #[command(flatten)]
    pub(super) workload: WorkloadArgs,

    #[command(flatten)]
    pub(super) device: DeviceArgs,

    #[command(flatten)]
    pub(super) measuring: MeasuringArgs,

    /// Print the answer as JSON
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
}

const RUN_EXAMPLES: &str = "\
Examples:
  vramfit run --gpu rtx-3050-laptop-4gb -- python train.py
  vramfit run --gpu rtx-4090 --reserve 1GiB -- python -m my_project.train
  vramfit run --gpu rtx-4060-laptop --gpus 2 -- torchrun --nproc-per-node 2 ddp.py";

/// Run any command on a virtual GPU
///
/// The command finds the virtual GPU in place of NVIDIA's driver and libraries. No kernel is executed;
/// memory is accounted for to the byte, and running out of it fails as on the real card. In Python,
/// small tensors are really computed, so that masks, lengths and counts steer the program as they
/// would. What was seen is said on standard error at the end; the exit status is the command's.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) device: DeviceArgs,

    /// How many of these GPUs the machine has
    /// [default: as many as torchrun's --nproc-per-node says, or 1]
    #[arg(long, value_name = "N", value_parser = values::gpus, help_heading = "GPU")]
    pub(super) gpus: Option<u32>,

    /// Compute no tensor, not even a small one
    #[arg(long, help_heading = "Values")]
    pub(super) no_shadow: bool,

    /// What to go on with where a size depends on values that nobody knows
    #[arg(
        long,
        value_name = "END",
        value_enum,
        default_value_t = UnknownSizes::Highest,
        help_heading = "Values"
    )]
    pub(super) unknown_sizes: UnknownSizes,

    /// Write what each process did on the virtual GPU as JSON to a file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) report: Option<PathBuf>,

    /// Draw the memory of each process over its kernel launches
    #[arg(long, help_heading = "Output")]
    pub(super) timeline: bool,

    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// An end of the interval in which a size lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum UnknownSizes {
    /// As many elements as there can be: the peak is an upper bound
    Highest,
    /// As few
    Lowest,
}

/// What is trained.
#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(super) struct WorkloadArgs {
    /// Model; `vramfit models` lists all
    #[arg(long, value_name = "NAME", default_value = "gpt2-small")]
    pub(super) model: String,

    /// Your own model instead: a Python function that returns it; docs/workload.md tells how
    #[arg(
        long,
        value_name = "FILE:FUNCTION",
        conflicts_with = "model",
        value_parser = values::function
    )]
    pub(super) workload: Option<FunctionName>,

    /// Optimizer: sgd, sgd-momentum, adam or adamw [default: the workload's own, or adamw]
    #[arg(long, value_name = "NAME", value_parser = values::optimizer)]
    pub(super) optimizer: Option<Optimizer>,

    /// Tokens in one sample [default: the most the model takes, up to 1024]
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub(super) seq: Option<u32>,

    /// What the command reads from VRAMFIT_* variables rather than from placeholders, separated by
    /// commas: micro_batch, accumulation, precision, fp16, bf16, checkpoint, seq, steps
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = values::variable,
        requires = "command"
    )]
    pub(super) vary: Vec<Variable>,

    /// Your own command instead, with placeholders such as {micro_batch} and {accumulation} for what
    /// may be varied; docs/command.md lists them
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["model", "workload", "optimizer"])]
    pub(super) command: Vec<OsString>,
}

/// On what.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "GPU")]
pub(super) struct DeviceArgs {
    /// GPU: `auto` is the one in this machine; `vramfit gpus` lists those there are profiles of
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(super) gpu: String,

    /// Count on this much memory instead of the GPU's own, e.g. 4GiB
    #[arg(long, value_name = "SIZE", value_parser = values::memory)]
    pub(super) vram: Option<Bytes>,

    /// Memory that a desktop or another program needs, e.g. 600MiB [default: 0]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(super) reserve: Option<Bytes>,

    /// Memory to hold back against surprises, e.g. 5% or 200MiB
    /// [default: 5 %, at least 200 MiB; without a display 3 %, at least 128 MiB]
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    pub(super) margin: Option<Share>,
}

/// How points are tried.
#[derive(Debug, Args)]
#[command(next_help_heading = "Measuring")]
pub(super) struct MeasuringArgs {
    /// Append each measurement to a file as it comes, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// Seconds that one point may take
    /// [default: 600, of a built-in model or a function on a virtual GPU 120]
    #[arg(long, value_name = "SECONDS", value_parser = values::count)]
    pub(super) timeout: Option<u32>,

    /// Show what the worker, and your own code in it, prints
    #[arg(long)]
    pub(super) verbose: bool,
}

/// What the recommended setting is best at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Objective {
    /// Samples per second
    Throughput,
    /// Samples in one micro-batch
    MicroBatch,
    /// Least memory
    Memory,
}

/// List the GPUs there are profiles of, or show one
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct GpusArgs {
    #[command(subcommand)]
    pub(super) show: Option<Show>,

    /// Print JSON, sizes in bytes
    #[arg(long)]
    pub(super) json: bool,
}

/// List the models that can be planned for, or show one
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ModelsArgs {
    #[command(subcommand)]
    pub(super) show: Option<Show>,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Show {
    /// Show one with all its facts
    Show {
        /// Its name
        name: String,

        /// Print JSON, sizes in bytes
        #[arg(long)]
        json: bool,
    },
}

const GPU_CHECK_EXAMPLES: &str = "\
Examples:
  vramfit gpu-check --points quick
  vramfit gpu-check --gpu 1 --output rtx-3060.json
  vramfit run --gpu rtx-3060-12gb -- vramfit gpu-check   # rehearses it without a GPU

Exit status: 0 every point ran or was skipped; 2 bad input; 3 no GPU, or a point failed.";

/// Compare the GPU of this machine with its virtual twin
///
/// Trains for a few steps at some forty points of all families, precisions and kinds of
/// checkpointing, on the card and on the virtual GPU made after it, and writes what both say, with
/// the differences, to one JSON file. Points that do not fit the card are skipped. The file is
/// written after each point; a run that was stopped is taken up again.
#[derive(Debug, Args)]
#[command(after_help = GPU_CHECK_EXAMPLES)]
pub(super) struct GpuCheckArgs {
    /// GPU: its index, UUID or product name
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(super) gpu: String,

    /// File for the measurements
    #[arg(long, value_name = "FILE", default_value = "gpu-check.json")]
    pub(super) output: PathBuf,

    /// How many points to try
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Points::Full)]
    pub(super) points: Points,

    /// Seconds that one point may take
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = values::count)]
    pub(super) timeout: u32,

    /// Print the document instead of the table
    #[arg(long)]
    pub(super) json: bool,
}

/// How many points of `gpu-check` to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Points {
    /// One or two of each family
    Quick,
    /// All
    Full,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn clap_finds_no_fault_with_the_command_line() {
        Cli::command().debug_assert();
    }
}
