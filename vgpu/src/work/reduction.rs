//! `reduce_kernel(ReduceOp)`: sums, means, norms, extremes over some dimensions of a tensor.
//!
//! The argument (ATen, native/cuda/Reduce.cuh) begins with the functor and its neutral element, whose
//! sizes the name does not tell, then says how many inputs make how many outputs. That part is found by
//! the shape of the block, which it repeats.

use vramfit_vgpu_cost::StreamingClass;

use super::call::Call;
use super::element;
use super::signature::{Signature, template_of};
use super::{Rule, streaming};

/// Most bytes of a functor and its neutral element (Welford's state of doubles takes 32).
const MOST_BEFORE: usize = 96;

/// Inputs of one output, and outputs.
fn sizes(call: &Call) -> Option<(u64, u64)> {
    (0..=MOST_BEFORE).step_by(4).find_map(|at| {
        let number = |index: usize| call.number(0, at + 4 * index, 4);
        // `ReduceConfig`: element size, inputs, outputs, 3 steps, 5 factors, width, height, threads.
        let (element, inputs, outputs) = (number(0)?, number(1)?, number(2)?);
        let (width, height, threads) = (number(11)?, number(12)?, number(13)?);
        let fits = (1..=64).contains(&element)
            && inputs > 0
            && outputs > 0
            && number(5)? == call.grid(1)
            && (width, height) == (call.block(0), call.block(1))
            && threads == width * height;
        fits.then_some((inputs, outputs))
    })
}

pub(super) fn rule(signature: &Signature) -> Option<Rule> {
    if signature.name != "reduce_kernel" {
        return None;
    }
    let operation = template_of(signature.template(2), "ReduceOp")?;
    let read = element::bytes(operation.first()?)?;
    let written = operation.get(3).and_then(|it| element::bytes(it)).unwrap_or(read);
    Some(Box::new(move |call| {
        let (inputs, outputs) = sizes(call)?;
        streaming(StreamingClass::Reduction, outputs * (inputs * read + written), call)
    }))
}
