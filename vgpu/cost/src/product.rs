//! Matrix products: tiles of the result over the multiprocessors, in whole waves.

use crate::price::{operands, roofline};
use crate::{Price, Product, Speed};

/// Tiles of the result that libraries have kernels for, rows and columns, with the share of the peak that
/// a multiprocessor full of such tiles reaches: smaller ones load more operands for the same arithmetic.
const TILES: [(u64, u64, f64); 5] =
    [(256, 128, 1.0), (128, 128, 0.96), (128, 64, 0.86), (64, 64, 0.72), (64, 32, 0.55)];

/// Inner products are taken in steps of so many.
const STEP: u64 = 32;

/// Shorter ones are not split.
const SHORTEST_SPLIT: u64 = 128;

/// Most parts into which libraries split the inner products where the result has few tiles.
const MOST_SPLITS: u64 = 32;

pub(crate) fn price(product: &Product, speed: &Speed) -> Price {
    let Product { m, n, k, batch, arithmetic, input_bytes, output_bytes } = *product;
    let rate = speed.peak(arithmetic) * speed.efficiency.product.of(arithmetic);
    let compute = compute(m, n, k, batch, rate, speed);
    let elements = |rows: u64, columns: u64| (rows as f64) * (columns as f64) * batch as f64;
    let bytes = (elements(m, k) + elements(k, n)) * input_bytes as f64
        + elements(m, n) * output_bytes as f64;
    let memory = operands(bytes, speed);
    roofline(compute, memory, speed)
}

/// Seconds of the arithmetic of `batch` products on a device whose multiprocessors together do `rate`
/// operations a second: those of the tiling that takes least.
pub(crate) fn compute(m: u64, n: u64, k: u64, batch: u64, rate: f64, speed: &Speed) -> f64 {
    let processors = speed.multiprocessors.max(1);
    let of_one = rate / processors as f64;
    let seconds = |(rows, columns, share): (u64, u64, f64)| {
        // Either orientation.
        let blocks = (m.div_ceil(rows) * n.div_ceil(columns))
            .min(m.div_ceil(columns) * n.div_ceil(rows))
            .saturating_mul(batch);
        let splits = (processors / blocks.max(1)).clamp(1, MOST_SPLITS);
        let length = k.div_ceil(splits).max(k.min(SHORTEST_SPLIT)).next_multiple_of(STEP);
        let waves = (blocks * splits).div_ceil(processors) as f64;
        let operations = 2.0 * (rows * columns) as f64 * length as f64;
        waves * operations / (of_one * share)
    };
    TILES.into_iter().map(seconds).fold(f64::INFINITY, f64::min)
}
