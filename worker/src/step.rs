//! One training step, in the order in which PyTorch users write it.

use tch::{Device, Kind, TchError, Tensor};
use vramfit::measurement::Point;
use vramfit::workload::{Precision, Workload};

use crate::blocks::Blocks;
use crate::clip::clip_grad_norm_;
use crate::family::{Batch, Model};
use crate::optimizer::Optimizer;
use crate::scaler::Scaler;
use crate::shim::autocast;
use crate::time::{Stamp, Took};

/// Equal micro-steps that are really run in one optimizer step. The first makes the gradients, the
/// second adds to them; from the third on nothing happens that did not happen in the second.
const MICRO_STEPS_RUN: u32 = 2;

/// Where a step stands: the borders at which memory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Border {
    /// Gradients of the step before are still there.
    BeforeZeroGrad,
    /// They are gone.
    AfterZeroGrad,
    /// A micro-step's inputs are about to be made.
    BeforeMicroStep,
    /// The graph of a micro-step is complete: all that backward needs is alive.
    AfterForward,
    /// All gradients are there.
    BeforeOptimizer,
    /// The optimizer has stepped.
    AfterOptimizer,
}

/// A model in training.
pub(crate) struct Trainer {
    model: Model,
    optimizer: Optimizer,
    scaler: Option<Scaler>,
    precision: Precision,
    blocks: Blocks,
    clipping: Option<f64>,
    micro_batch: u32,
    accumulation: u32,
    remainder: Option<u32>,
    device: Device,
    /// Names of a training loop that outlive one turn of it.
    batch: Option<Batch>,
    loss: Option<Tensor>,
}

impl Trainer {
    pub(crate) fn new(model: Model, workload: &Workload, point: &Point, device: Device) -> Self {
        let optimizer = Optimizer::new(
            workload.optimizer.unwrap_or_default(),
            workload.optimizer_implementation,
            &model.parameters,
        );
        let precision = point.setting.precision;
        Self {
            model,
            optimizer,
            scaler: (precision == Precision::Fp16).then(|| Scaler::new(device)),
            precision,
            blocks: Blocks::Trained(point.setting.checkpointing),
            clipping: workload.gradient_clipping,
            micro_batch: point.micro_batch,
            accumulation: point.accumulation,
            remainder: point.remainder,
            device,
            batch: None,
            loss: None,
        }
    }

    /// One optimizer step on random batches; returns what it takes, micro-steps that are left out
    /// counted as long as the last one run. `at` is called at each border.
    ///
    /// # Errors
    /// libtorch's own; tch's operators panic instead.
    pub(crate) fn step(
        &mut self,
        at: &mut dyn FnMut(Border) -> Result<(), TchError>,
    ) -> Result<Took, TchError> {
        let start = self.now();
        at(Border::BeforeZeroGrad)?;
        self.optimizer.zero_grad()?;
        at(Border::AfterZeroGrad)?;
        let run = self.accumulation.min(MICRO_STEPS_RUN);
        let mut left_out = Took::default();
        for _ in 0..run {
            let micro_start = self.now();
            self.micro_step(self.micro_batch, at)?;
            left_out = micro_start.until(&self.now()) * f64::from(self.accumulation - run);
        }
        if let Some(samples) = self.remainder {
            self.micro_step(samples, at)?;
        }
        at(Border::BeforeOptimizer)?;
        self.update()?;
        at(Border::AfterOptimizer)?;
        Ok(start.until(&self.now()) + left_out)
    }

    fn micro_step(
        &mut self,
        samples: u32,
        at: &mut dyn FnMut(Border) -> Result<(), TchError>,
    ) -> Result<(), TchError> {
        at(Border::BeforeMicroStep)?;
        let batch = self.model.network.batch(i64::from(samples));
        self.batch = Some(batch);
        self.accumulate(samples, at)
    }

    /// Adds the gradients of the batch in hand, weighted by its share of the samples of a step.
    fn accumulate(
        &mut self,
        samples: u32,
        at: &mut dyn FnMut(Border) -> Result<(), TchError>,
    ) -> Result<(), TchError> {
        let share = self.share(samples);
        let Some(batch) = &self.batch else { return Ok(()) };
        let loss = {
            let _autocast = autocast(self.precision, self.device)?;
            self.model.network.loss(batch, &self.blocks)
        };
        self.loss = Some(loss);
        let Some(loss) = &mut self.loss else { return Ok(()) };
        if share != 1.0 {
            *loss = &*loss * share;
        }
        at(Border::AfterForward)?;
        match &mut self.scaler {
            Some(scaler) => scaler.scale(loss).f_backward(),
            None => loss.f_backward(),
        }
    }

    fn share(&self, samples: u32) -> f64 {
        let all = f64::from(self.micro_batch) * f64::from(self.accumulation)
            + f64::from(self.remainder.unwrap_or(0));
        f64::from(samples) / all
    }

    fn update(&mut self) -> Result<(), TchError> {
        if let Some(largest) = self.clipping {
            if let Some(scaler) = &mut self.scaler {
                scaler.unscale(&self.optimizer)?;
            }
            clip_grad_norm_(&self.optimizer.gradients(), largest)?;
        }
        match &mut self.scaler {
            Some(scaler) => scaler.step(&mut self.optimizer),
            None => self.optimizer.step(None),
        }
    }

    fn now(&self) -> Stamp {
        now(self.device)
    }
}

/// The region in which a precision computes the loss, where it has one.
pub(crate) fn autocast(
    precision: Precision,
    device: Device,
) -> Result<Option<autocast::Region>, TchError> {
    let kind = match precision {
        Precision::Fp32 | Precision::Tf32 | Precision::AsIs => return Ok(None),
        Precision::Bf16 => Kind::BFloat16,
        Precision::Fp16 => Kind::Half,
    };
    autocast::Region::enter(device, kind).map(Some)
}

/// The time once the device has done all it was given.
pub(crate) fn now(device: Device) -> Stamp {
    if let Device::Cuda(index) = device {
        tch::Cuda::synchronize(index as i64);
    }
    Stamp::now()
}

#[cfg(test)]
mod tests;
