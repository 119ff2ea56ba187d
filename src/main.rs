//! The command line of vramfit.

use std::process::ExitCode;

fn main() -> ExitCode {
    vramfit::cli::run(std::env::args_os())
}
