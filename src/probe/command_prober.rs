use std::env;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Instant;

use tempfile::TempDir;
use vramfit_vgpu_schema::Report;

use super::complaint::{self, OutOfMemory};
use super::evidence::{Blur, STEPS, evidence, steps};
use super::launch::{Options, USERS_CODE};
use super::progress::{self, Progress};
use super::protocol::Hello;
use super::python::Sources;
use super::trial::{End, Ended, Start, Trial};
use super::{GpuProber, Prober, Record};
use crate::device::{Gpu, Sampler, Sight, Whose, python_environment, read_run_reports};
use crate::error::{Error, ErrorKind, one_line};
use crate::measurement::{Measurement, Memory, Outcome, Point, Ran, StepTime};
use crate::units::Bytes;
use crate::workload::{Command, Values, Variable, Workload};

/// Micro-steps that are run of many: the first makes the gradients, the second adds to them, and from
/// the third on nothing happens that did not happen in the second.
const MICRO_STEPS: u32 = 2;

/// Tries points by running a user's command on one GPU, once for each.
pub(super) struct CommandProber<'a> {
    gpu: &'a Gpu,
    options: Options,
    sources: Arc<Sources>,
    record: Option<Record>,
    /// The virtual GPU's reports of runs before.
    known: Vec<Report>,
    hello: Option<Hello>,
    blur: Blur,
}

/// What was seen of a run from outside.
struct Seen {
    /// Of the virtual GPU's processes of this run.
    reports: Vec<Report>,
    /// Of a real GPU.
    sight: Option<Sight>,
}

impl<'a> CommandProber<'a> {
    pub(super) fn new(
        gpu: &'a Gpu,
        options: Options,
        sources: Arc<Sources>,
        record: Option<Record>,
    ) -> Self {
        Self {
            gpu,
            options,
            sources,
            record,
            known: Vec::new(),
            hello: None,
            blur: Blur::default(),
        }
    }

    fn measure(&mut self, workload: &Workload, point: Point) -> Result<Outcome, Error> {
        let Some(command) = workload.subject.command() else {
            return Ok(Outcome::failed("there is no command to run"));
        };
        let values = Values {
            micro_batch: point.micro_batch,
            accumulation: point.accumulation.min(MICRO_STEPS),
            precision: point.setting.precision,
            checkpointing: point.setting.checkpointing,
            sequence: workload.sequence,
            steps: Some(steps(self.gpu)),
        };
        let folder = tempfile::Builder::new()
            .prefix("vramfit-steps-")
            .tempdir()
            .map_err(|source| ErrorKind::Unwritable { path: env::temp_dir(), source })?;
        let (ended, seen) = self.run(command, &values, &folder)?;
        self.note_versions(&ended.progress);
        let run = Run { command, values, point, ended: &ended, seen: &seen };
        Ok(run.outcome())
    }

    fn run(
        &mut self,
        command: &Command,
        values: &Values,
        folder: &TempDir,
    ) -> Result<(Ended, Seen), Error> {
        let start = Start {
            words: &command.filled(values),
            folder: &command.folder,
            environment: self.environment(command, values, folder),
            progress: folder.path(),
            ranks: command.ranks(),
            timeout: self.options.timeout.unwrap_or(USERS_CODE),
            listener: self.options.listener,
        };
        let (nvml, uuid) = (self.gpu.nvml(), self.gpu.uuid());
        let baseline = Sampler::baseline(nvml, uuid);
        let trial = Trial::start(start, &self.options.interrupt)?;
        let Gpu::Virtual(gpu) = self.gpu else {
            let family = Whose::Family(trial.pid());
            let sampler = Sampler::start(nvml.clone(), uuid.to_owned(), family, baseline)?;
            let ended = trial.watch()?;
            // When it has ended there is nothing left to look at: what was read before counts.
            let sight = sampler.seen();
            self.blur.take_in(&sight);
            return Ok((ended, Seen { reports: Vec::new(), sight: Some(sight) }));
        };
        let ended = trial.watch()?;
        let mut reports = read_run_reports(gpu.folder()).reports;
        // Not by process id alone, which is given out again.
        reports.retain(|report| !self.known.contains(report));
        self.known.extend(reports.iter().cloned());
        Ok((ended, Seen { reports, sight: None }))
    }

    fn environment(
        &self,
        command: &Command,
        values: &Values,
        folder: &TempDir,
    ) -> Vec<(OsString, OsString)> {
        let mut variables = self.gpu.environment();
        variables.extend(python_environment(self.sources.folder(), self.options.python));
        variables.extend(command.environment(values));
        let mut set = |name: &str, value: OsString| variables.push((name.into(), value));
        set(progress::FOLDER, folder.path().into());
        set("VRAMFIT_STEPS_TOLD_BY", std::process::id().to_string().into());
        if !command.varies(Variable::Steps) {
            let steps = values.steps.unwrap_or(STEPS);
            set("VRAMFIT_STEPS_TO_SEE", steps.to_string().into());
        }
        // A run of two steps is nothing to keep account of.
        if env::var_os("WANDB_MODE").is_none() {
            set("WANDB_MODE", "disabled".into());
        }
        variables
    }

    fn note_versions(&mut self, progress: &[Progress]) {
        if let Some(told) = progress.iter().find(|it| !it.cudnn.is_empty()) {
            self.hello = Some(Hello {
                torch: told.torch.clone(),
                cuda: told.cuda.clone(),
                cudnn: told.cudnn.clone(),
                ..Hello::default()
            });
        }
    }
}

/// One run that has ended.
struct Run<'a> {
    command: &'a Command,
    values: Values,
    point: Point,
    ended: &'a Ended,
    seen: &'a Seen,
}

impl Run<'_> {
    fn outcome(&self) -> Outcome {
        if let Some(message) = self.out_of_memory() {
            return Outcome::OutOfMemory { message };
        }
        match self.ended.end {
            End::Exited(status) if !status.success() => self.failure(status),
            End::TimedOut => Outcome::failed(self.timed_out()),
            End::Exited(_) | End::Settled => match self.whole() {
                Ok(ran) => Outcome::Ran(ran),
                Err(reason) => Outcome::failed(reason),
            },
        }
    }

    /// In whose words the run had no memory, also where the program caught that and went on: what it
    /// did then is not what was asked for.
    fn out_of_memory(&self) -> Option<String> {
        let of_python = || self.seen.reports.iter().filter_map(|report| report.python.as_ref());
        let failed = matches!(self.ended.end, End::Exited(status) if !status.success());
        let written = failed
            .then(|| {
                let Ended { stderr, stdout, .. } = self.ended;
                // What it printed is not why it ended with an exception.
                let printed = || complaint::out_of_memory(stdout);
                complaint::out_of_memory(stderr)
                    .or_else(|| complaint::uncaught(stderr).is_none().then(printed).flatten())
            })
            .flatten();
        let place = of_python()
            .flat_map(|python| &python.out_of_memory)
            .find_map(|request| request.places.first())
            .map(|place| format!(" (at {})", one_line(&place.to_string())));
        let place = place.unwrap_or_default();
        match written {
            Some(OutOfMemory::Device(words)) => return Some(words + &place),
            Some(OutOfMemory::Host(words)) => return Some(format!("the host's memory: {words}")),
            None => {}
        }
        let told = self.ended.progress.iter().flat_map(|it| &it.out_of_memory).max().copied();
        let reported = of_python()
            .flat_map(|python| &python.out_of_memory)
            .map(|request| Bytes(request.requested_bytes))
            .max();
        let asked = told.or(reported)?;
        let caught = if failed { "" } else { ", which the program caught itself" };
        Some(format!("CUDA out of memory for {asked}{caught}{place}"))
    }

    fn failure(&self, status: ExitStatus) -> Outcome {
        let Ended { stderr, stdout, .. } = self.ended;
        if let Some(uncaught) = complaint::uncaught(stderr) {
            let complaint::Uncaught { exception, frames } = uncaught;
            let traceback = match frames.is_empty() {
                true => None,
                false => Some(format!("{frames}\n{exception}")),
            };
            return Outcome::Failed { message: exception, traceback };
        }
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("the command ended with status {code}"),
            (None, signal) => {
                format!("the command was ended by signal {}", signal.unwrap_or_default())
            }
        };
        let last = complaint::last_line(stderr).or_else(|| complaint::last_line(stdout));
        Outcome::failed(match last {
            Some(last) => format!("{how}: {last}"),
            None => format!("{how} and wrote nothing"),
        })
    }

    fn timed_out(&self) -> String {
        let steps = self.ended.progress.iter().map(|it| it.steps).max().unwrap_or(0);
        format!(
            "the command had done {steps} of {} optimizer steps when its time was up; `--timeout` \
             gives it more",
            self.values.steps.unwrap_or(STEPS)
        )
    }

    /// What a run took that saw all that it should.
    fn whole(&self) -> Result<Ran, String> {
        let progress = self.ended.progress.iter();
        let training: Vec<_> = progress.filter(|it| it.steps > 0).collect();
        if let Some(least) = training.iter().map(|it| it.steps).min()
            && least < STEPS
        {
            return Err(format!(
                "the command ended after {least} optimizer step, and only the second sees all \
                 memory: give it more data, or its number of steps by `{{steps}}`"
            ));
        }
        let (context, peak) = self.peak(&training);
        if peak == Bytes::ZERO {
            return Err("the command did not use the GPU".to_owned());
        }
        let largest = training.iter().max_by_key(|it| it.device().reserved_peak);
        let Some(largest) = largest else {
            // A program that is none of Python's, or has an optimizer of its own, and ended by itself.
            let allocated = peak.saturating_sub(context);
            let memory = Memory {
                context,
                workspace: allocated,
                allocated_peak: allocated,
                reserved_peak: allocated,
                device_peak: peak,
                ..Memory::default()
            };
            return Ok(Ran { memory, allocator_retries: 0, step_seconds: 0.0, step_time: None });
        };
        let device = largest.device();
        let step_time = self.step_time(largest);
        let Progress { weights, gradients, optimizer_state, activations, .. } = **largest;
        let named = weights + gradients + optimizer_state + activations;
        Ok(Ran {
            memory: Memory {
                context,
                weights,
                gradients,
                optimizer_state,
                activations,
                workspace: device.allocated_peak.saturating_sub(named),
                allocated_peak: device.allocated_peak,
                reserved_peak: device.reserved_peak,
                device_peak: peak,
            },
            allocator_retries: training.iter().map(|it| it.device().retries).max().unwrap_or(0),
            step_seconds: step_time.map_or_else(|| self.step_seconds(largest), |it| it.total),
            step_time,
        })
    }

    /// The context, and the most that one GPU held.
    fn peak(&self, training: &[&Progress]) -> (Bytes, Bytes) {
        let reserved = training.iter().map(|it| it.device().reserved_peak).max();
        let reserved = reserved.unwrap_or(Bytes::ZERO);
        if let Some(sight) = self.seen.sight {
            let context = sight.process_peak.saturating_sub(reserved);
            return (context, sight.process_peak.max(reserved));
        }
        let reports = self.seen.reports.iter();
        let peak = reports.clone().flat_map(|it| &it.device_peak_bytes).max();
        let context = reports.flat_map(|it| &it.process_peak).map(|it| it.context_bytes).max();
        let bytes = |found: Option<u64>| Bytes(found.unwrap_or(0));
        (bytes(context), bytes(peak.copied()))
    }

    /// Wall time of a whole optimizer step: micro-steps that were left out take as long as the others.
    fn step_seconds(&self, of: &Progress) -> f64 {
        let median = |times: &[f64]| {
            let mut times = times.to_vec();
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 2).copied().unwrap_or(0.0)
        };
        let (step, optimizer) = (median(&of.step_seconds), median(&of.optimizer_seconds));
        (step - optimizer).max(0.0) * self.repeats() + optimizer.min(step)
    }

    /// Virtual time of a whole optimizer step, on a virtual GPU. All of it but the dispatch is the same
    /// each time, and that takes longer the busier the machine is: the quietest step counts.
    fn step_time(&self, of: &Progress) -> Option<StepTime> {
        let quietest =
            |times: &[StepTime]| times.iter().copied().min_by(|a, b| a.total.total_cmp(&b.total));
        let step = quietest(&of.step_times)?;
        let optimizer = quietest(&of.optimizer_times).unwrap_or_default();
        // One optimizer of several may take longer than a step of another.
        let optimizer = if optimizer.total > step.total { step } else { optimizer };
        Some((step - optimizer) * self.repeats() + optimizer)
    }

    /// How often what lies between two optimizer steps comes in a whole one.
    fn repeats(&self) -> f64 {
        if !self.command.varies(Variable::Accumulation) {
            return 1.0;
        }
        f64::from(self.point.accumulation) / f64::from(self.values.accumulation.max(1))
    }
}

impl Prober for CommandProber<'_> {
    fn probe(&mut self, workload: &Workload, point: Point) -> Result<Measurement, Error> {
        let begun = Instant::now();
        let outcome = self.measure(workload, point)?;
        let evidence = evidence(self.gpu, self.hello.as_ref());
        let probe_seconds = begun.elapsed().as_secs_f64();
        let sequence = workload.sequence;
        let measurement = Measurement { point, sequence, outcome, evidence, probe_seconds };
        if let Some(record) = &mut self.record {
            record.append(&measurement)?;
        }
        Ok(measurement)
    }
}

impl GpuProber for CommandProber<'_> {
    fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    fn was_unnamed(&self) -> bool {
        self.blur.unnamed
    }

    fn others_grew(&self) -> Bytes {
        self.blur.others_grew
    }
}
