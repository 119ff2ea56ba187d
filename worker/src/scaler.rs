//! Gradient scaling for fp16: `torch/amp/grad_scaler.py` of PyTorch 2.11.

use tch::{Device, Kind, TchError, Tensor};

use crate::model::Then;
use crate::optimizer::Optimizer;
use crate::shim::foreach::{self, Scaled};

const INITIAL_SCALE: f64 = 65_536.0;
const GROWTH_FACTOR: f64 = 2.0;
const BACKOFF_FACTOR: f64 = 0.5;
const GROWTH_INTERVAL: i64 = 2_000;

/// Scales losses up so that small fp16 gradients survive, and skips steps whose gradients are not
/// finite.
pub(crate) struct Scaler {
    device: Device,
    /// Scale and growth tracker, made with the first loss.
    state: Option<(Tensor, Tensor)>,
    /// Whether this step's gradients are not finite, once they have been looked at.
    found_inf: Option<Tensor>,
}

impl Scaler {
    pub(crate) fn new(device: Device) -> Self {
        Self { device, state: None, found_inf: None }
    }

    fn state(&mut self) -> &mut (Tensor, Tensor) {
        let device = self.device;
        self.state.get_or_insert_with(|| {
            let scale = Tensor::full([], INITIAL_SCALE, (Kind::Float, device));
            (scale, Tensor::full([], 0, (Kind::Int, device)))
        })
    }

    /// The loss times the scale.
    pub(crate) fn scale(&mut self, loss: &Tensor) -> Tensor {
        loss * &self.state().0
    }

    /// Divides the gradients by the scale, for clipping before the step.
    ///
    /// # Errors
    /// libtorch's own.
    pub(crate) fn unscale(&mut self, optimizer: &Optimizer) -> Result<(), TchError> {
        // The reciprocal in fp64, as Python takes it.
        let inverse = self
            .state()
            .0
            .to_kind(Kind::Double)
            .then(Tensor::reciprocal)
            .then(|x| x.to_kind(Kind::Float));
        self.look(optimizer, &inverse)
    }

    fn look(&mut self, optimizer: &Optimizer, inverse: &Tensor) -> Result<(), TchError> {
        let found_inf = Tensor::full([], 0.0, (Kind::Float, self.device));
        foreach::unscale_(&optimizer.gradients(), &found_inf, inverse)?;
        self.found_inf = Some(found_inf);
        Ok(())
    }

    /// Steps the optimizer if all gradients are finite, then adapts the scale.
    ///
    /// # Errors
    /// libtorch's own.
    pub(crate) fn step(&mut self, optimizer: &mut Optimizer) -> Result<(), TchError> {
        let unscaled = self.found_inf.is_some();
        if optimizer.takes_scale() {
            if !unscaled {
                // The fused kernel divides by the scale itself: here the gradients are only looked at.
                let one = Tensor::full([], 1.0, (Kind::Float, self.device));
                self.look(optimizer, &one)?;
            }
            let scale = (!unscaled).then(|| &self.state().0 * 1.0);
            if let Some(found_inf) = &self.found_inf {
                // Python sums over devices, which makes a copy.
                let found_inf = found_inf + 0.0;
                let scaled = Scaled { scale: scale.as_ref(), found_inf: &found_inf };
                optimizer.step(Some(scaled))?;
            }
        } else {
            if !unscaled {
                self.unscale(optimizer)?;
            }
            let skip =
                self.found_inf.as_ref().map_or(Ok(0.0), |found| found.f_double_value(&[]))?;
            if skip == 0.0 {
                optimizer.step(None)?;
            }
        }
        self.update()
    }

    fn update(&mut self) -> Result<(), TchError> {
        let Some(found_inf) = self.found_inf.take() else { return Ok(()) };
        let (scale, growth) = self.state();
        let _ = scale.f_internal_amp_update_scale_(
            growth,
            &found_inf,
            GROWTH_FACTOR,
            BACKOFF_FACTOR,
            GROWTH_INTERVAL,
        )?;
        Ok(())
    }

    /// The scale now.
    #[cfg(test)]
    pub(crate) fn value(&mut self) -> f64 {
        self.state().0.double_value(&[])
    }
}
