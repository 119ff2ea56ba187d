//! The command line as clap sees it, and nothing that does anything.

mod check;
mod doctor;
mod equivalence;
mod export;
mod gpu_check;
mod lint;
mod plan;
mod replay;
mod run;
mod shared;
mod watch;

use clap::{Args, Parser, Subcommand};

pub(super) use check::CheckArgs;
pub(super) use doctor::DoctorArgs;
pub(super) use equivalence::{EquivalenceArgs, Only, TrainedOn};
pub(super) use export::ExportArgs;
pub(super) use gpu_check::{GpuCheckArgs, Points};
pub(super) use lint::LintArgs;
pub(super) use plan::{Objective, PlanArgs};
pub(super) use replay::ReplayArgs;
pub(super) use run::{RunArgs, UnknownSizes};
pub(super) use shared::{DeviceArgs, MeasuringArgs, WorkloadArgs};
pub(super) use watch::WatchArgs;

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

Exit status: 0 it fits, or the work is done; 1 it does not fit, or a problem
was found; 2 bad input; 3 could not measure.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Plan(PlanArgs),
    Check(CheckArgs),
    Export(ExportArgs),
    Run(RunArgs),
    Watch(WatchArgs),
    Replay(ReplayArgs),
    Lint(LintArgs),
    Doctor(DoctorArgs),
    Equivalence(EquivalenceArgs),
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
