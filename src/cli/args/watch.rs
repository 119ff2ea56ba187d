use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::DeviceArgs;
use crate::cli::values;

const WATCH_EXAMPLES: &str = "\
Examples:
  vramfit watch -- python train.py
  vramfit watch --record run.jsonl -- torchrun --nproc-per-node 2 ddp.py
  vramfit watch --gpu rtx-3050-laptop-4gb -- python train.py
  vramfit watch --replay run.jsonl --report run.html

Exit status: the program's own, and 128 and the signal that ended it; 2 bad input, 3 no GPU to watch.
Of --replay: 0 nothing was found, 1 something was, 2 no recording.";

/// Watch a program train, and say what goes wrong
///
/// Reads NVML beside the program, and in Python processes PyTorch's allocator at each optimizer step:
/// memory that leaks, evaluation that keeps graphs, memory that spills into the host's, an allocator
/// that thrashes, a GPU that is throttled or waits for data. What is found is said on standard error as
/// soon as it is sure, and in full at the end. With the name of a virtual GPU the program runs on that,
/// as `vramfit run` does it.
#[derive(Debug, Args)]
#[command(after_help = WATCH_EXAMPLES)]
pub(in crate::cli) struct WatchArgs {
    #[command(flatten)]
    pub(in crate::cli) device: DeviceArgs,

    /// How many virtual GPUs the machine has
    /// [default: as many as torchrun's --nproc-per-node says, or 1]
    #[arg(long, value_name = "N", value_parser = values::gpus, help_heading = "GPU")]
    pub(in crate::cli) gpus: Option<u32>,

    /// Milliseconds between two readings at least; they become rarer in a long run
    #[arg(
        long,
        value_name = "MS",
        value_parser = values::milliseconds,
        default_value = "100",
        help_heading = "Watching"
    )]
    pub(in crate::cli) interval: Duration,

    /// On a real GPU too, note for each block of memory the lines that asked for it, to name what
    /// leaks; costs some microseconds for each
    #[arg(long, help_heading = "Watching")]
    pub(in crate::cli) stacks: bool,

    /// Write what is seen to a file as it comes, one JSON object a line
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) record: Option<PathBuf>,

    /// Write what was found to a file at the end, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) findings: Option<PathBuf>,

    /// Write the run and what was found as one page with charts (HTML, for a browser) to a file at the end
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) report: Option<PathBuf>,

    /// Write PyTorch's memory snapshot of the run to a file, for its viewer and for `replay`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) snapshot: Option<PathBuf>,

    /// Run nothing, and look at what an earlier run recorded
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["command", "record", "snapshot", "stacks", "gpus", "gpu", "vram"],
        help_heading = "Output"
    )]
    pub(in crate::cli) replay: Option<PathBuf>,

    /// With --replay, print JSON, sizes in bytes
    #[arg(long, requires = "replay", conflicts_with = "command", help_heading = "Output")]
    pub(in crate::cli) json: bool,

    /// The program and its arguments
    #[arg(required_unless_present = "replay", last = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<OsString>,
}
