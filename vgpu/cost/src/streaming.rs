//! Kernels bound by memory.

use crate::price::roofline;
use crate::{Price, Speed, Streaming};

/// Of the threads that a device holds at once, the share that is enough to keep its memory busy.
const ENOUGH: f64 = 0.25;

pub(crate) fn price(streaming: &Streaming, speed: &Speed) -> Price {
    let enough = (speed.multiprocessors * speed.threads_per_multiprocessor) as f64 * ENOUGH;
    let busy = (streaming.threads as f64 / enough.max(1.0)).clamp(1e-3, 1.0);
    let share = speed.efficiency.streaming(streaming.class);
    let seconds = streaming.bytes as f64 / (speed.memory_bandwidth * share * busy);
    roofline(0.0, seconds, speed)
}
