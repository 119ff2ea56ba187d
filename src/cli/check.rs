//! `vramfit check`.

use serde::Serialize;

use super::args::{CheckArgs, DeviceArgs};
use super::output::Output;
use super::plan::{launch, record};
use super::planner::Planner;
use super::values::Checkpoint;
use super::{allocator, choose_gpu, inputs, remedies, settings, twin};
use crate::device::{Budget, Gpu, Setup};
use crate::error::{Error, ErrorKind, ExitStatus};
use crate::measurement::{Measurement, Outcome, Point, Setting, Verdict};
use crate::plan::{self, Note, Objective, Plan, Speed};
use crate::probe::{Campaign, Change, Findings, Record};
use crate::profile::Catalog;
use crate::solve::Selective;
use crate::units::{Bytes, Share};
use crate::workload::{Checkpointing, Goal, Lengths, Workload};

/// Version of the JSON answer.
const CHECK_VERSION: u32 = 1;

/// What is to be checked.
struct Question {
    workload: Workload,
    setting: Setting,
    /// Blocks to checkpoint are still to be chosen.
    selective: bool,
    micro_batch: u32,
    /// Of which the micro-batch is a part.
    goal: Goal,
    setup: Setup,
    gpu: Gpu,
}

/// The answer, as `--json` prints it.
#[derive(Serialize)]
struct Answer<'a> {
    check_version: u32,
    fits: bool,
    gpu: &'a str,
    budget: Budget,
    measurement: Measurement,
    /// How fast one GPU trains so; null where it did not run or its time is not known.
    speed: Option<Speed>,
    /// Changes with which it was tried and fits, the smallest first.
    would_fit: Vec<Change>,
    /// Why not all were tried; null when they were, or it fits.
    incomplete: Option<String>,
}

pub(super) fn run(
    args: &CheckArgs,
    catalog: &Catalog,
    output: &Output,
) -> Result<ExitStatus, Error> {
    let mut question = question(args, catalog, output)?;
    let mut planner = Planner {
        catalog,
        gpu: &question.gpu,
        setup: question.setup,
        launch: launch(&question.workload.subject, &args.measuring)?,
        workload: question.workload.clone(),
        contexts: None,
        goal: question.goal,
        settings: vec![question.setting],
        selective: Vec::new(),
        objective: Objective::default(),
        samples: None,
        left_out: Vec::new(),
        quiet: true,
    };
    let record = record(&args.measuring)?;
    let point = |setting| Point::to_probe(setting, question.micro_batch, &question.goal);
    if question.selective {
        let setting = choose_blocks(&planner, point(question.setting), record.clone(), output)
            .map_err(allocator::hinted)?;
        (question.setting, planner.settings) = (setting, vec![setting]);
    }
    let point = Point::to_probe(question.setting, question.micro_batch, &question.goal);
    let measurement = measure(&planner, point, record.clone()).map_err(allocator::hinted)?;
    if let Outcome::Failed { message, traceback } = &measurement.outcome {
        let error = Error::new(ErrorKind::NothingMeasured { reason: message.clone() });
        return Err(allocator::hinted(error.detail(traceback.clone())));
    }
    let budget = question.gpu.budget();
    let fits = measurement.verdict(budget.budget) == Verdict::Fits;
    let mut would_fit = Vec::new();
    let mut incomplete = None;
    if !fits {
        // That it does not fit is known; a failure from here on must not lose it.
        let ended = find_what_would_fit(&planner, point, record, &mut would_fit);
        incomplete = ended.err().map(|error| error.to_string());
    }
    let answer = Answer {
        check_version: CHECK_VERSION,
        fits,
        gpu: question.gpu.name(),
        budget,
        speed: Speed::of(&measurement, question.workload.sequence, &question.gpu.uncertainty()),
        measurement,
        would_fit,
        incomplete,
    };
    if args.json {
        output.json(&answer)?;
    } else {
        output.data(&text(&question, &answer))?;
    }
    Ok(if fits { ExitStatus::Done } else { ExitStatus::DoesNotFit })
}

fn question(args: &CheckArgs, catalog: &Catalog, output: &Output) -> Result<Question, Error> {
    let Some(path) = &args.plan else {
        let length = args.seq.map(Lengths::from);
        let workload = inputs::workload(&args.workload, length.as_ref(), catalog)?;
        let chosen = choose_gpu::choose(&args.device, catalog, output)?;
        let setting = settings::one(&workload.subject, args.precision, args.checkpoint)?;
        inputs::in_hardware(setting.precision, &chosen)?;
        // clap sees to it that one of the two is given.
        let micro_batch = args.micro_batch.unwrap_or(1);
        let ranks = workload.subject.ranks();
        let samples = micro_batch.saturating_mul(args.accumulation).saturating_mul(ranks);
        return Ok(Question {
            setting,
            selective: args.checkpoint == Some(Checkpoint::Selective),
            micro_batch,
            goal: Goal::new(samples, ranks, false)?,
            setup: choose_gpu::setup(&args.device),
            gpu: chosen.open(choose_gpu::setup(&args.device), ranks)?,
            workload,
        });
    };
    let plan = plan::read(path)?;
    let Some(choice) = &plan.recommendation else {
        return Err(ErrorKind::PlanWithoutChoice { path: path.clone(), purpose: "check" }.into());
    };
    inputs::still_there(&plan.workload)?;
    let device = device_of_plan(&args.device, &plan);
    let setup = choose_gpu::setup(&device);
    let chosen = choose_gpu::choose(&device, catalog, output)?;
    inputs::in_hardware(choice.precision, &chosen)?;
    Ok(Question {
        setting: choice.setting(),
        selective: false,
        micro_batch: choice.micro_batch,
        goal: plan.goal,
        setup,
        gpu: chosen.open(setup, plan.workload.subject.ranks())?,
        workload: plan.workload,
    })
}

/// The plan's GPU with the plan's budget, except for what the flags say. On another card its memory
/// and margin, which are figures of the plan's own card, have no meaning; what others need has.
fn device_of_plan(args: &DeviceArgs, plan: &Plan) -> DeviceArgs {
    let mut device = args.clone();
    if device.gpu == "auto" {
        device.gpu.clone_from(&plan.device.name);
    }
    if device.gpu == plan.device.name {
        device.vram = device.vram.or(Some(plan.budget.total));
        device.margin = device.margin.or(Some(Share::Bytes(plan.budget.margin)));
    }
    let platform = plan.device.platform.into();
    // Another system's desktop takes what is usual there, unless somebody said what his own takes.
    let moved = device.platform.is_some_and(|it| it != platform);
    let said = !plan.notes.iter().any(|note| matches!(note, Note::WindowsDesktop { .. }));
    if !moved || (said && plan.budget.reserve > Bytes::ZERO) {
        device.reserve = device.reserve.or(Some(plan.budget.reserve));
    }
    device.platform = device.platform.or(Some(platform));
    device
}

/// The setting of `point`, which checkpoints nothing, with the blocks checkpointed that it takes to fit,
/// found on the virtual GPU or twin; all of them where not fewer will do.
fn choose_blocks(
    planner: &Planner<'_>,
    point: Point,
    record: Option<Record>,
    output: &Output,
) -> Result<Setting, Error> {
    let twin = twin::of(planner.gpu, planner.catalog)?;
    let budget = twin.budget().budget;
    let mut prober = planner.launch.prober(&twin, record);
    let mut findings = Findings::default();
    let plain = findings.probe(prober.as_mut(), &planner.workload, point)?;
    let setting = point.setting;
    match findings.measurements[plain].verdict(budget) {
        Verdict::Fits | Verdict::Unknown => return Ok(setting),
        Verdict::TooLarge | Verdict::Tight => {}
    }
    let selective = Selective { workload: &planner.workload, goal: &planner.goal, budget };
    let found =
        selective.at(setting.precision, point.micro_batch, &mut findings, prober.as_mut())?;
    Ok(match found {
        Ok(Some(index)) => findings.measurements[index].point.setting,
        Ok(None) => Setting { checkpointing: Checkpointing::Full, ..setting },
        Err(reason) => {
            output.say(&format!("checkpointing all blocks: {reason}"));
            Setting { checkpointing: Checkpointing::Full, ..setting }
        }
    })
}

/// Tries the point; on a real card only after its twin had no objection, since running the card out
/// of memory may take down what else runs on it. A twin that cannot be asked has none.
fn measure(
    planner: &Planner<'_>,
    point: Point,
    record: Option<Record>,
) -> Result<Measurement, Error> {
    let budget = planner.gpu.budget().budget;
    if matches!(planner.gpu, Gpu::Real(_)) {
        let predicted = twin::of(planner.gpu, planner.catalog).and_then(|twin| {
            planner.launch.prober(&twin, record.clone()).probe(&planner.workload, point)
        });
        if let Ok(predicted) = predicted
            && matches!(predicted.verdict(budget), Verdict::TooLarge | Verdict::Tight)
        {
            return Ok(predicted);
        }
    }
    planner.launch.prober(planner.gpu, record).probe(&planner.workload, point)
}

/// The largest micro-batch of the same setting and effective batch, and the smallest other changes.
fn find_what_would_fit(
    planner: &Planner<'_>,
    point: Point,
    record: Option<Record>,
    changes: &mut Vec<Change>,
) -> Result<(), Error> {
    let twin = twin::of(planner.gpu, planner.catalog)?;
    let mut prober = planner.launch.prober(&twin, record.clone());
    let campaign = Campaign {
        workload: &planner.workload,
        goal: &planner.goal,
        settings: &planner.settings,
        budget: twin.budget().budget,
    };
    let findings = campaign.run(prober.as_mut(), &mut |_| {})?;
    drop(prober);
    let largest = findings.searches.iter().find_map(|searched| searched.largest);
    let smaller = largest.map(|index| findings.measurements[index].point.micro_batch);
    changes.extend(smaller.map(Change::MicroBatch));
    match (findings.interrupted, findings.stopped_by) {
        (true, _) => Err(ErrorKind::Interrupted.into()),
        (false, Some(reason)) => Err(ErrorKind::NothingMeasured { reason }.into()),
        (false, None) => remedies::find(planner, point, record, changes),
    }
}

fn text(question: &Question, answer: &Answer<'_>) -> String {
    let Question { workload, setting, micro_batch, goal, .. } = question;
    let name = workload.subject.name();
    let what = match workload.sequence {
        Some(tokens) => format!("{name} at {tokens} tokens"),
        None => name,
    };
    let steps = match goal.split(*micro_batch) {
        (1, None) => String::new(),
        (steps, None) => format!(" x {steps} steps"),
        (steps, Some(rest)) => format!(" x {steps} steps + {rest}"),
    };
    let what = format!("{what}, micro-batch {micro_batch}{steps}, {setting}, on {}", answer.gpu);
    let budget = answer.budget.budget;
    let peak = answer.measurement.ran().map(|ran| (ran.memory.device_peak, ran.allocator_retries));
    let verdict = match peak {
        Some((peak, _)) if answer.fits => {
            let left = budget.saturating_sub(peak);
            format!("fits: {what}: {peak} of {budget}, {left} left")
        }
        Some((peak, retries)) if retries > 0 && peak <= budget => {
            format!("does not fit: {what}: runs in {budget} only by flushing the allocator's cache")
        }
        Some((peak, _)) => format!("does not fit: {what}: needs {peak} of {budget}"),
        None => format!("does not fit: {what}: out of memory within {budget}"),
    };
    let changes = answer.would_fit.iter().map(|change| match change {
        Change::MicroBatch(size) => match goal.split(*size) {
            (1, None) => format!("\n  {change}"),
            (steps, _) => format!("\n  {change}, accumulated over {steps} steps"),
        },
        other => format!("\n  {other}"),
    });
    let changes: String = changes.collect();
    let untried = match &answer.incomplete {
        Some(reason) => format!("\nwhich changes would help was not tried to the end: {reason}"),
        None => String::new(),
    };
    match (answer.fits, changes.is_empty()) {
        (true, _) => {
            let speed = answer.speed.as_ref().map(|it| format!("\n{}", it.in_one_line()));
            verdict + &speed.unwrap_or_default()
        }
        (false, true) if answer.incomplete.is_some() => verdict + &untried,
        (false, true) => format!("{verdict}\nno single change was found with which it does"),
        (false, false) => {
            format!("{verdict}\nit would, each tried by itself, with:{changes}{untried}")
        }
    }
}
