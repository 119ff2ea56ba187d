//! `vramfit run`.

use super::args::RunArgs;
use super::output::Output;
use crate::error::{Error, ErrorKind, ExitStatus};
use crate::profile::Catalog;

pub(super) fn run(_: &RunArgs, _: &Catalog, _: &Output) -> Result<ExitStatus, Error> {
    Err(ErrorKind::WorkerMissing { path: "vramfit-worker".into() }.into())
}
