//! Convolutions as the matrix products that libraries turn them into.

use crate::price::{operands, roofline};
use crate::product::compute;
use crate::{Arithmetic, Convolution, Direction, Price, Speed};

pub(crate) fn price(convolution: &Convolution, speed: &Speed) -> Price {
    let Convolution { direction, batch, inputs, outputs, groups, arithmetic, .. } = *convolution;
    let groups = groups.max(1);
    let efficiency = &speed.efficiency;
    let rate = speed.peak(arithmetic)
        * efficiency.product.of(arithmetic)
        * efficiency.convolution.of(direction);
    let (inputs_of_one, outputs_of_one) = (inputs / groups, outputs / groups);
    let positions = batch * convolution.output_positions;
    let taps = inputs_of_one * convolution.filter_positions;
    let tiled = match direction {
        Direction::Forward => compute(positions, outputs_of_one, taps, groups, rate, speed),
        // As many operations as the forward pass has, whatever the stride.
        Direction::Backward => {
            let taps = outputs_of_one * convolution.filter_positions;
            compute(positions, inputs_of_one, taps, groups, rate, speed)
        }
        Direction::Weight => compute(taps, outputs_of_one, positions, groups, rate, speed),
    };
    // Or one output after another, which loses nothing to the padding of narrow groups.
    let operations = 2.0 * (positions * outputs) as f64 * taps as f64;
    let lanes = speed.peak(Arithmetic::Fp32).min(speed.peak(arithmetic));
    let direct = operations / (lanes * efficiency.depthwise);
    let compute = if groups > 1 { tiled.min(direct) } else { tiled };
    let x = batch * inputs * convolution.input_positions;
    let y = batch * outputs * convolution.output_positions;
    let w = outputs * taps;
    let mut elements = (x + y + w) as f64;
    // Tensor cores want channels last: other layouts are turned round before and after.
    if !convolution.channels_last && !matches!(arithmetic, Arithmetic::Fp32 | Arithmetic::Fp64) {
        elements += 2.0 * (x + y) as f64;
    }
    let bytes = elements * convolution.element_bytes as f64;
    let memory = operands(bytes, speed);
    roofline(compute, memory, speed)
}
