//! Parameters, made on the device, and the layers that several families share.
//!
//! Memory follows PyTorch's only if tensors live as long as they do there. In Python a value dies
//! when its name is bound anew; in Rust a temporary lives to the end of its statement and a
//! shadowed name to the end of its block. [`Then`] gives chains of operators Python's lifetimes.

use std::ops::Deref;

use tch::{Device, Kind, Tensor};

/// A parameter or buffer. Clones share the tensor.
#[derive(Debug)]
pub(crate) struct Weight(Tensor);

impl Clone for Weight {
    fn clone(&self) -> Self {
        Self(self.0.shallow_clone())
    }
}

impl Deref for Weight {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.0
    }
}

/// Chains operators such that each result dies as soon as the next one exists.
pub(crate) trait Then: Sized {
    /// `next` of this value, which is dropped.
    fn then<T>(self, next: impl FnOnce(&Self) -> T) -> T {
        next(&self)
    }
}

impl Then for Tensor {}

/// Makes parameters in the order in which PyTorch's `module.to(device)` does.
pub(crate) struct Builder {
    device: Device,
    parameters: Vec<Tensor>,
}

impl Builder {
    pub(crate) fn new(device: Device) -> Self {
        Self { device, parameters: Vec::new() }
    }

    pub(crate) fn device(&self) -> Device {
        self.device
    }

    /// The parameters made so far, in order.
    pub(crate) fn into_parameters(self) -> Vec<Tensor> {
        self.parameters
    }

    /// A parameter drawn from a normal distribution around 0.
    pub(crate) fn normal(&mut self, shape: &[i64], deviation: f64) -> Weight {
        let mut tensor = Tensor::empty(shape, (Kind::Float, self.device));
        let _ = tensor.normal_(0.0, deviation);
        self.trained(tensor)
    }

    /// A parameter filled with one value.
    pub(crate) fn constant(&mut self, shape: &[i64], value: f64) -> Weight {
        let mut tensor = Tensor::empty(shape, (Kind::Float, self.device));
        let _ = tensor.fill_(value);
        self.trained(tensor)
    }

    /// A tensor that belongs to the model and is not trained.
    pub(crate) fn buffer(&mut self, shape: &[i64], kind: Kind, value: f64) -> Weight {
        let mut tensor = Tensor::empty(shape, (kind, self.device));
        let _ = tensor.fill_(value);
        Weight(tensor)
    }

    fn trained(&mut self, tensor: Tensor) -> Weight {
        let tensor = tensor.set_requires_grad(true);
        self.parameters.push(tensor.shallow_clone());
        Weight(tensor)
    }
}

/// `nn.Linear`.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    weight: Weight,
    bias: Option<Weight>,
}

impl Linear {
    pub(crate) fn new(builder: &mut Builder, inputs: i64, outputs: i64, bias: bool) -> Self {
        Self {
            weight: builder.normal(&[outputs, inputs], 1.0 / (inputs as f64).sqrt()),
            bias: bias.then(|| builder.constant(&[outputs], 0.0)),
        }
    }

    pub(crate) fn forward(&self, x: &Tensor) -> Tensor {
        x.linear(&self.weight, self.bias.as_deref())
    }
}

/// Dimension as libtorch counts.
pub(crate) fn dim(n: u32) -> i64 {
    i64::from(n)
}
