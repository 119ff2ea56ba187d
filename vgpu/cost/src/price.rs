use serde::{Deserialize, Serialize};

use crate::{Speed, Work, attention, convolution, product, streaming, transfer};

/// What a piece of work takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// From its start to its end on an otherwise idle device.
    pub seconds: f64,
    /// What it waits for most.
    pub bound: Bound,
}

/// What a piece of work waits for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Arithmetic.
    Compute,
    /// The device's memory.
    Memory,
    /// Being launched: it is over before that is.
    Launch,
    /// The way to the host or to other devices.
    Transfer,
}

/// What `work` takes on a device of that speed.
pub fn price(work: &Work, speed: &Speed) -> Price {
    match work {
        Work::Product(it) => product::price(it, speed),
        Work::Convolution(it) => convolution::price(it, speed),
        Work::Attention(it) => attention::price(it, speed),
        Work::Streaming(it) => streaming::price(it, speed),
        Work::Copy(it) => transfer::copy(it, speed),
        Work::Collective(it) => transfer::collective(it, speed),
        Work::Unknown => Price { seconds: speed.efficiency.launch_seconds, bound: Bound::Launch },
    }
}

/// Seconds of the bytes that a product, a convolution or an attention reads and writes.
pub(crate) fn operands(bytes: f64, speed: &Speed) -> f64 {
    bytes / (speed.memory_bandwidth * speed.efficiency.operands)
}

/// The roofline: the longer of arithmetic and bytes, after a launch.
pub(crate) fn roofline(compute: f64, memory: f64, speed: &Speed) -> Price {
    let (work, bound) =
        if compute > memory { (compute, Bound::Compute) } else { (memory, Bound::Memory) };
    let launch = speed.efficiency.launch_seconds;
    Price { seconds: launch + work, bound: if work < launch { Bound::Launch } else { bound } }
}
