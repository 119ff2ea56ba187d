//! `vramfit plan`.

use super::args::PlanArgs;
use super::inputs;
use super::output::Output;
use crate::error::{Error, ErrorKind, ExitStatus};
use crate::profile::Catalog;

pub(super) fn run(args: &PlanArgs, catalog: &Catalog, _: &Output) -> Result<ExitStatus, Error> {
    inputs::workload(&args.workload, catalog)?;
    inputs::samples_per_gpu(args.target_batch, args.world_size)?;
    if args.device.gpu != "auto" {
        let gpu = catalog.gpu(&args.device.gpu)?;
        args.precision.iter().try_for_each(|precision| inputs::in_hardware(*precision, &gpu))?;
    }
    Err(ErrorKind::WorkerMissing { path: "vramfit-worker".into() }.into())
}
