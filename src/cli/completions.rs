//! `vramfit completions`: a script for the user's shell.

use clap::CommandFactory as _;

use super::args::{Cli, CompletionsArgs};
use super::output::Output;
use crate::error::{Error, ExitStatus};

pub(super) fn run(args: &CompletionsArgs, output: &Output) -> Result<ExitStatus, Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "vramfit", &mut script);
    output.data(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitStatus::Done)
}
