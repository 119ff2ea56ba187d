//! A GPU to plan for, as stated in `profiles/gpus/*.toml`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// A fact with where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact<T> {
    /// The fact itself.
    pub value: T,
    /// How it is known.
    pub basis: Basis,
    /// Who says so, or from what it was inferred.
    pub source: String,
}

/// How a fact is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Printed by a real card of this kind, in a public log.
    Observed,
    /// Stated by the vendor or a data base of specifications.
    Specified,
    /// Worked out from other facts.
    Inferred,
}

/// One GPU, read from one file whose stem is its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuProfile {
    /// Name on the command line; the file's stem.
    pub name: String,
    /// Product name as NVML prints it.
    pub product: String,
    /// Other product names the same card goes by.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Where such cards are found.
    pub segment: Segment,
    /// Architecture, e.g. `Ampere`.
    pub architecture: String,
    /// CUDA compute capability.
    pub compute_capability: Fact<ComputeCapability>,
    /// Streaming multiprocessors.
    pub multiprocessors: Fact<u32>,
    /// Board memory, NVML's total.
    pub total_memory: Fact<Bytes>,
    /// CUDA's total on Linux: the board's memory less the driver's reserve.
    pub usable_memory: Fact<Bytes>,
    /// CUDA context of one PyTorch process with its kernels loaded lazily.
    pub context: Fact<Bytes>,
    /// Level-2 cache.
    pub l2_cache: Fact<Bytes>,
    /// Memory bandwidth in GB/s (10⁹ bytes).
    pub bandwidth: Fact<f64>,
    /// Highest boost clock in MHz.
    pub boost_clock: Fact<u32>,
    /// Board power in watts, the top of the range for laptops.
    pub power: Fact<u32>,
    /// What else one should know.
    #[serde(default)]
    pub notes: String,
}

/// Where a card is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Segment {
    /// In a laptop.
    Laptop,
    /// In a desktop.
    Desktop,
    /// In a workstation.
    Workstation,
    /// In a server.
    DataCenter,
    /// On a board of its own, memory shared with the CPU.
    Embedded,
}

/// CUDA compute capability, written `8.6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ComputeCapability {
    /// Generation.
    pub major: u32,
    /// Member of the generation.
    pub minor: u32,
}

impl ComputeCapability {
    /// bf16 runs in hardware (8.0 and later); before, PyTorch emulates it many times slower.
    pub fn has_bf16(self) -> bool {
        self.major >= 8
    }

    /// tf32 matrix products run in hardware (8.0 and later).
    pub fn has_tf32(self) -> bool {
        self.major >= 8
    }
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for ComputeCapability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split_once('.')
            .and_then(|(major, minor)| {
                Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
            })
            .ok_or_else(|| format!("`{text}` is not a compute capability such as 8.6"))
    }
}

impl TryFrom<String> for ComputeCapability {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ComputeCapability> for String {
    fn from(capability: ComputeCapability) -> Self {
        capability.to_string()
    }
}
