//! `vramfit doctor`.

use std::cell::OnceCell;
use std::env;
use std::path::Path;

use super::args::DoctorArgs;
use super::output::Output;
use crate::device::open_nvml;
use crate::doctor::{Diagnosis, Reach, gather};
use crate::error::{Error, ErrorKind, ExitStatus};
use crate::probe::{Interrupt, python};
use crate::profile::Catalog;
use crate::report;

pub(super) fn run(
    args: &DoctorArgs,
    catalog: &Catalog,
    output: &Output,
) -> Result<ExitStatus, Error> {
    let interrupt = OnceCell::new();
    let machine = gather(Reach {
        root: Path::new("/"),
        variable: &|name| env::var(name).ok(),
        nvml: &open_nvml,
        wakes: &|asleep| {
            let question = format!("{} sleeps. Wake it to look at it?", asleep.join(", "));
            args.wake || output.ask(&question)
        },
        python: &python(),
        catalog,
        listens: &|| interrupt.get_or_init(Interrupt::install).clone(),
    });
    if interrupt.get().is_some_and(Interrupt::is_asked) {
        return Err(ErrorKind::Interrupted.into());
    }
    let diagnosis = Diagnosis::of(machine, args.require_gpu);
    match args.json {
        true => output.json(&diagnosis)?,
        false => output.data(&report::doctor(&diagnosis))?,
    }
    Ok(match diagnosis.well {
        true => ExitStatus::Done,
        false => ExitStatus::DoesNotFit,
    })
}
