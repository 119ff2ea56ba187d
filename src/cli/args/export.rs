use std::path::PathBuf;

use clap::Args;

use crate::cli::values;
use crate::export::Exporter;

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
pub(in crate::cli) struct ExportArgs {
    /// A plan that `vramfit plan --output` wrote
    #[arg(value_name = "PLAN")]
    pub(in crate::cli) plan: PathBuf,

    /// The framework
    #[arg(long, value_name = "FORMAT", value_parser = values::exporter())]
    pub(in crate::cli) to: &'static dyn Exporter,

    /// Write it to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
}
