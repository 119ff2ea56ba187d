//! A GPU to plan for, as stated in `profiles/gpus/*.toml`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use super::calibration::Calibration;
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
    #[serde(deserialize_with = "size")]
    pub total_memory: Fact<Bytes>,
    /// CUDA's total on Linux: the board's memory less the driver's reserve.
    #[serde(deserialize_with = "size")]
    pub usable_memory: Fact<Bytes>,
    /// CUDA context of one PyTorch process with its kernels loaded lazily.
    #[serde(deserialize_with = "size")]
    pub context: Fact<Bytes>,
    /// Level-2 cache.
    #[serde(deserialize_with = "size")]
    pub l2_cache: Fact<Bytes>,
    /// Width of the memory bus in bits.
    pub memory_bus: Fact<u32>,
    /// Memory bandwidth in GB/s (10⁹ bytes).
    pub bandwidth: Fact<f64>,
    /// Highest boost clock in MHz.
    pub boost_clock: Fact<u32>,
    /// Boost clock in MHz at the lowest power that the card is sold with; of laptops, where it is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest_boost_clock: Option<Fact<u32>>,
    /// Board power in watts, the top of the range for laptops.
    pub power: Fact<u32>,
    /// The bottom of that range, where it is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest_power: Option<Fact<u32>>,
    /// What else one should know.
    #[serde(default)]
    pub notes: String,
    /// How its speed is modelled; a file of its own, which the catalog adds.
    #[serde(skip)]
    pub calibration: Option<Calibration>,
}

impl GpuProfile {
    /// Whether a driver may call this card `product`. Drivers before 470 or so leave the vendor's
    /// name out.
    pub fn goes_by(&self, product: &str) -> bool {
        let plain = |name: &str| name.trim().trim_start_matches("NVIDIA ").to_lowercase();
        let wanted = plain(product);
        std::iter::once(&self.product).chain(&self.aliases).any(|name| plain(name) == wanted)
    }

    /// Whether `other` states the same facts. How its speed is modelled is none: a profile that was
    /// written down and read again knows nothing of it.
    pub fn states_the_same_as(&self, other: &Self) -> bool {
        let facts = |profile: &Self| Self { calibration: None, ..profile.clone() };
        facts(self) == facts(other)
    }

    /// Clock of the memory in kHz as CUDA counts it: two transfers a tick, so that bandwidth is
    /// 2 × clock × bus width.
    pub fn memory_clock_khz(&self) -> u32 {
        let bytes_a_transfer = f64::from(self.memory_bus.value) / 8.0;
        (self.bandwidth.value * 1e6 / (2.0 * bytes_a_transfer)).round() as u32
    }
}

/// Reads a size with its unit as people write it (`"4096 MiB"`), or a plain number of bytes.
fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Fact<Bytes>, D::Error> {
    struct Size(Bytes);

    impl<'de> Deserialize<'de> for Size {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(SizeVisitor).map(Self)
        }
    }

    struct SizeVisitor;

    impl serde::de::Visitor<'_> for SizeVisitor {
        type Value = Bytes;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a size such as \"4096 MiB\"")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bytes, E> {
            text.parse().map_err(E::custom)
        }

        fn visit_u64<E: serde::de::Error>(self, bytes: u64) -> Result<Bytes, E> {
            Ok(Bytes(bytes))
        }

        fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<Bytes, E> {
            let bytes = u64::try_from(bytes);
            bytes.map(Bytes).map_err(|_| E::custom("a size is not negative"))
        }
    }

    let Fact { value: Size(value), basis, source } = Fact::deserialize(deserializer)?;
    Ok(Fact { value, basis, source })
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

impl Basis {
    /// As it stands in a profile.
    pub fn name(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Specified => "specified",
            Self::Inferred => "inferred",
        }
    }
}

impl Segment {
    /// Whether a desktop may be shown through such a card.
    pub fn has_display(self) -> bool {
        self != Self::DataCenter
    }

    /// As it stands in a profile.
    pub fn name(self) -> &'static str {
        match self {
            Self::Laptop => "laptop",
            Self::Desktop => "desktop",
            Self::Workstation => "workstation",
            Self::DataCenter => "data-center",
            Self::Embedded => "embedded",
        }
    }
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
