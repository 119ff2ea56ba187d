use std::ffi::OsString;
use std::time::{Duration, Instant};

use super::evidence::{Blur, evidence, steps};
use super::protocol::{Hello, Reply, Request};
use super::worker::Worker;
use super::workers::Workers;
use super::{GpuProber, Observation, Prober, Record};
use crate::device::{Gpu, Sampler, Sight, Whose};
use crate::error::{Error, ErrorKind};
use crate::measurement::{Built, Measurement, Outcome, Point};
use crate::survey::Surveyed;
use crate::units::Bytes;
use crate::workload::Workload;

/// Signal that the kernel ends a process with when the host runs out of memory.
const SIGKILL: i32 = 9;

struct Running {
    worker: Worker,
    sampler: Sampler,
    context: Bytes,
    points: u32,
}

/// Tries points in a worker on one GPU; after a crash in a fresh one.
pub struct WorkerProber<'a> {
    gpu: &'a Gpu,
    workers: Workers,
    timeout: Duration,
    running: Option<Running>,
    record: Option<Record>,
    next_id: u64,
    hello: Option<Hello>,
    built: Option<Built>,
    /// How long the user's function took.
    building: Duration,
    blur: Blur,
    observation: Option<Observation>,
}

impl<'a> WorkerProber<'a> {
    /// A prober on `gpu`; no worker is started before the first point.
    pub fn new(gpu: &'a Gpu, workers: Workers) -> Self {
        let timeout = workers.timeout(gpu.kind());
        Self {
            gpu,
            workers,
            timeout,
            running: None,
            record: None,
            next_id: 1,
            hello: None,
            built: None,
            building: Duration::ZERO,
            blur: Blur::default(),
            observation: None,
        }
    }

    /// Writes measurements to `record` as they come.
    #[must_use]
    pub fn recorded(mut self, record: Option<Record>) -> Self {
        self.record = record;
        self
    }

    /// What was seen of the last point from outside; `None` when it had no reply.
    pub fn observation(&self) -> Option<Observation> {
        self.observation
    }

    /// Ends the worker in good order, so that it leaves its run report.
    pub fn close(&mut self) {
        if let Some(Running { worker, sampler, .. }) = self.running.take() {
            drop(sampler);
            worker.quit();
        }
    }

    fn running(&mut self, workload: &Workload) -> Result<&mut Running, Error> {
        let running = match self.running.take() {
            Some(running) => running,
            None => self.start(workload)?,
        };
        Ok(self.running.insert(running))
    }

    fn start(&mut self, workload: &Workload) -> Result<Running, Error> {
        let (nvml, uuid) = (self.gpu.nvml(), self.gpu.uuid());
        let baseline = Sampler::baseline(nvml, uuid);
        let environment: Vec<(OsString, OsString)> = self.gpu.environment();
        let start = self.workers.start(self.gpu.kind());
        let mut worker = Worker::start(start, &environment, self.workers.interrupt())
            .map_err(|error| self.workers.explain(error))?;
        if self.workers.function().is_some() {
            self.build(&mut worker, workload)?;
        }
        self.hello = Some(worker.hello().clone());
        let sampler =
            Sampler::start(nvml.clone(), uuid.to_owned(), Whose::Process(worker.pid()), baseline)?;
        let context = sampler.look().process;
        Ok(Running { worker, sampler, context, points: 0 })
    }

    /// Has the user's function called.
    fn build(&mut self, worker: &mut Worker, workload: &Workload) -> Result<(), Error> {
        let what = format!("`{}`", workload.subject.name());
        let begun = Instant::now();
        let request = Request::Build { workload: Box::new(workload.clone()) };
        let limit = self.workers.limit_of_users_code(self.gpu.kind());
        let reply = worker.ask(&request, limit, &format!("while {what} ran"));
        match reply.map_err(|error| self.workers.explain(error))? {
            Reply::Built { built } => self.built = built,
            other => return Err(worker.no_answer(other)),
        }
        self.building = begun.elapsed();
        Ok(())
    }

    fn measure(&mut self, workload: &Workload, point: Point) -> Result<Outcome, Error> {
        let id = self.next_id;
        self.next_id += 1;
        // The function may be called again for the point.
        let timeout = self.timeout + 2 * self.building;
        let steps = steps(self.gpu);
        let request = Request::Measure { id, workload: Box::new(workload.clone()), point, steps };
        self.observation = None;
        let Running { worker, sampler, context, points } = self.running(workload)?;
        let (context, fresh) = (*context, *points == 0);
        *points += 1;
        // Before the worker has let go of the point before, readings are of that point.
        match worker.ask(&Request::Release, timeout, &doing(point))? {
            Reply::Released => sampler.reset(),
            other => return Err(worker.no_answer(other)),
        }
        let begun = Instant::now();
        match worker.ask(&request, timeout, &doing(point))? {
            Reply::Measured { id: answered, outcome, reserved } if answered == id => {
                let sight = sampler.look();
                let seconds = begun.elapsed().as_secs_f64();
                self.observation = Some(Observation::new(context, fresh, seconds, sight, &outcome));
                Ok(self.complete(outcome, reserved, sight))
            }
            Reply::Measured { id: answered, .. } => {
                let line = format!("measured {answered} when asked for {id}");
                Err(ErrorKind::WorkerRubbish { line }.into())
            }
            other => Err(worker.no_answer(other)),
        }
    }

    fn ask_for_survey(&mut self, workload: &Workload, point: Point) -> Result<Surveyed, Error> {
        let id = self.next_id;
        self.next_id += 1;
        let timeout = self.timeout + 2 * self.building;
        let request = Request::Survey { id, workload: Box::new(workload.clone()), point };
        let Running { worker, .. } = self.running(workload)?;
        match worker.ask(&request, timeout, &doing(point))? {
            Reply::Surveyed { id: answered, blocks, reason } if answered == id => {
                Ok(reason.map_or(Ok(blocks), Err))
            }
            other => Err(worker.no_answer(other)),
        }
    }

    /// Adds what was seen from outside to what the worker says.
    fn complete(&mut self, mut outcome: Outcome, reserved: Bytes, sight: Sight) -> Outcome {
        self.blur.take_in(&sight);
        if sight.readings == 0 && matches!(outcome, Outcome::Ran(_)) {
            return Outcome::failed("NVML gave no reading of the GPU's memory");
        }
        if let Outcome::Ran(ran) = &mut outcome {
            let memory = &mut ran.memory;
            memory.context = sight.process.saturating_sub(reserved);
            memory.device_peak = (memory.context + memory.reserved_peak).max(if sight.by_process {
                sight.process_peak
            } else {
                Bytes::ZERO
            });
        }
        outcome
    }
}

impl Prober for WorkerProber<'_> {
    fn probe(&mut self, workload: &Workload, point: Point) -> Result<Measurement, Error> {
        let begun = Instant::now();
        let fresh = self.running.is_none();
        let mut tried = self.measure(workload, point);
        // A killed worker may have met a moment of short host memory; one that refuses after other
        // points may have been spoilt by them.
        if tried.as_ref().is_err_and(|error| was_killed(error) || (!fresh && refused(error))) {
            self.running = None;
            tried = self.measure(workload, point);
        }
        let outcome = tried.or_else(|error| {
            self.running = None;
            match concerns_one_point(&error) {
                true => Ok(Outcome::failed(error.to_string())),
                false => Err(error),
            }
        })?;
        let probe_seconds = begun.elapsed().as_secs_f64();
        let evidence = evidence(self.gpu, self.hello.as_ref());
        let sequence = workload.sequence;
        let measurement = Measurement { point, sequence, outcome, evidence, probe_seconds };
        if let Some(record) = &mut self.record {
            record.append(&measurement)?;
        }
        Ok(measurement)
    }
}

impl GpuProber for WorkerProber<'_> {
    fn open(&mut self, workload: &Workload) -> Result<(), Error> {
        let Some(mut running) = self.running.take() else {
            return self.running(workload).map(|_| ());
        };
        if self.workers.function().is_some() {
            // The point before must not stand in the way of what the function makes.
            match running.worker.ask(&Request::Release, self.timeout, "at its end")? {
                Reply::Released => self.build(&mut running.worker, workload)?,
                other => return Err(running.worker.no_answer(other)),
            }
        }
        self.running = Some(running);
        Ok(())
    }

    fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    fn built(&self) -> Option<&Built> {
        self.built.as_ref()
    }

    fn survey(&mut self, workload: &Workload, point: Point) -> Result<Surveyed, Error> {
        self.ask_for_survey(workload, point).or_else(|error| {
            self.running = None;
            match concerns_one_point(&error) {
                true => Ok(Err(error.to_string())),
                false => Err(error),
            }
        })
    }

    fn was_unnamed(&self) -> bool {
        self.blur.unnamed
    }

    fn others_grew(&self) -> Bytes {
        self.blur.others_grew
    }
}

impl Drop for WorkerProber<'_> {
    fn drop(&mut self) {
        if !self.workers.interrupt().is_asked() {
            self.close();
        }
    }
}

fn doing(point: Point) -> String {
    format!("at micro-batch {}, {}", point.micro_batch, point.setting)
}

fn was_killed(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WorkerKilled { signal: SIGKILL, .. })
}

fn refused(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WorkerRefused { .. })
}

/// Whether another point may still be tried after this failure.
fn concerns_one_point(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WorkerKilled { .. }
            | ErrorKind::WorkerEnded { .. }
            | ErrorKind::WorkerHung { .. }
            | ErrorKind::WorkerRubbish { .. }
    )
}
