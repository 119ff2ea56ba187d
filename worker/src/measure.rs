//! Measuring a point: builds the workload, trains some steps, reads the allocator at the borders.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tch::{Device, TchError};
use vramfit::measurement::{Memory, Outcome, Point, Ran, Setting};
use vramfit::survey::{BlockCost, Surveyed};
use vramfit::units::Bytes;
use vramfit::workload::{Checkpointing, Precision, Workload};

use crate::blocks::Blocks;
use crate::failure;
use crate::family::{self, Model};
use crate::shim::clock;
use crate::shim::device::{self, Allocator};
use crate::step::{Border, Trainer, autocast};
use crate::time::Took;

/// Fewest steps that show a point's memory: optimizer state comes with the first.
const FEWEST_STEPS: u32 = 2;

/// Most steps of which a virtual GPU's time is the quietest, and the most that those beyond the first may
/// take, in seconds of wall time.
const MOST_TIMED: usize = 3;
const MOST_TIMED_SECONDS: f64 = 0.1;

/// What became of a point, and the training that holds its memory.
pub(crate) struct Measured {
    pub(crate) outcome: Outcome,
    /// Whether the device still works.
    pub(crate) usable: bool,
    _held: Option<Trainer>,
}

/// Tries a point. All that goes wrong inside becomes an outcome.
pub(crate) fn measure(workload: &Workload, point: &Point, steps: u32, device: Device) -> Measured {
    let mut held = None;
    let before = statistics(device).unwrap_or_default();
    let attempt =
        catch_unwind(AssertUnwindSafe(|| train(workload, point, steps, device, &mut held)));
    let failure = match attempt {
        Ok(Ok(ran)) => return Measured { outcome: Outcome::Ran(ran), usable: true, _held: held },
        Ok(Err(Failure::Refused(text))) => {
            let outcome = Outcome::failed(text);
            return Measured { outcome, usable: true, _held: held };
        }
        Ok(Err(Failure::Torch(error))) => failure::without_appendix(&words(&error)),
        Err(panic) => failure::text_of_panic(panic.as_ref()),
    };
    let after = statistics(device).unwrap_or(before);
    let outcome = failure::outcome(&failure, after.ooms - before.ooms);
    Measured { outcome, usable: works(device), _held: held }
}

enum Failure {
    /// The request cannot be met, in words for the user.
    Refused(String),
    Torch(TchError),
}

impl From<TchError> for Failure {
    fn from(error: TchError) -> Self {
        Self::Torch(error)
    }
}

fn words(error: &TchError) -> String {
    match error {
        TchError::Torch(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What each block of the network costs in one micro-step of a point; or in one line why that is not
/// known. Holds no memory afterwards, unless the device is lost.
pub(crate) fn survey(workload: &Workload, point: &Point, device: Device) -> Surveyed {
    let attempt = catch_unwind(AssertUnwindSafe(|| run_blocks(workload, point, device)));
    let text = match attempt {
        Ok(Ok(costs)) => return Ok(costs),
        Ok(Err(Failure::Refused(text))) => text,
        Ok(Err(Failure::Torch(error))) => failure::without_appendix(&words(&error)),
        Err(panic) => failure::text_of_panic(panic.as_ref()),
    };
    Err(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn run_blocks(
    workload: &Workload,
    point: &Point,
    device: Device,
) -> Result<Vec<BlockCost>, Failure> {
    let Setting { precision, .. } = point.setting;
    prepare(point, device)?;
    let Model { network, parameters: _parameters } =
        family::build(workload, device).map_err(Failure::Refused)?;
    let blocks = Blocks::to_survey(device);
    let batch = network.batch(i64::from(point.micro_batch));
    let loss = {
        let _autocast = autocast(precision, device)?;
        network.loss(&batch, &blocks)
    };
    // It frees the graph; one with derivatives of derivatives may hold itself otherwise.
    loss.f_backward()?;
    Ok(blocks.into_costs())
}

fn train(
    workload: &Workload,
    point: &Point,
    steps: u32,
    device: Device,
    held: &mut Option<Trainer>,
) -> Result<Ran, Failure> {
    if steps < FEWEST_STEPS {
        let text = format!("{steps} steps, where at least {FEWEST_STEPS} are needed");
        return Err(Failure::Refused(text));
    }
    prepare(point, device)?;
    let before = statistics(device)?;
    let model = family::build(workload, device).map_err(Failure::Refused)?;
    let (count, name) = (model.parameter_count(), workload.subject.name());
    let profile = workload.subject.built_in();
    if let Some(stated) = profile.map(|profile| profile.parameters).filter(|n| *n != count) {
        return Err(Failure::Refused(format!(
            "`{name}` has {count} parameters, its profile states {stated}"
        )));
    }
    check_blocks(point.setting.checkpointing, &model).map_err(Failure::Refused)?;
    let mut parts = Parts { weights: statistics(device)?.allocated, ..Parts::default() };
    let trainer = held.insert(Trainer::new(model, workload, point, device));
    let mut took = Vec::new();
    for step in 0..steps {
        let mut read = |border| {
            let _pause = clock::pause();
            parts.read(border, step, statistics(device)?.allocated);
            Ok(())
        };
        let of_step = trainer.step(&mut read)?;
        if step > 0 {
            took.push(of_step);
        }
    }
    let after = statistics(device)?;
    let took = match quietest(&took) {
        Some(first) => timed(trainer, first)?,
        None => median(took),
    };
    Ok(Ran {
        memory: parts.memory(&after),
        allocator_retries: u64::try_from(after.retries - before.retries).unwrap_or(0),
        step_seconds: took.seconds(),
        step_time: took.split,
    })
}

/// Runs some more steps on a virtual GPU where that is quick; the quietest of them and `first`. All of a
/// step but PyTorch's dispatch is the same each time, and that takes longer the busier the machine is.
fn timed(trainer: &mut Trainer, first: Took) -> Result<Took, Failure> {
    let mut took = vec![first];
    let mut spent = 0.0;
    while took.len() < MOST_TIMED && spent + first.wall < MOST_TIMED_SECONDS {
        let of_step = trainer.step(&mut |_| Ok(()))?;
        spent += of_step.wall;
        took.push(of_step);
    }
    Ok(quietest(&took).unwrap_or(first))
}

/// What took least virtual time; none on a real GPU.
fn quietest(took: &[Took]) -> Option<Took> {
    let of_virtual = took.iter().filter(|it| it.split.is_some());
    of_virtual.min_by(|a, b| a.seconds().total_cmp(&b.seconds())).copied()
}

/// Sets the device up for a point.
fn prepare(point: &Point, device: Device) -> Result<(), Failure> {
    if point.micro_batch == 0 || point.remainder == Some(0) {
        return Err(Failure::Refused("a micro-batch of 0 samples".to_owned()));
    }
    if point.accumulation == 0 {
        return Err(Failure::Refused("an accumulation of 0 micro-steps".to_owned()));
    }
    if device.is_cuda() {
        device::allow_tf32_matmul(point.setting.precision == Precision::Tf32)?;
        device::reset_peaks()?;
    }
    Ok(())
}

/// Blocks that the network does not have cannot be checkpointed.
fn check_blocks(checkpointing: Checkpointing, model: &Model) -> Result<(), String> {
    let Checkpointing::Blocks(blocks) = checkpointing else { return Ok(()) };
    let count = model.network.block_count();
    match blocks.last() {
        Some(last) if last as usize >= count => {
            Err(format!("`{checkpointing}` names block {last}, and the model has {count}, from 0"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Live bytes at the borders. Differences leave out what both sides hold, so that cuBLAS's
/// workspaces, which appear in the midst of the first step, are counted in no part but the rest.
#[derive(Debug, Default)]
struct Parts {
    weights: i64,
    gradients: i64,
    optimizer_state: i64,
    activations: i64,
    last: i64,
    before_micro_step: i64,
}

impl Parts {
    fn read(&mut self, border: Border, step: u32, live: i64) {
        let first = step == 0;
        match border {
            Border::AfterZeroGrad if !first => self.gradients = self.last - live,
            Border::AfterOptimizer if first => self.optimizer_state = live - self.last,
            Border::BeforeMicroStep => self.before_micro_step = live,
            Border::AfterForward if !first => {
                self.activations = self.activations.max(live - self.before_micro_step);
            }
            _ => {}
        }
        self.last = live;
    }

    fn memory(&self, allocator: &Allocator) -> Memory {
        let named = self.weights + self.gradients + self.optimizer_state + self.activations;
        Memory {
            context: Bytes::ZERO,
            weights: bytes(self.weights),
            gradients: bytes(self.gradients),
            optimizer_state: bytes(self.optimizer_state),
            activations: bytes(self.activations),
            workspace: bytes(allocator.allocated_peak - named),
            allocated_peak: bytes(allocator.allocated_peak),
            reserved_peak: bytes(allocator.reserved_peak),
            device_peak: Bytes::ZERO,
        }
    }
}

fn bytes(n: i64) -> Bytes {
    Bytes(u64::try_from(n).unwrap_or(0))
}

/// The allocator's statistics; zeros for the CPU, which keeps none.
fn statistics(device: Device) -> Result<Allocator, TchError> {
    if device.is_cuda() { device::allocator() } else { Ok(Allocator::default()) }
}

/// Whether the device still answers after a failure.
pub(crate) fn works(device: Device) -> bool {
    let Device::Cuda(index) = device else { return true };
    catch_unwind(|| tch::Cuda::synchronize(index as i64)).is_ok()
}

fn median(mut took: Vec<Took>) -> Took {
    took.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    let middle = took.len() / 2;
    match took.len() {
        0 => Took::default(),
        n if n % 2 == 1 => took[middle],
        _ => (took[middle - 1] + took[middle]) * 0.5,
    }
}
