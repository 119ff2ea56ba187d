//! The door: parses the command line, runs one command, words its end.

mod allocator;
mod args;
mod check;
mod choose_gpu;
mod completions;
mod contexts;
mod doctor;
mod equivalence;
mod export;
mod gpu_check;
mod gpus;
mod grounds;
mod inputs;
mod lint;
mod models;
mod notes;
mod output;
mod pages;
mod plan;
mod planner;
mod progress;
mod remedies;
mod replay;
mod run;
mod settings;
mod twin;
mod two_files;
mod values;
mod waiting;
mod watch;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use self::args::{Cli, Command};
use self::output::Output;
use crate::error::{Error, ErrorKind};
use crate::profile::Catalog;
use crate::workload::quoted;

/// Runs the command that `args` ask for, program name first, and says how the program ends.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let output = Output;
    let args: Vec<_> = args.into_iter().collect();
    let end = match Cli::try_parse_from(&args) {
        // clap takes it for no command at all, and a built-in model is not what was meant.
        Ok(cli) if cli.command.trains_a_model() && args.last().is_some_and(|it| it == "--") => {
            Err(ErrorKind::NoCommand.into())
        }
        Ok(cli) => dispatch(&cli.command, &output),
        Err(error) => {
            values::explain(error).and_then(|error| output.clap(&error)).map(ExitCode::from)
        }
    };
    match end {
        Ok(code) => code,
        Err(error) => {
            output.error(&error);
            error.status().into()
        }
    }
}

/// The shell's line by which this program was started, for reports.
fn made_by() -> String {
    let rest = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    quoted(&std::iter::once("vramfit".to_owned()).chain(rest).collect::<Vec<_>>())
}

fn dispatch(command: &Command, output: &Output) -> Result<ExitCode, Error> {
    let measures = matches!(
        command,
        Command::Plan(_)
            | Command::Check(_)
            | Command::Run(_)
            | Command::Watch(_)
            | Command::Replay(_)
            | Command::Equivalence(_)
    );
    if measures && env::current_dir().is_err() {
        // Programs that are started there fail in ways that are harder to read.
        return Err(ErrorKind::NoWorkingDirectory.into());
    }
    let status = match command {
        Command::Plan(args) => plan::run(args, &Catalog::load()?, output),
        Command::Check(args) => check::run(args, &Catalog::load()?, output),
        // Their end is the end of the program they run.
        Command::Run(args) => return run::run(args, &Catalog::load()?, output),
        Command::Watch(args) => return watch::run(args, &Catalog::load()?, output),
        Command::Replay(args) => replay::run(args, &Catalog::load()?, output),
        Command::Doctor(args) => doctor::run(args, &Catalog::load()?, output),
        Command::Equivalence(args) => equivalence::run(args, &Catalog::load()?, output),
        Command::Export(args) => export::run(args, output),
        Command::Lint(args) => lint::run(args, output),
        Command::Gpus(args) => gpus::run(args, &Catalog::load()?, output),
        Command::GpuCheck(args) => gpu_check::run(args, &Catalog::load()?, output),
        Command::Models(args) => models::run(args, &Catalog::load()?, output),
        Command::Completions(args) => completions::run(args, output),
    };
    status.map(ExitCode::from)
}
