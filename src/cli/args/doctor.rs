use clap::Args;

const DOCTOR_EXAMPLES: &str = "\
Examples:
  vramfit doctor
  vramfit doctor --require-gpu && python train.py
  vramfit run --gpu rtx-4060-laptop -- vramfit doctor   # what it says of a virtual GPU

Exit status: 0 nothing prevents or harms training, or there is no NVIDIA GPU; 1 something does;
2 bad input.";

/// See whether driver, GPUs and PyTorch are fit for training
///
/// Looks at NVIDIA's driver, its GPUs and who holds their memory, at the PyTorch that vramfit would
/// run and at virtual GPUs, and says what is wrong and what to do. Changes nothing and takes no GPU
/// memory. A laptop's GPU that sleeps is not woken unasked.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub(in crate::cli) struct DoctorArgs {
    /// Wake GPUs that sleep, without asking
    #[arg(long)]
    pub(in crate::cli) wake: bool,

    /// Count a machine without an NVIDIA GPU as a problem
    #[arg(long)]
    pub(in crate::cli) require_gpu: bool,

    /// Print JSON, sizes in bytes
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
