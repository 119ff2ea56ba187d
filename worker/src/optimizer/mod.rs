//! Optimizers with the operators, and so the temporaries, of PyTorch's Python implementations.
//! libtorch's own C++ optimizers are for-loops; Python's default on a GPU is foreach.

mod adam;
mod sgd;

use tch::{TchError, Tensor};
use vramfit::workload::{Optimizer as Kind, OptimizerImplementation as Implementation};

use crate::shim::foreach::{self, Scaled};
use adam::Adam;
use sgd::Sgd;

/// An optimizer over a model's parameters. State comes into being with the first step.
pub(crate) struct Optimizer {
    parameters: Vec<Tensor>,
    implementation: Implementation,
    rule: Rule,
}

enum Rule {
    Sgd(Sgd),
    Adam(Adam),
}

impl Optimizer {
    /// With PyTorch's default hyper-parameters, and momentum 0.9 where there is one.
    pub(crate) fn new(kind: Kind, implementation: Implementation, parameters: &[Tensor]) -> Self {
        let rule = match kind {
            Kind::Sgd => Rule::Sgd(Sgd::new(0.0)),
            Kind::SgdMomentum => Rule::Sgd(Sgd::new(0.9)),
            Kind::Adam => Rule::Adam(Adam::new(false)),
            Kind::Adamw => Rule::Adam(Adam::new(true)),
        };
        let parameters = parameters.iter().map(Tensor::shallow_clone).collect();
        Self { parameters, implementation, rule }
    }

    /// Carries out scaling by itself (`_step_supports_amp_scaling`).
    pub(crate) fn takes_scale(&self) -> bool {
        self.implementation == Implementation::Fused
    }

    /// `zero_grad(set_to_none=True)`.
    pub(crate) fn zero_grad(&self) -> Result<(), TchError> {
        foreach::drop_gradients(&self.parameters)
    }

    /// The gradients of all parameters that have one.
    pub(crate) fn gradients(&self) -> Vec<Tensor> {
        self.trained().1
    }

    /// One step. `scaled` comes from a gradient scaler and is for fused steps only.
    ///
    /// # Errors
    /// libtorch's own.
    pub(crate) fn step(&mut self, scaled: Option<Scaled<'_>>) -> Result<(), TchError> {
        tch::no_grad(|| {
            let (parameters, gradients) = self.trained();
            match (&mut self.rule, self.implementation) {
                (Rule::Adam(adam), Implementation::Foreach) => {
                    adam.foreach(&parameters, &gradients)
                }
                (Rule::Adam(adam), Implementation::Fused) => {
                    adam.fused(&parameters, &gradients, scaled)
                }
                (Rule::Adam(adam), Implementation::ForLoop) => {
                    adam.for_loop(&parameters, &gradients)
                }
                (Rule::Sgd(sgd), Implementation::Foreach) => sgd.foreach(&parameters, &gradients),
                (Rule::Sgd(sgd), Implementation::Fused) => {
                    sgd.fused(&parameters, &gradients, scaled)
                }
                (Rule::Sgd(sgd), Implementation::ForLoop) => sgd.for_loop(&parameters, &gradients),
            }
        })
    }

    fn trained(&self) -> (Vec<Tensor>, Vec<Tensor>) {
        self.parameters
            .iter()
            .map(|parameter| (parameter.shallow_clone(), parameter.grad()))
            .filter(|(_, gradient)| gradient.defined())
            .unzip()
    }
}

#[cfg(test)]
mod tests;
