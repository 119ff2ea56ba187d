use clap::{Args, ValueEnum};

use crate::cli::values::{self, FunctionName};

const EQUIVALENCE_EXAMPLES: &str = "\
Examples:
  vramfit equivalence
  vramfit equivalence --only gradients
  vramfit equivalence --steps 300 --json > equivalence.json
  vramfit equivalence --workload train.py:workload --target-batch 16 --micro-batch 4

Exit status: 0 all came out as it must; 1 it did not, or the gradients of your own function are not
equal; 2 bad input; 3 there is no PyTorch, or it failed.";

/// See what accumulation and precision change, by a small training
///
/// Compares the gradient of accumulated micro-batches with that of the full batch, where it is the same
/// and where it is not, and trains a small language model with each precision and accumulation: memory,
/// speed, loss and validation side by side. Takes half a minute on a CPU. With --workload it is your own
/// model whose gradients are compared.
#[derive(Debug, Args)]
#[command(after_help = EQUIVALENCE_EXAMPLES)]
pub(in crate::cli) struct EquivalenceArgs {
    /// What to train on: cpu or gpu [default: the GPU of this machine if there is one]
    #[arg(long, value_name = "NAME", value_enum, hide_possible_values = true)]
    pub(in crate::cli) device: Option<TrainedOn>,

    /// Virtual GPU that the memory is measured on when a CPU trains
    /// [default: rtx-3050-laptop-4gb]
    #[arg(long, value_name = "NAME", conflicts_with = "workload")]
    pub(in crate::cli) gpu: Option<String>,

    /// Do only one part: gradients or training
    #[arg(
        long,
        value_name = "PART",
        value_enum,
        hide_possible_values = true,
        conflicts_with = "workload"
    )]
    pub(in crate::cli) only: Option<Only>,

    /// Optimizer steps of the training
    #[arg(
        long,
        value_name = "N",
        default_value = "50",
        value_parser = values::steps,
        conflicts_with = "workload"
    )]
    pub(in crate::cli) steps: u32,

    /// What everything random is drawn from
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::seed)]
    pub(in crate::cli) seed: u64,

    /// Your own model instead: a Python function that returns it; docs/workload.md tells how
    #[arg(
        long,
        value_name = "FILE:FUNCTION",
        value_parser = values::function,
        help_heading = "Your own model"
    )]
    pub(in crate::cli) workload: Option<FunctionName>,

    /// Samples of the full batch
    #[arg(
        long,
        value_name = "N",
        default_value = "8",
        value_parser = values::count,
        requires = "workload",
        help_heading = "Your own model"
    )]
    pub(in crate::cli) target_batch: u32,

    /// Samples of a micro-batch
    #[arg(
        long,
        value_name = "N",
        default_value = "2",
        value_parser = values::count,
        requires = "workload",
        help_heading = "Your own model"
    )]
    pub(in crate::cli) micro_batch: u32,

    /// Tokens in one sample, passed on to the function
    #[arg(
        long,
        value_name = "N",
        value_parser = values::count,
        requires = "workload",
        help_heading = "Your own model"
    )]
    pub(in crate::cli) seq: Option<u32>,

    /// Print JSON, sizes in bytes
    #[arg(long, help_heading = "Output")]
    pub(in crate::cli) json: bool,
}

/// `--device`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum TrainedOn {
    /// The CPU
    Cpu,
    /// The GPU of this machine
    Gpu,
}

/// `--only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Only {
    /// Gradients of the built-in cases
    Gradients,
    /// The built-in training
    Training,
}
