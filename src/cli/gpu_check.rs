//! `vramfit gpu-check`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::args::{GpuCheckArgs, Points};
use super::output::Output;
use super::{choose_gpu, inputs, twin};
use crate::comparison::{
    self, COMPARISON_VERSION, Card, Compared, Comparison, Group, Level, Side, Summary, Twin,
};
use crate::device::{Gpu, RealGpu};
use crate::error::{Error, ErrorKind, ExitStatus};
use crate::measurement::{Evidence, EvidenceKind, Measurement, Outcome, Point, Verdict};
use crate::plan::Versions;
use crate::probe::protocol::Hello;
use crate::probe::{GpuProber as _, Interrupt, Prober as _, WorkerProber, Workers};
use crate::profile::Catalog;
use crate::report;
use crate::workload::Workload;

/// Points that may fail on the card in a row before it is believed that all will.
const FAILURES_IN_A_ROW: usize = 4;

pub(super) fn run(
    args: &GpuCheckArgs,
    catalog: &Catalog,
    output: &Output,
) -> Result<ExitStatus, Error> {
    let card = choose_gpu::open_real(&args.gpu)?;
    let level = match args.points {
        Points::Quick => Level::Quick,
        Points::Full => Level::Full,
    };
    let groups = comparison::groups(level)?;
    let workers =
        Workers::built_in(Some(Duration::from_secs(u64::from(args.timeout))), Interrupt::install());
    let (card, twin, document) = lay_out(card, catalog, level, &groups)?;
    let document = take_up(document, args)?;
    if document.rehearsal {
        output.say(&format!(
            "rehearsal: {} is virtual, so this measures nothing",
            document.card.product
        ));
    }
    let mut check = Check { args, card, twin, workers, document, output };
    for group in &groups {
        match check.group(group) {
            Ok(true) => {}
            Ok(false) => break,
            // The table of what is known so far; the rest is for another day.
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted) => {
                output.say("interrupted; the same command goes on from here");
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let document = check.document;
    match args.json {
        true => output.json(&document)?,
        false => output.data(&report::comparison(&document))?,
    }
    Ok(match document.complete && document.summary.failed == 0 {
        true => ExitStatus::Done,
        false => ExitStatus::Failed,
    })
}

/// The card, its twin, and a document without results.
fn lay_out(
    card: RealGpu,
    catalog: &Catalog,
    level: Level,
    groups: &[Group],
) -> Result<(Gpu, Gpu, Comparison), Error> {
    let of_profile = twin::profile_of(&card, catalog)?.map(|profile| profile.name);
    let mut description = Card {
        evidence: EvidenceKind::Virtual,
        product: card.product.clone(),
        uuid: card.uuid.clone(),
        compute_capability: card.compute_capability.to_string(),
        multiprocessors: card.multiprocessors,
        clock: card.clock,
        power_limit: card.power_limit,
        nvml: card.memory,
        budget: card.budget,
        cuda_total: None,
        cuda_free: None,
    };
    let card = Gpu::Real(card);
    description.evidence = card.kind();
    let twin = twin::of(&card, catalog)?;
    let Gpu::Virtual(of_twin) = &twin else { return Err(ErrorKind::NoRealGpu.into()) };
    let twin_description = Twin {
        evidence: twin.kind(),
        of_profile,
        profile: of_twin.profile().clone(),
        cuda_total: None,
    };
    let document = Comparison {
        comparison_version: COMPARISON_VERSION,
        rehearsal: description.evidence == EvidenceKind::Virtual,
        complete: false,
        level,
        planned: groups.iter().map(|group| group.points.len()).sum(),
        begun: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        versions: Versions {
            vramfit: env!("CARGO_PKG_VERSION").to_owned(),
            driver: card.driver().to_owned(),
            ..Versions::default()
        },
        card: description,
        twin: twin_description,
        results: Vec::new(),
        summary: Summary::default(),
    };
    Ok((card, twin, document))
}

/// Goes on with what lies at `--output`, where that was stopped. What is complete there is measured
/// anew; what is of another card, or something else, is left alone.
fn take_up(document: Comparison, args: &GpuCheckArgs) -> Result<Comparison, Error> {
    let Some(known) = comparison::read(&args.output)? else { return Ok(document) };
    if known.card.uuid != document.card.uuid || known.rehearsal != document.rehearsal {
        let reason =
            format!("it holds measurements of {} ({})", known.card.product, known.card.uuid);
        return Err(ErrorKind::InTheWay { path: args.output.clone(), reason }.into());
    }
    Ok(if document.continues(&known) { known } else { document })
}

/// A comparison under way.
struct Check<'a> {
    args: &'a GpuCheckArgs,
    card: Gpu,
    twin: Gpu,
    workers: Workers,
    document: Comparison,
    output: &'a Output,
}

impl Check<'_> {
    /// Tries what has no result yet; false when it makes no sense to go on.
    fn group(&mut self, group: &Group) -> Result<bool, Error> {
        // Workers of its own for each workload: how the context grows with the kernels that are
        // loaded is then seen from the start each time.
        let (card, twin) = (&self.card, &self.twin);
        let mut on_twin = WorkerProber::new(twin, self.workers.clone());
        let mut on_card = WorkerProber::new(card, self.workers.clone());
        for point in &group.points {
            if self.document.result(&group.workload, point).is_some() {
                continue;
            }
            let result = match inputs::has(card.compute_capability(), point.setting.precision) {
                false => Compared::not_in_hardware(group.workload.clone(), *point),
                true => compare(&group.workload, *point, &mut on_twin, &mut on_card, card)?,
            };
            note_versions(&mut self.document, on_twin.hello(), on_card.hello(), self.args)?;
            let place = format!("{}/{}", self.document.results.len() + 1, self.document.planned);
            self.output.say(&format!("{place} {}", report::compared(&result)));
            self.document.push(result);
            comparison::write(&self.document, &self.args.output)?;
            if failures_in_a_row(&self.document) >= FAILURES_IN_A_ROW {
                self.output.say(&format!("stopped: {FAILURES_IN_A_ROW} failures in a row"));
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Tries a point on the twin, and where it fits there or nothing is known, on the card.
fn compare(
    workload: &Workload,
    point: Point,
    on_twin: &mut WorkerProber<'_>,
    on_card: &mut WorkerProber<'_>,
    card: &Gpu,
) -> Result<Compared, Error> {
    let measured = on_twin.probe(workload, point)?;
    let verdict = measured.verdict(card.budget().budget);
    let twin = side(measured, on_twin);
    // What is tight depends on how much is free to the byte, in which card and twin differ.
    if matches!(verdict, Verdict::TooLarge | Verdict::Tight) {
        return Ok(Compared::new(workload.clone(), point, twin, None));
    }
    let measured = match on_card.probe(workload, point) {
        Ok(measured) => measured,
        Err(error) if matches!(error.kind(), ErrorKind::Interrupted) => return Err(error),
        // Worth a line in the document: what the card cannot do is a finding too.
        Err(error) => Measurement {
            point,
            sequence: workload.sequence,
            outcome: Outcome::failed(error.to_string()),
            evidence: Evidence {
                kind: card.kind(),
                gpu: card.product().to_owned(),
                driver: card.driver().to_owned(),
                ..twin.evidence.clone()
            },
            probe_seconds: 0.0,
        },
    };
    let on_card = side(measured, on_card);
    Ok(Compared::new(workload.clone(), point, twin, Some(on_card)))
}

fn side(measured: Measurement, prober: &WorkerProber<'_>) -> Side {
    let Measurement { outcome, evidence, probe_seconds, .. } = measured;
    Side { evidence, outcome, observation: prober.observation(), probe_seconds }
}

/// Takes over what the workers say of themselves.
///
/// # Errors
/// When the results that are taken up are of another PyTorch.
fn note_versions(
    document: &mut Comparison,
    twin: Option<&Hello>,
    card: Option<&Hello>,
    args: &GpuCheckArgs,
) -> Result<(), Error> {
    let Some(hello) = card.or(twin) else { return Ok(()) };
    let versions = &mut document.versions;
    let now = (&hello.torch, &hello.cuda, &hello.cudnn);
    let before = (&versions.torch, &versions.cuda, &versions.cudnn);
    if !versions.torch.is_empty() && now != before {
        let reason = format!("its first points are of PyTorch {}", versions.torch);
        return Err(ErrorKind::InTheWay { path: args.output.clone(), reason }.into());
    }
    versions.torch.clone_from(&hello.torch);
    versions.cuda.clone_from(&hello.cuda);
    versions.cudnn.clone_from(&hello.cudnn);
    let memory = |hello: Option<&Hello>| hello.and_then(|hello| hello.memory);
    if let (None, Some(memory)) = (document.card.cuda_total, memory(card)) {
        document.card.cuda_total = Some(memory.total);
        document.card.cuda_free = Some(memory.free);
    }
    if document.twin.cuda_total.is_none() {
        document.twin.cuda_total = memory(twin).map(|memory| memory.total);
    }
    Ok(())
}

fn failures_in_a_row(document: &Comparison) -> usize {
    let failed = |result: &&Compared| {
        let card = result.card.as_ref();
        card.is_some_and(|side| matches!(side.outcome, Outcome::Failed { .. }))
    };
    document.results.iter().rev().take_while(failed).count()
}
