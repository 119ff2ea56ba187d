use std::path::PathBuf;

use clap::Args;

use super::DeviceArgs;
use crate::cli::values;

const REPLAY_EXAMPLES: &str = "\
Examples:
  vramfit replay snapshot.pickle
  vramfit replay snapshot.pickle --gpu rtx-4060
  vramfit replay snapshot.pickle --vram 6GiB --alloc-conf max_split_size_mb:64 --json

Exit status: 0 it fits, as it was recorded or with an --alloc-conf that was given; 1 it does not; 2 no
snapshot, or a bad setting; 3 it could not be replayed.";

/// Replay a memory snapshot of PyTorch on a virtual GPU
///
/// Reads what `torch.cuda.memory._dump_snapshot` wrote (a pickle of which nothing is run, or JSON, also
/// gzipped), asks PyTorch's own allocator for the same blocks, and tells how much it needs, whether
/// that fits a card, and which of the allocator's settings would help.
#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXAMPLES)]
pub(in crate::cli) struct ReplayArgs {
    /// The snapshot
    #[arg(value_name = "SNAPSHOT")]
    pub(in crate::cli) snapshot: PathBuf,

    #[command(flatten)]
    pub(in crate::cli) device: DeviceArgs,

    /// Also try this value of PYTORCH_CUDA_ALLOC_CONF; may be given several times
    #[arg(
        long,
        value_name = "CONF",
        value_parser = values::alloc_conf,
        help_heading = "Replay"
    )]
    pub(in crate::cli) alloc_conf: Vec<String>,

    /// Replay only this device of the snapshot, e.g. 0 [default: all that did something]
    #[arg(long = "device", value_name = "N", help_heading = "Replay")]
    pub(in crate::cli) device_index: Option<u32>,

    /// Print JSON, sizes in bytes
    #[arg(long, help_heading = "Output")]
    pub(in crate::cli) json: bool,
}
