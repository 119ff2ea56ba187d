//! What several commands take.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::values::{self, FunctionName};
use crate::units::{Bytes, Share};
use crate::workload::{Optimizer, Variable};

/// What is trained.
#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(in crate::cli) struct WorkloadArgs {
    /// Model; `vramfit models` lists all
    #[arg(long, value_name = "NAME", default_value = "gpt2-small")]
    pub(in crate::cli) model: String,

    /// Your own model instead: a Python function that returns it; docs/workload.md tells how
    #[arg(
        long,
        value_name = "FILE:FUNCTION",
        conflicts_with = "model",
        value_parser = values::function
    )]
    pub(in crate::cli) workload: Option<FunctionName>,

    /// Optimizer: sgd, sgd-momentum, adam or adamw [default: the workload's own, or adamw]
    #[arg(long, value_name = "NAME", value_parser = values::optimizer)]
    pub(in crate::cli) optimizer: Option<Optimizer>,

    /// What the command reads from VRAMFIT_* variables rather than from placeholders, separated by
    /// commas: micro_batch, accumulation, precision, fp16, bf16, checkpoint, seq, steps
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = values::variable,
        requires = "command"
    )]
    pub(in crate::cli) vary: Vec<Variable>,

    /// Your own command instead, with placeholders such as {micro_batch} and {accumulation} for what
    /// may be varied; docs/command.md lists them
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["model", "workload", "optimizer"])]
    pub(in crate::cli) command: Vec<OsString>,
}

/// On what.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "GPU")]
pub(in crate::cli) struct DeviceArgs {
    /// GPU: `auto` is the one in this machine; `vramfit gpus` lists those there are profiles of
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(in crate::cli) gpu: String,

    /// Count on this much memory instead of the GPU's own, e.g. 4GiB
    #[arg(long, value_name = "SIZE", value_parser = values::memory)]
    pub(in crate::cli) vram: Option<Bytes>,

    /// Operating system of the machine planned for: linux, windows or wsl; of a virtual GPU only
    /// [default: this machine's]
    #[arg(long, value_name = "NAME", value_enum, hide_possible_values = true)]
    pub(in crate::cli) platform: Option<Platform>,

    /// Memory that a desktop or another program needs, e.g. 600MiB
    /// [default: 0; of a Windows desktop 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(in crate::cli) reserve: Option<Bytes>,

    /// Memory to hold back against surprises, e.g. 5% or 200MiB
    /// [default: 5 %, at least 200 MiB; without a display 3 %, at least 128 MiB]
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    pub(in crate::cli) margin: Option<Share>,
}

/// How points are tried.
#[derive(Debug, Args)]
#[command(next_help_heading = "Measuring")]
pub(in crate::cli) struct MeasuringArgs {
    /// Append each measurement to a file as it comes, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) record: Option<PathBuf>,

    /// Seconds that one point may take
    /// [default: 600, of a built-in model or a function on a virtual GPU 120]
    #[arg(long, value_name = "SECONDS", value_parser = values::count)]
    pub(in crate::cli) timeout: Option<u32>,

    /// Show what the worker, and your own code in it, prints
    #[arg(long)]
    pub(in crate::cli) verbose: bool,
}

/// Operating systems, as they are typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Platform {
    /// Linux on the machine itself
    Linux,
    /// Windows
    Windows,
    /// Linux under Windows (WSL 2)
    Wsl,
}

impl From<Platform> for crate::device::Platform {
    fn from(platform: Platform) -> Self {
        match platform {
            Platform::Linux => Self::Linux,
            Platform::Windows => Self::Windows,
            Platform::Wsl => Self::Wsl,
        }
    }
}

impl From<crate::device::Platform> for Platform {
    fn from(platform: crate::device::Platform) -> Self {
        match platform {
            crate::device::Platform::Linux => Self::Linux,
            crate::device::Platform::Windows => Self::Windows,
            crate::device::Platform::Wsl => Self::Wsl,
        }
    }
}
