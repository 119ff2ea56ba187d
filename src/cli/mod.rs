//! The door: parses the command line, runs one command, words its end.

mod args;
mod check;
mod completions;
mod gpus;
mod inputs;
mod models;
mod output;
mod plan;
mod run;
mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use self::args::{Cli, Command};
use self::output::Output;
use crate::error::{Error, ExitStatus};
use crate::profile::Catalog;

/// Runs the command that `args` ask for, program name first, and says how the program ends.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let output = Output;
    let end = match Cli::try_parse_from(args) {
        Ok(cli) => dispatch(&cli.command, &output),
        Err(error) => values::explain(error).and_then(|error| output.clap(&error)),
    };
    match end {
        Ok(status) => status.into(),
        Err(error) => {
            output.error(&error);
            error.status().into()
        }
    }
}

fn dispatch(command: &Command, output: &Output) -> Result<ExitStatus, Error> {
    match command {
        Command::Plan(args) => plan::run(args, &Catalog::load()?, output),
        Command::Check(args) => check::run(args, &Catalog::load()?, output),
        Command::Run(args) => run::run(args, &Catalog::load()?, output),
        Command::Gpus(args) => gpus::run(args, &Catalog::load()?, output),
        Command::Models(args) => models::run(args, &Catalog::load()?, output),
        Command::Completions(args) => completions::run(args, output),
    }
}
