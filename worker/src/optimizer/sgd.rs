//! SGD: `torch/optim/sgd.py` of PyTorch 2.11, without weight decay, dampening and Nesterov.

use tch::{TchError, Tensor};

use crate::shim::foreach::{self, Scaled};

const LEARNING_RATE: f64 = 1e-3;

pub(super) struct Sgd {
    momentum: f64,
    momenta: Vec<Tensor>,
}

impl Sgd {
    pub(super) fn new(momentum: f64) -> Self {
        Self { momentum, momenta: Vec::new() }
    }

    /// Whether momenta are kept and were made now, as copies of the gradients.
    fn create_state(&mut self, gradients: &[Tensor]) -> bool {
        let first = self.momentum != 0.0 && self.momenta.is_empty();
        if first {
            for gradient in gradients {
                let mut momentum = gradient.empty_like();
                momentum.copy_(gradient);
                self.momenta.push(momentum);
            }
        }
        first
    }

    pub(super) fn foreach(
        &mut self,
        parameters: &[Tensor],
        gradients: &[Tensor],
    ) -> Result<(), TchError> {
        if self.momentum == 0.0 {
            return foreach::add_list_(parameters, gradients, -LEARNING_RATE);
        }
        if !self.create_state(gradients) {
            foreach::mul_scalar_(&self.momenta, self.momentum)?;
            foreach::add_list_(&self.momenta, gradients, 1.0)?;
        }
        foreach::add_list_(parameters, &self.momenta, -LEARNING_RATE)
    }

    pub(super) fn fused(
        &mut self,
        parameters: &[Tensor],
        gradients: &[Tensor],
        scaled: Option<Scaled<'_>>,
    ) -> Result<(), TchError> {
        let first = self.momentum != 0.0 && self.momenta.is_empty();
        if first {
            self.momenta.extend(gradients.iter().map(Tensor::empty_like));
        }
        foreach::fused_sgd_(
            parameters,
            gradients,
            &self.momenta,
            (LEARNING_RATE, self.momentum),
            first,
            scaled,
        )
    }

    pub(super) fn for_loop(
        &mut self,
        parameters: &[Tensor],
        gradients: &[Tensor],
    ) -> Result<(), TchError> {
        let first = self.create_state(gradients);
        for (index, (parameter, gradient)) in parameters.iter().zip(gradients).enumerate() {
            let direction = match self.momenta.get_mut(index) {
                None => gradient,
                Some(momentum) => {
                    if !first {
                        let _ = momentum.f_mul_scalar_(self.momentum)?;
                        foreach::add_one_(momentum, gradient, 1.0)?;
                    }
                    momentum
                }
            };
            foreach::add_one_(parameter, direction, -LEARNING_RATE)?;
        }
        Ok(())
    }
}
