//! From a question to a plan: search, solve, and say what one should know.

use super::contexts::{self, Asked, OfLength};
use super::progress::Progress;
use super::{allocator, grounds, notes, remedies, twin};
use crate::device::{Gpu, Platform, Setup, read_run_reports};
use crate::error::{Error, one_line};
use crate::measurement::{Built, Outcome, Point, Setting};
use crate::plan::{Choice, DeviceSummary, Grounds, Note, Objective, PLAN_VERSION, Plan, Versions};
use crate::probe::protocol::Hello;
use crate::probe::{Change, Findings, GpuProber, Launch, Longest, Prober, Record};
use crate::profile::Catalog;
use crate::profile::uncertainty::Uncertainty;
use crate::solve::{self, Selective};
use crate::workload::{Goal, Precision, Values, Workload};

/// A card that differs from its twin by more than this deserves a note.
const TWIN_TOLERANCE: f64 = 0.02;

/// A question.
pub(super) struct Planner<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) gpu: &'a Gpu,
    pub(super) setup: Setup,
    pub(super) launch: Launch,
    pub(super) workload: Workload,
    /// Where several lengths are to be compared; the workload is then at the shortest, and with the
    /// plan at the recommended one.
    pub(super) contexts: Option<Asked>,
    pub(super) goal: Goal,
    pub(super) settings: Vec<Setting>,
    /// Precisions of these in which blocks to checkpoint are to be chosen.
    pub(super) selective: Vec<Precision>,
    pub(super) objective: Objective,
    /// Samples whose training time is asked for.
    pub(super) samples: Option<u64>,
    /// Precisions that would be searched if the card had them in hardware.
    pub(super) left_out: Vec<Precision>,
    /// Shows no progress.
    pub(super) quiet: bool,
}

/// What was found, and what one should know of how.
#[derive(Default)]
struct Gathered {
    /// The longest context first; one where no lengths are compared.
    lengths: Vec<OfLength>,
    longest: Vec<Longest>,
    notes: Vec<Note>,
    hello: Option<Hello>,
    built: Option<Built>,
    grounds: Grounds,
    /// Results whose size depends on values that nobody knows.
    sizes: Vec<String>,
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
        let chosen = contexts::take_chosen(&mut gathered.lengths);
        let otherwise = chosen.answer();
        let OfLength { tokens, findings, on_twin, .. } = chosen;
        self.workload.sequence = tokens;
        let findings = &findings;
        let budget = self.gpu.budget();
        let uncertainty = self.gpu.uncertainty();
        let question = self.question(self.gpu, &uncertainty);
        let choices = question.choices(findings);
        let pareto = question.pareto(findings);
        let incomplete = findings.interrupted || findings.stopped_by.is_some();
        let mut would_fit = Vec::new();
        let mut untried = None;
        if choices.is_empty() && !incomplete {
            // That nothing fits is known; a failure from here on must not lose it.
            untried = self.would_fit(findings, record, &mut would_fit).err();
        }
        let rungs = solve::compared(findings, &self.settings, &self.goal);
        let ladder = solve::ladder(findings, &rungs, &question);
        let mut choices = choices.into_iter();
        let recommendation = choices.next();
        let speed = recommendation.as_ref().and_then(|choice| choice.speed.as_ref());
        let training =
            speed.zip(self.samples).map(|(speed, samples)| speed.training(samples, &self.goal));
        let mut plan = Plan {
            plan_version: PLAN_VERSION,
            versions: self.versions(gathered.hello.as_ref()),
            device: self.device(),
            workload: self.workload.clone(),
            built: gathered.built.take(),
            goal: self.goal,
            objective: self.objective,
            budget,
            recommendation,
            command: None,
            alternatives: choices.collect(),
            pareto,
            training,
            ladder,
            contexts: None,
            would_fit,
            measurements: Vec::new(),
            surveys: Vec::new(),
            grounds: gathered.grounds,
            notes: Vec::new(),
            incomplete: incomplete || untried.is_some(),
        };
        plan.command = self.line(plan.recommendation.as_ref());
        plan.notes = notes::of_plan(&plan, findings, on_twin);
        plan.notes.extend(untried.map(|error| Note::ChangesUntried { reason: error.to_string() }));
        plan.notes.append(&mut gathered.notes);
        plan.notes.extend(notes::of_precisions(&self.left_out, &self.settings, self.gpu));
        plan.notes.extend(notes::of_speed(&plan, self.gpu));
        plan.notes.extend(self.interval(&plan, std::mem::take(&mut gathered.sizes)));
        plan.notes.extend(notes::of_platform(self.platform(), self.setup, budget));
        plan.notes.extend(allocator::notes());
        plan.measurements.clone_from(&findings.measurements);
        plan.surveys.clone_from(&findings.surveys);
        self.add_contexts(&mut plan, &otherwise, &gathered.lengths, &gathered.longest);
        Ok(plan)
    }

    /// The best setting at one length.
    pub(super) fn best(&self, of_length: &OfLength) -> Option<Choice> {
        let uncertainty = self.gpu.uncertainty();
        let question = self.question(self.gpu, &uncertainty);
        let question = solve::Question { sequence: of_length.tokens, ..question };
        question.choices(&of_length.findings).into_iter().next()
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
        let mut lengths = self.search_lengths(gpu, prober.as_mut(), progress)?;
        self.settle(&lengths, prober.as_mut());
        let chosen = contexts::chosen(&lengths);
        let findings = &mut lengths[chosen].findings;
        notes.extend(self.choose_blocks(findings, prober.as_mut(), progress));
        if matches!(gpu, Gpu::Virtual(_)) {
            self.measure_other_sizes(findings, prober.as_mut(), gpu);
            self.measure_ladder(findings, prober.as_mut());
        }
        let longest = self.search_longest(gpu, prober.as_mut(), progress, &mut lengths);
        notes.extend(notes::of_prober(prober.as_ref(), gpu.budget()));
        let (hello, built) = (prober.hello().cloned(), prober.built().cloned());
        drop(prober);
        let (mut sizes, mut grounds) = (Vec::new(), grounds::on_the_card());
        if let Gpu::Virtual(gpu) = gpu {
            let seen = read_run_reports(gpu.folder());
            sizes = seen.sizes.iter().map(|it| one_line(&it.to_string())).collect();
            grounds = grounds::on_virtual_gpu(gpu, &seen, self.setup.platform);
            notes.extend(notes::of_virtual_gpu(gpu, seen));
        }
        Ok(Gathered { lengths, longest, notes, hello, built, grounds, sizes })
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
        self.selective.clear();
        Ok(vec![Note::NoCheckpointing])
    }

    /// Goes on with the length that is recommended by what is known now.
    fn settle(&mut self, lengths: &[OfLength], prober: &mut dyn GpuProber) {
        let Some(of_length) = lengths.get(contexts::chosen(lengths)) else { return };
        if self.workload.sequence != of_length.tokens && !of_length.ended_early() {
            self.workload.sequence = of_length.tokens;
            // What the function returns at this length; it did so a moment ago.
            let _ = prober.open(&self.workload);
        }
    }

    /// What decides among settings that ran on `gpu`.
    fn question<'a>(&'a self, gpu: &Gpu, uncertainty: &'a Uncertainty) -> solve::Question<'a> {
        solve::Question {
            goal: &self.goal,
            budget: gpu.budget().budget,
            objective: self.objective,
            sequence: self.workload.sequence,
            uncertainty,
            mixed_pays: gpu.has_tensor_cores(),
        }
    }

    /// Other micro-batches of the best setting than its largest, where they may be faster.
    fn measure_other_sizes(&self, findings: &mut Findings, prober: &mut dyn Prober, gpu: &Gpu) {
        if findings.interrupted || findings.stopped_by.is_some() {
            return;
        }
        let uncertainty = gpu.uncertainty();
        let question = self.question(gpu, &uncertainty);
        while let Some(point) = question.next_size(findings) {
            // What is known without it is a plan too.
            if findings.probe(prober, &self.workload, point).is_err() {
                return;
            }
        }
    }

    /// Checkpointing in part, where full checkpointing makes larger micro-batches fit.
    fn choose_blocks(
        &self,
        findings: &mut Findings,
        prober: &mut dyn GpuProber,
        progress: &mut Progress,
    ) -> Option<Note> {
        let budget = self.gpu.budget().budget;
        let selective = Selective { workload: &self.workload, goal: &self.goal, budget };
        for precision in &self.selective {
            if findings.interrupted || findings.stopped_by.is_some() {
                return None;
            }
            match selective.search(*precision, findings, prober) {
                Ok(None) => progress.update(findings),
                Ok(Some(reason)) => return Some(Note::BlocksNotChosen { reason }),
                Err(error) => findings.end(&error),
            }
        }
        None
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
        let on_twin = twin::of(self.gpu, self.catalog)
            .and_then(|twin| self.search(&twin, None, &mut progress));
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
        if gathered.lengths.iter().any(|it| it.findings.interrupted) {
            // What only the twin knows is no plan for the card.
            gathered.lengths.iter_mut().for_each(|it| it.findings.searches.clear());
            gathered.longest.clear();
            return Ok(gathered);
        }
        // The card knows them.
        gathered.sizes.clear();
        gathered.grounds = grounds::on_the_card();
        let mut prober = self.launch.prober(self.gpu, record);
        let Gathered { lengths, longest, .. } = &mut gathered;
        let factor = self.verify_lengths(prober.as_mut(), &mut progress, lengths, longest)?;
        let chosen = contexts::chosen(&gathered.lengths);
        self.measure_other_sizes(&mut gathered.lengths[chosen].findings, prober.as_mut(), self.gpu);
        if (factor - 1.0).abs() > TWIN_TOLERANCE {
            gathered.notes.push(Note::TwinDiffers { factor });
        }
        gathered.notes.extend(notes::of_prober(prober.as_ref(), self.gpu.budget()));
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
        remedies::find(self, point, record, changes)
    }

    /// The recommended setting once more, with the lowest sizes instead of the highest.
    fn interval(&self, plan: &Plan, places: Vec<String>) -> Option<Note> {
        let choice = plan.recommendation.as_ref().filter(|_| !places.is_empty())?;
        let point = Point::to_probe(choice.setting(), choice.micro_batch, &self.goal);
        let lowest = twin::of(self.gpu, self.catalog).and_then(|twin| {
            let launch = self.launch.clone().with_lowest_sizes();
            launch.prober(&twin, None).probe(&self.workload, point)
        });
        let lowest_peak = lowest.ok().and_then(|it| it.ran().map(|ran| ran.memory.device_peak));
        let highest_peak = choice.memory.device_peak;
        Some(Note::DataDependentSizes { places, lowest_peak, highest_peak })
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
            platform: self.platform(),
        }
    }

    fn platform(&self) -> Platform {
        match self.gpu {
            Gpu::Real(_) => Platform::here(),
            Gpu::Virtual(_) => self.setup.platform,
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
