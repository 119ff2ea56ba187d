//! Attention in one kernel: two products forward, five backward (FlashAttention-2, Dao 2023, section 3.1).

use crate::price::{operands, roofline};
use crate::{Attention, Direction, Price, Speed};

/// Query rows that one block of threads takes.
const ROWS: u64 = 128;

pub(crate) fn price(attention: &Attention, speed: &Speed) -> Price {
    let Attention { direction, heads, queries, keys, head_size, causal, arithmetic, .. } =
        *attention;
    let efficiency = &speed.efficiency;
    let products = if direction == Direction::Forward { 2.0 } else { 5.0 };
    let kept = if causal { 0.5 } else { 1.0 };
    let operations = 2.0
        * products
        * kept
        * (heads as f64)
        * (queries.next_multiple_of(ROWS) as f64)
        * (keys as f64)
        * (head_size as f64);
    let rate = speed.peak(arithmetic)
        * efficiency.product.of(arithmetic)
        * efficiency.attention.of(direction);
    let blocks = heads * queries.div_ceil(ROWS);
    let processors = speed.multiprocessors.max(1);
    // Whole waves: a device is no faster with fewer blocks than it has multiprocessors.
    let idle = (blocks.div_ceil(processors) * processors) as f64 / blocks.max(1) as f64;
    let compute = operations * idle / rate;
    let vectors = if direction == Direction::Forward { 2.0 } else { 4.0 };
    let bytes = vectors
        * (heads as f64)
        * ((queries + keys) as f64)
        * (head_size as f64)
        * attention.element_bytes as f64;
    let memory = operands(bytes, speed);
    roofline(compute, memory, speed)
}
