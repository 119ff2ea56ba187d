use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::DeviceArgs;
use crate::cli::values;

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
pub(in crate::cli) struct RunArgs {
    #[command(flatten)]
    pub(in crate::cli) device: DeviceArgs,

    /// How many of these GPUs the machine has
    /// [default: as many as torchrun's --nproc-per-node says, or 1]
    #[arg(long, value_name = "N", value_parser = values::gpus, help_heading = "GPU")]
    pub(in crate::cli) gpus: Option<u32>,

    /// Compute no tensor, not even a small one
    #[arg(long, help_heading = "Values")]
    pub(in crate::cli) no_shadow: bool,

    /// What to go on with where a size depends on values that nobody knows
    #[arg(
        long,
        value_name = "END",
        value_enum,
        default_value_t = UnknownSizes::Highest,
        help_heading = "Values"
    )]
    pub(in crate::cli) unknown_sizes: UnknownSizes,

    /// Write what each process did on the virtual GPU to a file: as one page with charts if its name ends
    /// with .html, else as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) report: Option<PathBuf>,

    /// Write PyTorch's memory snapshot of the run to a file, for its viewer and for `replay`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) snapshot: Option<PathBuf>,

    /// Draw the memory of each process over its kernel launches
    #[arg(long, help_heading = "Output")]
    pub(in crate::cli) timeline: bool,

    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<OsString>,
}

/// An end of the interval in which a size lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum UnknownSizes {
    /// As many elements as there can be: the peak is an upper bound
    Highest,
    /// As few
    Lowest,
}
