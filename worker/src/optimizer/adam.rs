//! Adam and AdamW: `torch/optim/adam.py` of PyTorch 2.11, without amsgrad.

use tch::{Kind, TchError, Tensor};

use crate::model::Then;
use crate::shim::foreach::{self, Scaled};

pub(super) struct Adam {
    options: foreach::Adam,
    /// Steps done. Python counts on the CPU, parameter by parameter; fused steps on the device.
    steps: i32,
    averages: Vec<Tensor>,
    squares: Vec<Tensor>,
    device_steps: Vec<Tensor>,
}

impl Adam {
    pub(super) fn new(decoupled: bool) -> Self {
        let options = foreach::Adam {
            learning_rate: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            weight_decay: if decoupled { 0.01 } else { 0.0 },
            epsilon: 1e-8,
            decoupled,
        };
        Self {
            options,
            steps: 0,
            averages: Vec::new(),
            squares: Vec::new(),
            device_steps: Vec::new(),
        }
    }

    fn create_state(&mut self, parameters: &[Tensor], on_device: bool) {
        if !self.averages.is_empty() {
            return;
        }
        for parameter in parameters {
            if on_device {
                self.device_steps.push(Tensor::zeros([], (Kind::Float, parameter.device())));
            }
            self.averages.push(parameter.zeros_like());
            self.squares.push(parameter.zeros_like());
        }
    }

    /// Step size and the root of the second bias correction, for the step that `steps` counts.
    fn corrections(&self) -> (f64, f64) {
        let first = 1.0 - self.options.beta1.powi(self.steps);
        let second = 1.0 - self.options.beta2.powi(self.steps);
        (self.options.learning_rate / first, second.sqrt())
    }

    fn decay(&self) -> Option<f64> {
        let options = &self.options;
        options.decoupled.then_some(1.0 - options.learning_rate * options.weight_decay)
    }

    pub(super) fn foreach(
        &mut self,
        parameters: &[Tensor],
        gradients: &[Tensor],
    ) -> Result<(), TchError> {
        self.create_state(parameters, false);
        self.steps += 1;
        if let Some(decay) = self.decay() {
            foreach::mul_scalar_(parameters, decay)?;
        }
        let (beta1, beta2) = (self.options.beta1, self.options.beta2);
        foreach::lerp_(&self.averages, gradients, 1.0 - beta1)?;
        foreach::mul_scalar_(&self.squares, beta2)?;
        foreach::addcmul_(&self.squares, gradients, gradients, 1.0 - beta2)?;
        let (step_size, root) = self.corrections();
        let n = parameters.len();
        let denominators = foreach::sqrt(&self.squares)?;
        foreach::div_(&denominators, &vec![root; n])?;
        foreach::add_scalar_(&denominators, self.options.epsilon)?;
        foreach::addcdiv_(parameters, &self.averages, &denominators, &vec![-step_size; n])
    }

    pub(super) fn fused(
        &mut self,
        parameters: &[Tensor],
        gradients: &[Tensor],
        scaled: Option<Scaled<'_>>,
    ) -> Result<(), TchError> {
        self.create_state(parameters, true);
        foreach::add_scalar_(&self.device_steps, 1.0)?;
        let state: [&[Tensor]; 3] = [&self.averages, &self.squares, &self.device_steps];
        foreach::fused_adam_(parameters, gradients, state, &self.options, scaled)?;
        // A step that was skipped does not count.
        scaled.map_or(Ok(()), |scaled| {
            let skipped: Vec<Tensor> =
                self.device_steps.iter().map(|_| scaled.found_inf.shallow_clone()).collect();
            foreach::sub_list_(&self.device_steps, &skipped)
        })
    }

    pub(super) fn for_loop(
        &mut self,
        parameters: &[Tensor],
        gradients: &[Tensor],
    ) -> Result<(), TchError> {
        self.create_state(parameters, false);
        self.steps += 1;
        let (step_size, root) = self.corrections();
        let (beta1, beta2) = (self.options.beta1, self.options.beta2);
        let state = self.averages.iter_mut().zip(&mut self.squares);
        for ((parameter, gradient), (average, square)) in
            parameters.iter().zip(gradients).zip(state)
        {
            if self.options.decoupled {
                let decay = 1.0 - self.options.learning_rate * self.options.weight_decay;
                let _ = parameter.shallow_clone().f_mul_scalar_(decay)?;
            }
            let _ = average.f_lerp_(gradient, 1.0 - beta1)?;
            let _ = square.f_mul_scalar_(beta2)?;
            foreach::addcmul_one_(square, gradient, gradient, 1.0 - beta2)?;
            let mut denominator = square.f_sqrt()?.then(|x| x.f_div_scalar(root))?;
            let _ = denominator.f_add_scalar_(self.options.epsilon)?;
            foreach::addcdiv_one_(parameter, average, &denominator, -step_size)?;
        }
        Ok(())
    }
}
