//! `vramfit plan`.

use std::time::Duration;

use super::args::{self, MeasuringArgs, PlanArgs};
use super::contexts::Asked;
use super::output::{self, Output};
use super::planner::Planner;
use super::{allocator, choose_gpu, export, inputs, made_by, settings, two_files};
use crate::destination::Destination;
use crate::error::{Error, ExitStatus};
use crate::export::Recommended;
use crate::plan::Objective;
use crate::probe::{Interrupt, Launch, Record};
use crate::profile::Catalog;
use crate::report::{REPORTS, plan_page};
use crate::workload::{Goal, Subject};

pub(super) fn run(
    args: &PlanArgs,
    catalog: &Catalog,
    output: &Output,
) -> Result<ExitStatus, Error> {
    two_files::told_apart(&[
        ("--record", &args.measuring.record),
        ("--output", &args.output),
        ("--report", &args.report),
    ])?;
    let workload = inputs::workload(&args.workload, args.seq.as_ref(), catalog)?;
    if let (Some(exporter), Some(_)) = (args.export, workload.subject.command()) {
        return Err(Error::bad_value(
            "--export",
            exporter.name(),
            "a command applies the plan by itself",
        )
        .hint("leave it out: the table ends with the command to run"));
    }
    let ranks = workload.subject.ranks();
    let world_size = args.world_size.unwrap_or(ranks);
    if !world_size.is_multiple_of(ranks) {
        return Err(Error::bad_value(
            "--world-size",
            world_size.to_string(),
            format!("the command starts {ranks} processes on each machine"),
        )
        .hint(format!("a multiple of {ranks}, for that many machines")));
    }
    let goal = Goal::new(args.target_batch, world_size, args.ragged)?;
    let setup = choose_gpu::setup(&args.device);
    let chosen = choose_gpu::choose(&args.device, catalog, output)?;
    let settings = settings::all(&workload.subject, &args.precision, &args.checkpoint, &chosen)?;
    let left_out =
        settings::left_out(&workload.subject, &args.precision, chosen.compute_capability());
    let selective = settings::selective(&workload.subject, &args.checkpoint, &settings);
    let gpu = chosen.open(setup, ranks)?;
    let launch = launch(&workload.subject, &args.measuring)?;
    let mut planner = Planner {
        catalog,
        gpu: &gpu,
        setup,
        launch,
        contexts: Asked::new(args.seq.as_ref(), &workload),
        workload,
        goal,
        settings,
        selective,
        objective: match args.objective {
            args::Objective::Throughput => Objective::Throughput,
            args::Objective::MicroBatch => Objective::MicroBatch,
            args::Objective::Memory => Objective::Memory,
        },
        samples: args.samples,
        left_out,
        quiet: args.measuring.verbose,
    };
    let record = record(&args.measuring)?;
    let destination = args.output.as_deref().map(Destination::open).transpose()?;
    let page = args.report.as_deref().map(Destination::open).transpose()?;
    let plan = planner.plan(record).map_err(allocator::hinted)?;
    if let Some(traceback) = plan.measurements.iter().find_map(|it| it.outcome.traceback()) {
        let traceback = output::indented(traceback);
        output.say(&format!("a point failed in your own code:\n{traceback}"));
    }
    // The plan has cost minutes: it is printed even when it cannot be written.
    let written = destination.map_or(Ok(()), |file| output.json_to(&plan, &file));
    let shown = page.map_or(Ok(()), |file| file.write(&plan_page(&plan, &made_by())));
    let name = if args.json { "json" } else { "table" };
    let report = REPORTS.iter().find(|report| report.name() == name);
    match (args.export, Recommended::of(&plan), report) {
        (Some(exporter), Some(recommended), _) => {
            export::print(exporter.render(recommended), None, output)?;
        }
        // Nothing to hand over: why not is no data.
        (Some(_), None, Some(report)) => output.say(&report.render(&plan)),
        (None, _, Some(report)) if args.json => output.data(&report.render(&plan))?,
        (None, _, Some(report)) => output.table(&report.render(&plan))?,
        (_, _, None) => {}
    }
    written?;
    shown?;
    Ok(match &plan.recommendation {
        Some(_) => ExitStatus::Done,
        None if plan.fits_nothing() => ExitStatus::DoesNotFit,
        None => ExitStatus::Failed,
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
