use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Arithmetic, Direction, StreamingClass};

/// One figure for each arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByArithmetic {
    /// Double precision.
    pub fp64: f64,
    /// Single precision.
    pub fp32: f64,
    /// TF32.
    pub tf32: f64,
    /// fp16 with fp32 sums.
    pub fp16: f64,
    /// bf16 with fp32 sums.
    pub bf16: f64,
    /// 8-bit floating point.
    pub fp8: f64,
    /// 8-bit integers.
    pub int8: f64,
}

impl ByArithmetic {
    /// The same figure for all.
    pub const fn all(figure: f64) -> Self {
        let (fp64, fp32, tf32, fp16) = (figure, figure, figure, figure);
        Self { fp64, fp32, tf32, fp16, bf16: figure, fp8: figure, int8: figure }
    }

    /// The figure of `arithmetic`.
    pub fn of(&self, arithmetic: Arithmetic) -> f64 {
        match arithmetic {
            Arithmetic::Fp64 => self.fp64,
            Arithmetic::Fp32 => self.fp32,
            Arithmetic::Tf32 => self.tf32,
            Arithmetic::Fp16 => self.fp16,
            Arithmetic::Bf16 => self.bf16,
            Arithmetic::Fp8 => self.fp8,
            Arithmetic::Int8 => self.int8,
        }
    }
}

/// One figure for each pass of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByDirection {
    /// The output from the input.
    pub forward: f64,
    /// The input's gradient.
    pub backward: f64,
    /// The weight's gradient.
    pub weight: f64,
}

impl ByDirection {
    /// The figure of `direction`.
    pub fn of(&self, direction: Direction) -> f64 {
        match direction {
            Direction::Forward => self.forward,
            Direction::Backward => self.backward,
            Direction::Weight => self.weight,
        }
    }
}

/// Which share of the device's best each class of kernels reaches, and what a launch takes. Shares are
/// above 0 and at most 1, so that no work is faster than the roofline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Efficiency {
    /// Seconds from one kernel's start to the next one's where neither has anything to do.
    pub launch_seconds: f64,
    /// Seconds that the driver keeps the host for one launch.
    pub host_launch_seconds: f64,
    /// Host time of the card's machine for that of this one.
    pub host_factor: f64,
    /// Of the peak, by a large matrix product.
    pub product: ByArithmetic,
    /// Of the peak, by a large convolution, on top of `product`.
    pub convolution: ByDirection,
    /// Of the peak, by attention in one kernel, on top of `product`.
    pub attention: ByDirection,
    /// Of the peak of fp32, by bf16 on a device without it.
    pub emulated_bf16: f64,
    /// Of the memory's bandwidth, by kernels that go element by element.
    pub elementwise: f64,
    /// By reductions.
    pub reduction: f64,
    /// By batch and layer norms.
    pub normalization: f64,
    /// By optimizers over lists of tensors.
    pub optimizer: f64,
    /// By gathers and scatters.
    pub gather: f64,
    /// By windows over images.
    pub window: f64,
    /// By the operands of products, convolutions and attention.
    pub operands: f64,
    /// Of the bandwidth between host and device, by copies of pinned memory.
    pub pinned: f64,
    /// By copies of ordinary memory.
    pub pageable: f64,
    /// Of the bandwidth between devices.
    pub peer: f64,
}

impl Default for Efficiency {
    /// Of an architecture that nobody measured: see docs/speed.md for the sources.
    fn default() -> Self {
        Self {
            launch_seconds: 2.0e-6,
            host_launch_seconds: 2.5e-6,
            host_factor: 1.0,
            product: ByArithmetic::all(0.75),
            convolution: ByDirection { forward: 0.7, backward: 0.6, weight: 0.6 },
            attention: ByDirection { forward: 0.7, backward: 0.6, weight: 0.6 },
            emulated_bf16: 0.3,
            elementwise: 0.8,
            reduction: 0.8,
            normalization: 0.75,
            optimizer: 0.8,
            gather: 0.5,
            window: 0.6,
            operands: 0.8,
            pinned: 0.8,
            pageable: 0.4,
            peer: 0.8,
        }
    }
}

impl Efficiency {
    /// Of the memory's bandwidth, by kernels of `class`.
    pub fn streaming(&self, class: StreamingClass) -> f64 {
        match class {
            StreamingClass::Elementwise => self.elementwise,
            StreamingClass::Reduction => self.reduction,
            StreamingClass::Normalization => self.normalization,
            StreamingClass::Optimizer => self.optimizer,
            StreamingClass::Gather => self.gather,
            StreamingClass::Window => self.window,
        }
    }
}

impl Efficiency {
    /// The first figure that cannot be, in words: a share not above 0 or above 1, a time or factor not
    /// above 0.
    pub fn contradiction(&self) -> Option<String> {
        let Self { product, convolution, attention, .. } = self;
        let shares = [
            ("product.fp64", product.fp64),
            ("product.fp32", product.fp32),
            ("product.tf32", product.tf32),
            ("product.fp16", product.fp16),
            ("product.bf16", product.bf16),
            ("product.fp8", product.fp8),
            ("product.int8", product.int8),
            ("convolution.forward", convolution.forward),
            ("convolution.backward", convolution.backward),
            ("convolution.weight", convolution.weight),
            ("attention.forward", attention.forward),
            ("attention.backward", attention.backward),
            ("attention.weight", attention.weight),
            ("emulated_bf16", self.emulated_bf16),
            ("elementwise", self.elementwise),
            ("reduction", self.reduction),
            ("normalization", self.normalization),
            ("optimizer", self.optimizer),
            ("gather", self.gather),
            ("window", self.window),
            ("operands", self.operands),
            ("pinned", self.pinned),
            ("pageable", self.pageable),
            ("peer", self.peer),
        ];
        let share = shares.into_iter().find(|(_, it)| !(*it > 0.0 && *it <= 1.0));
        let amounts = [
            ("launch_seconds", self.launch_seconds),
            ("host_launch_seconds", self.host_launch_seconds),
            ("host_factor", self.host_factor),
        ];
        let amount = amounts.into_iter().find(|(_, it)| !(*it > 0.0 && it.is_finite()));
        share
            .map(|(name, it)| format!("`{name}` is {it}, expected a share above 0 and at most 1"))
            .or(amount.map(|(name, it)| format!("`{name}` is {it}, expected a number above 0")))
    }
}
