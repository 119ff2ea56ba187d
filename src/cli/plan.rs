//! `vramfit plan`.

use std::time::Duration;

use super::args::{MeasuringArgs, Objective as Asked, PlanArgs};
use super::output::{self, Output};
use super::planner::{self, Planner};
use super::{choose_gpu, inputs};
use crate::error::{Error, ExitStatus};
use crate::plan::{self, Objective};
use crate::probe::{Interrupt, Launch, Record};
use crate::profile::Catalog;
use crate::report::REPORTS;
use crate::workload::{Goal, Subject};

pub(super) fn run(
    args: &PlanArgs,
    catalog: &Catalog,
    output: &Output,
) -> Result<ExitStatus, Error> {
    inputs::samples_per_gpu(args.target_batch, args.world_size)?;
    let workload = inputs::workload(&args.workload, catalog)?;
    let setup = choose_gpu::setup(&args.device);
    let chosen = choose_gpu::choose(&args.device, catalog, output)?;
    let settings = planner::settings(&args.precision, &args.checkpoint, &chosen)?;
    let gpu = chosen.open(setup)?;
    let launch = launch(&workload.subject, &args.measuring)?;
    let mut planner = Planner {
        catalog,
        gpu: &gpu,
        setup,
        launch,
        workload,
        goal: Goal {
            target_batch: args.target_batch,
            world_size: args.world_size,
            ragged: args.ragged,
        },
        settings,
        objective: match args.objective {
            Asked::Throughput => Objective::Throughput,
            Asked::MicroBatch => Objective::MicroBatch,
            Asked::Memory => Objective::Memory,
        },
        quiet: args.measuring.verbose,
    };
    let plan = planner.plan(record(&args.measuring)?)?;
    if let Some(traceback) = plan.measurements.iter().find_map(|it| it.outcome.traceback()) {
        let traceback = output::indented(traceback);
        output.say(&format!("a point failed in the workload's own code:\n{traceback}"));
    }
    // A file that cannot be written must not cost what was measured, nor a closed pipe the file.
    let written = args.output.as_deref().map_or(Ok(()), |path| plan::write(&plan, path));
    let name = if args.json { "json" } else { "table" };
    if let Some(report) = REPORTS.iter().find(|report| report.name() == name) {
        output.data(&report.render(&plan))?;
    }
    written?;
    Ok(match (&plan.recommendation, plan.incomplete) {
        (Some(_), _) => ExitStatus::Done,
        (None, false) => ExitStatus::DoesNotFit,
        (None, true) => ExitStatus::Failed,
    })
}

/// How workers are started, with Ctrl-C heard from now on.
///
/// # Errors
/// As [`Launch::new`].
pub(super) fn launch(subject: &Subject, args: &MeasuringArgs) -> Result<Launch, Error> {
    let timeout = args.timeout.map(|seconds| Duration::from_secs(u64::from(seconds)));
    let launch = Launch::new(subject, timeout, Interrupt::install())?;
    let listener: fn(&str) = |line| Output.say(line);
    Ok(launch.heard_by(args.verbose.then_some(listener)))
}

/// The file that measurements go to, if one is asked for.
pub(super) fn record(args: &MeasuringArgs) -> Result<Option<Record>, Error> {
    args.record.as_deref().map(Record::open).transpose()
}
