use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::values;

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
pub(in crate::cli) struct GpuCheckArgs {
    /// GPU: its index, UUID or product name
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(in crate::cli) gpu: String,

    /// File for the measurements
    #[arg(long, value_name = "FILE", default_value = "gpu-check.json")]
    pub(in crate::cli) output: PathBuf,

    /// How many points to try
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Points::Full)]
    pub(in crate::cli) points: Points,

    /// Seconds that one point may take
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = values::count)]
    pub(in crate::cli) timeout: u32,

    /// Print the document instead of the table
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// How many points of `gpu-check` to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Points {
    /// One or two of each family
    Quick,
    /// All
    Full,
}
