//! From a question to a plan: search, solve, and say what one should know.

use super::progress::Progress;
use super::{allocator, inputs};
use crate::device::{
    Gpu, RealGpu, RunReports, Setup, VIRTUAL_SUFFIX, VirtualGpu, read_run_reports, twin_profile,
};
use crate::error::{Error, one_line};
use crate::measurement::{Built, Outcome, Point, Setting, Verdict};
use crate::plan::{Choice, DeviceSummary, Note, Objective, PLAN_VERSION, Plan, Tried, Versions};
use crate::probe::protocol::Hello;
use crate::probe::{
    Campaign, Change, Findings, GpuProber, Launch, Prober, Record, Remedies, Verified, verify,
};
use crate::profile::Catalog;
use crate::profile::gpu::GpuProfile;
use crate::solve;
use crate::workload::{Checkpointing, Goal, Precision, Values, Variable, Workload};

/// A card that differs from its twin by more than this deserves a note.
const TWIN_TOLERANCE: f64 = 0.02;
/// Changes that are named when nothing fits.
const MOST_CHANGES: usize = 3;

/// A question.
pub(super) struct Planner<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) gpu: &'a Gpu,
    pub(super) setup: Setup,
    pub(super) launch: Launch,
    pub(super) workload: Workload,
    pub(super) goal: Goal,
    pub(super) settings: Vec<Setting>,
    pub(super) objective: Objective,
    /// Shows no progress.
    pub(super) quiet: bool,
}

/// What was found, and what one should know of how.
#[derive(Default)]
struct Gathered {
    findings: Findings,
    notes: Vec<Note>,
    hello: Option<Hello>,
    built: Option<Built>,
    /// Results whose size depends on values that nobody knows.
    sizes: Vec<String>,
    /// How many of the measurements, the first, are of a real card's twin.
    on_twin: usize,
}

impl Planner<'_> {
    /// Answers it; measurements go to `record` as they come.
    ///
    /// # Errors
    /// When nothing could be measured.
    pub(super) fn plan(&mut self, record: Option<Record>) -> Result<Plan, Error> {
        let mut gathered = match self.gpu {
            Gpu::Virtual(_) => {
                let mut progress = Progress::new(self.settings.len(), self.quiet);
                self.search(self.gpu, record.clone(), &mut progress)?
            }
            Gpu::Real(_) => self.search_and_verify(record.clone())?,
        };
        let findings = &gathered.findings;
        let budget = self.gpu.budget();
        let pays = self.gpu.has_tensor_cores();
        let choices = solve::choices(findings, &self.goal, budget.budget, self.objective, pays);
        let incomplete = findings.interrupted || findings.stopped_by.is_some();
        let mut would_fit = Vec::new();
        let mut untried = None;
        if choices.is_empty() && !incomplete {
            // That nothing fits is known; a failure from here on must not lose it.
            untried = self.would_fit(findings, record, &mut would_fit).err();
        }
        let rungs = solve::compared(findings, &self.settings, &self.goal);
        let ladder = solve::ladder(findings, &rungs, &self.goal);
        let mut choices = choices.into_iter();
        let mut plan = Plan {
            plan_version: PLAN_VERSION,
            versions: self.versions(gathered.hello.as_ref()),
            device: self.device(),
            workload: self.workload.clone(),
            built: gathered.built.take(),
            goal: self.goal,
            objective: self.objective,
            budget,
            recommendation: choices.next(),
            command: None,
            alternatives: choices.collect(),
            ladder,
            would_fit,
            measurements: Vec::new(),
            notes: Vec::new(),
            incomplete: incomplete || untried.is_some(),
        };
        plan.command = self.line(plan.recommendation.as_ref());
        plan.notes = self.notes(&plan, &gathered);
        plan.notes.extend(untried.map(|error| Note::ChangesUntried { reason: error.to_string() }));
        plan.notes.append(&mut gathered.notes);
        plan.notes.extend(self.interval(&plan, std::mem::take(&mut gathered.sizes)));
        plan.notes.extend(allocator::notes());
        plan.measurements = gathered.findings.measurements;
        Ok(plan)
    }

    /// The campaign on one GPU, and on a virtual one the ladder's points.
    fn search(
        &mut self,
        gpu: &Gpu,
        record: Option<Record>,
        progress: &mut Progress,
    ) -> Result<Gathered, Error> {
        let mut prober = self.launch.prober(gpu, record);
        let mut notes = self.open(prober.as_mut(), progress)?;
        let campaign = Campaign {
            workload: &self.workload,
            goal: &self.goal,
            settings: &self.settings,
            budget: gpu.budget().budget,
        };
        let mut findings =
            campaign.run(prober.as_mut(), &mut |findings| progress.update(findings))?;
        if matches!(gpu, Gpu::Virtual(_)) {
            self.measure_ladder(&mut findings, prober.as_mut());
        }
        if prober.was_unnamed() {
            notes.push(Note::ProcessUnnamed);
        }
        if prober.others_grew() > gpu.budget().margin.percent(10.0) {
            notes.push(Note::OthersGrew { grew: prober.others_grew() });
        }
        let (hello, built) = (prober.hello().cloned(), prober.built().cloned());
        drop(prober);
        let mut sizes = Vec::new();
        if let Gpu::Virtual(gpu) = gpu {
            let seen = read_run_reports(gpu.folder());
            sizes = seen.sizes.iter().map(|it| one_line(&it.to_string())).collect();
            notes.extend(notes_of_virtual_gpu(gpu, seen));
        }
        Ok(Gathered { findings, notes, hello, built, sizes, on_twin: 0 })
    }

    /// Has a user's function called, which may take a while, and goes by what it returns.
    fn open(
        &mut self,
        prober: &mut dyn GpuProber,
        progress: &mut Progress,
    ) -> Result<Vec<Note>, Error> {
        let Some(function) = self.workload.subject.function() else { return Ok(Vec::new()) };
        progress.say(format!("importing {}", function.file_name()));
        prober.open(&self.workload)?;
        let Some(built) = prober.built() else { return Ok(Vec::new()) };
        if !built.own_optimizer {
            let _ = self.workload.optimizer.get_or_insert_default();
        }
        let (plain, checkpointed): (Vec<Setting>, Vec<Setting>) =
            self.settings.iter().partition(|setting| !setting.checkpointing.is_on());
        if built.checkpointing || plain.is_empty() || checkpointed.is_empty() {
            return Ok(Vec::new());
        }
        self.settings = plain;
        Ok(vec![Note::NoCheckpointing])
    }

    fn measure_ladder(&self, findings: &mut Findings, prober: &mut dyn Prober) {
        if findings.interrupted || findings.stopped_by.is_some() {
            return;
        }
        for rung in solve::compared(findings, &self.settings, &self.goal) {
            // The ladder explains the plan and decides nothing: without a rung it is shorter.
            if findings.probe(prober, &self.workload, rung.point).is_err() {
                return;
            }
        }
    }

    /// The campaign on the real card's virtual twin, then the card itself.
    fn search_and_verify(&mut self, record: Option<Record>) -> Result<Gathered, Error> {
        let mut progress = Progress::new(self.settings.len(), self.quiet);
        let on_twin =
            twin(self.gpu, self.catalog).and_then(|twin| self.search(&twin, None, &mut progress));
        let mut gathered = match on_twin {
            Ok(gathered) => gathered,
            // What is wrong with the user's code is wrong with it on the card too.
            Err(error) if error.is_of_users_code() => return Err(error),
            // Also where the twin's workers do not run: the card may still be measured by itself.
            Err(error) => {
                let mut gathered = self.search(self.gpu, record, &mut progress)?;
                gathered.notes.push(Note::NoTwin { reason: error.to_string() });
                return Ok(gathered);
            }
        };
        // What one should know of the twin's context and processes does not concern the card.
        gathered.notes.retain(|note| {
            !matches!(note, Note::ContextOfProfile { .. } | Note::OthersGrew { .. })
        });
        if gathered.findings.interrupted {
            // What only the twin knows is no plan for the card.
            gathered.findings.searches.clear();
            return Ok(gathered);
        }
        gathered.on_twin = gathered.findings.measurements.len();
        // The card knows them.
        gathered.sizes.clear();
        let mut prober = self.launch.prober(self.gpu, record);
        let Verified { factor, .. } = verify(
            &mut gathered.findings,
            prober.as_mut(),
            &self.workload,
            &self.goal,
            self.gpu.budget().budget,
            &mut |findings| progress.update(findings),
        )?;
        if (factor - 1.0).abs() > TWIN_TOLERANCE {
            gathered.notes.push(Note::TwinDiffers { factor });
        }
        if prober.was_unnamed() {
            gathered.notes.push(Note::ProcessUnnamed);
        }
        if prober.others_grew() > self.gpu.budget().margin.percent(10.0) {
            gathered.notes.push(Note::OthersGrew { grew: prober.others_grew() });
        }
        gathered.hello = prober.hello().cloned().or(gathered.hello);
        Ok(gathered)
    }

    /// Changes with which one sample fits, tried on a virtual GPU.
    fn would_fit(
        &self,
        findings: &Findings,
        record: Option<Record>,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        // The setting that asks for least is the nearest to fitting.
        let Some(setting) = self.settings.last() else { return Ok(()) };
        let unknown = |known: &Outcome| matches!(known, Outcome::Failed { .. });
        if findings.measurements.iter().all(|known| unknown(&known.outcome)) {
            return Ok(());
        }
        let point = Point::to_probe(*setting, 1, &self.goal);
        remedies(self, point, record, changes)
    }

    fn notes(&self, plan: &Plan, gathered: &Gathered) -> Vec<Note> {
        let mut notes = Vec::new();
        let findings = &gathered.findings;
        if findings.interrupted {
            notes.push(Note::Incomplete);
        }
        if let Some(reason) = &findings.stopped_by {
            notes.push(Note::StoppedBy { reason: reason.clone() });
        }
        let Some(choice) = &plan.recommendation else {
            notes.extend(of_points(findings, plan));
            return notes;
        };
        if self.objective == Objective::Throughput && choice.samples_per_second.is_none() {
            notes.push(Note::RankedWithoutTimes);
        }
        let micro_batch = choice.micro_batch;
        let built_so = plan.built.as_ref().is_some_and(|built| built.batch_norm);
        if (built_so || self.workload.subject.has_batch_norm()) && micro_batch < self.goal.per_gpu()
        {
            notes.push(Note::BatchNorm { micro_batch });
        }
        notes.extend(self.notes_of_command(choice));
        if self.goal.world_size > self.workload.subject.ranks() {
            notes.push(Note::WorldSize { world_size: self.goal.world_size });
        }
        let points = next_on_twin(plan, gathered.on_twin);
        if !points.is_empty() {
            notes.push(Note::NextOnTwin { points });
        }
        notes.extend(of_points(findings, plan));
        notes
    }

    /// The recommended setting once more, with the lowest sizes instead of the highest.
    fn interval(&self, plan: &Plan, places: Vec<String>) -> Option<Note> {
        let choice = plan.recommendation.as_ref().filter(|_| !places.is_empty())?;
        let Choice { precision, checkpointing, micro_batch, .. } = *choice;
        let point = Point::to_probe(Setting { precision, checkpointing }, micro_batch, &self.goal);
        let lowest = twin(self.gpu, self.catalog).and_then(|twin| {
            let launch = self.launch.clone().with_lowest_sizes();
            launch.prober(&twin, None).probe(&self.workload, point)
        });
        let lowest_peak = lowest.ok().and_then(|it| it.ran().map(|ran| ran.memory.device_peak));
        let highest_peak = choice.memory.device_peak;
        Some(Note::DataDependentSizes { places, lowest_peak, highest_peak })
    }

    /// What a command did not let us set or see.
    fn notes_of_command(&self, choice: &Choice) -> Vec<Note> {
        let Some(command) = self.workload.subject.command() else { return Vec::new() };
        let mut notes = Vec::new();
        let mut kept = Vec::new();
        if choice.precision == Precision::AsIs {
            kept.push("precision".to_owned());
        }
        if choice.checkpointing == Checkpointing::AsIs {
            kept.push("checkpointing".to_owned());
        }
        if !kept.is_empty() {
            notes.push(Note::AsTheCommandDoes { what: kept });
        }
        if !command.varies(Variable::Accumulation) && choice.accumulation > 1 {
            notes.push(Note::OwnAccumulation { steps: choice.accumulation });
        }
        if !command.varies(Variable::Steps) {
            notes.push(Note::EndedEarly);
        }
        notes
    }

    /// The user's command as it trains with a choice.
    fn line(&self, choice: Option<&Choice>) -> Option<String> {
        let choice = choice?;
        Some(self.workload.subject.command()?.line(&Values {
            micro_batch: choice.micro_batch,
            accumulation: choice.accumulation,
            precision: choice.precision,
            checkpointing: choice.checkpointing,
            sequence: self.workload.sequence,
            steps: None,
        }))
    }

    fn device(&self) -> DeviceSummary {
        DeviceSummary {
            name: self.gpu.name().to_owned(),
            product: self.gpu.product().to_owned(),
            uuid: self.gpu.uuid().to_owned(),
            kind: self.gpu.kind(),
            compute_capability: self.gpu.compute_capability().to_string(),
        }
    }

    fn versions(&self, hello: Option<&Hello>) -> Versions {
        let hello = hello.cloned().unwrap_or_default();
        Versions {
            vramfit: env!("CARGO_PKG_VERSION").to_owned(),
            torch: hello.torch,
            cuda: hello.cuda,
            cudnn: hello.cudnn,
            driver: self.gpu.driver().to_owned(),
        }
    }
}

/// The virtual twin of a real card, with the card's own budget.
///
/// # Errors
/// When the virtual GPU's library or folder is not to be had.
pub(super) fn twin(gpu: &Gpu, catalog: &Catalog) -> Result<Gpu, Error> {
    let profile = match gpu {
        Gpu::Virtual(gpu) => gpu.profile().clone(),
        Gpu::Real(card) => twin_profile(card, profile_of(card, catalog)?.as_ref()),
    };
    VirtualGpu::with_budget(&profile, gpu.budget(), gpu.count()).map(Box::new).map(Gpu::Virtual)
}

/// The profile of a real card, where there is one.
///
/// # Errors
/// When a profile is broken.
pub(super) fn profile_of(card: &RealGpu, catalog: &Catalog) -> Result<Option<GpuProfile>, Error> {
    // A virtual card that stands in for a real one is of the same kind.
    let product = card.product.trim_end_matches(VIRTUAL_SUFFIX);
    catalog.match_product(product, card.budget.total, card.multiprocessors)
}

/// Changes with which a point that does not fit would, tried on the virtual GPU or twin: first on
/// the same card, then a larger one. What was found before a failure is in `changes`.
///
/// # Errors
/// As [`Prober::probe`].
pub(super) fn remedies(
    planner: &Planner<'_>,
    point: Point,
    record: Option<Record>,
    changes: &mut Vec<Change>,
) -> Result<(), Error> {
    let workload = &planner.workload;
    let capability = planner.gpu.compute_capability();
    let settable = workload.subject.command().map(|it| it.precisions().unwrap_or_default());
    let mixed: Vec<_> = [Precision::Bf16, Precision::Fp16]
        .into_iter()
        .filter(|precision| inputs::has(capability, *precision))
        .filter(|precision| settable.as_ref().is_none_or(|it| it.contains(precision)))
        .take(1)
        .collect();
    let budget = planner.gpu.budget().budget;
    let search = Remedies { workload, point, mixed: &mixed, budget };
    let twin = twin(planner.gpu, planner.catalog)?;
    let mut prober = planner.launch.prober(&twin, record.clone());
    changes.extend(search.on_this_card(prober.as_mut(), MOST_CHANGES)?);
    drop(prober);
    let cards = larger_cards(planner)?;
    let ranks = workload.subject.ranks();
    let setup = Setup { vram: None, ..planner.setup };
    let another = search.on_another_card(&cards, &mut |card| {
        let gpu = Gpu::Virtual(Box::new(VirtualGpu::several(card, setup, ranks)?));
        let mut prober = planner.launch.prober(&gpu, record.clone());
        Ok(prober.probe(workload, point)?.verdict(gpu.budget().budget) == Verdict::Fits)
    })?;
    changes.extend(another);
    Ok(())
}

/// Cards with more memory that have the precisions of this one, one of each size, ascending.
fn larger_cards(planner: &Planner<'_>) -> Result<Vec<GpuProfile>, Error> {
    let (capability, usable) = (planner.gpu.compute_capability(), planner.gpu.budget().usable);
    let mut cards = planner.catalog.gpus()?;
    cards.retain(|card| {
        card.compute_capability.value >= capability && card.usable_memory.value > usable
    });
    cards.sort_by(|a, b| {
        let key = |card: &GpuProfile| (card.usable_memory.value, card.segment);
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    cards.dedup_by_key(|card| card.total_memory.value.as_mib() as u64 / 1000);
    Ok(cards)
}

/// The next larger micro-batches that a plan states though only the twin, of which the first
/// `on_twin` measurements are, has tried them.
fn next_on_twin(plan: &Plan, on_twin: usize) -> Vec<Tried> {
    plan.recommendation
        .iter()
        .chain(&plan.alternatives)
        .filter_map(|choice| {
            let next = choice.next.filter(|next| next.evidence < on_twin)?;
            let Choice { precision, checkpointing, .. } = *choice;
            let setting = Setting { precision, checkpointing };
            Some(Tried { setting, micro_batch: next.micro_batch })
        })
        .collect()
}

fn of_points(findings: &Findings, plan: &Plan) -> Vec<Note> {
    let (mut notes, mut points) = (Vec::new(), Vec::new());
    for known in &findings.measurements {
        let (setting, micro_batch) = (known.point.setting, known.point.micro_batch);
        let tried = Tried { setting, micro_batch };
        match &known.outcome {
            Outcome::Failed { message, .. } => {
                notes.push(Note::PointFailed { setting, micro_batch, reason: message.clone() });
            }
            _ if known.verdict(plan.budget.budget) == Verdict::Tight
                && !points.contains(&tried) =>
            {
                points.push(tried);
            }
            _ => {}
        }
    }
    if !points.is_empty() {
        notes.push(Note::Tight { points });
    }
    notes
}

fn notes_of_virtual_gpu(gpu: &VirtualGpu, seen: RunReports) -> Vec<Note> {
    let context = &gpu.profile().context;
    let mut notes = vec![Note::ContextOfProfile {
        context: context.value,
        basis: context.basis.name().to_owned(),
        source: context.source.clone(),
    }];
    if !seen.not_implemented.is_empty() {
        notes.push(Note::NotImplemented { names: seen.not_implemented });
    }
    if seen.read_backs > 0 {
        let places = seen.unknown_reads.iter().map(|it| one_line(&it.to_string())).collect();
        notes.push(Note::ReadBacks { count: seen.read_backs, places });
    }
    notes.extend(seen.internal_errors.into_iter().map(|message| Note::InternalError { message }));
    notes
}
