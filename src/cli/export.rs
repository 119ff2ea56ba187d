//! `vramfit export`.

use super::args::ExportArgs;
use super::output::Output;
use crate::destination::{Destination, is_same_file};
use crate::error::{Error, ErrorKind, ExitStatus};
use crate::export::{Artefact, Recommended};
use crate::plan;

pub(super) fn run(args: &ExportArgs, output: &Output) -> Result<ExitStatus, Error> {
    let path = &args.plan;
    let plan = plan::read(path)?;
    if plan.workload.subject.command().is_some() {
        return Err(ErrorKind::PlanOfCommand { path: path.clone() }.into());
    }
    let Some(recommended) = Recommended::of(&plan) else {
        return Err(ErrorKind::PlanWithoutChoice { path: path.clone(), purpose: "export" }.into());
    };
    if let Some(file) = &args.output
        && is_same_file(file, path)
    {
        return Err(Error::bad_value("--output", file.display().to_string(), "the plan itself")
            .hint("name another file"));
    }
    let destination = args.output.as_deref().map(Destination::open).transpose()?;
    print(args.to.render(recommended), destination.as_ref(), output)?;
    Ok(ExitStatus::Done)
}

/// Hands an artefact out: its text is data, remarks are talk.
///
/// # Errors
/// When the file, or standard output, cannot be written.
pub(super) fn print(
    artefact: Artefact,
    file: Option<&Destination>,
    output: &Output,
) -> Result<(), Error> {
    match file {
        Some(file) => file.write(&artefact.text)?,
        None => output.data(&artefact.text)?,
    }
    for remark in &artefact.remarks {
        output.say(remark);
    }
    Ok(())
}
