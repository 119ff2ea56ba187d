use serde::{Deserialize, Serialize};

use crate::{Arithmetic, ByArithmetic, Efficiency};

/// What a device can do at best, and which share of it kernels reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speed {
    /// Operations a second (a multiplication and an addition are two), dense, at the boost clock, of the
    /// whole device; 0 where the device has no such arithmetic.
    pub peak: ByArithmetic,
    /// Bytes a second between the device's memory and its multiprocessors.
    pub memory_bandwidth: f64,
    /// Bytes a second between host and device, one way.
    pub host_bandwidth: f64,
    /// Bytes a second between two devices, one way.
    pub peer_bandwidth: f64,
    /// Streaming multiprocessors.
    pub multiprocessors: u64,
    /// Resident threads of one of them.
    pub threads_per_multiprocessor: u64,
    /// Of kernels of each class.
    pub efficiency: Efficiency,
}

impl Speed {
    /// Of a small card, the RTX 3050 of laptops with 16 multiprocessors: for tests and examples.
    pub fn small() -> Self {
        Self {
            peak: ByArithmetic {
                fp64: 0.11e12,
                fp32: 7.1e12,
                tf32: 7.1e12,
                fp16: 14.2e12,
                bf16: 14.2e12,
                fp8: 0.0,
                int8: 28.5e12,
            },
            memory_bandwidth: 192e9,
            host_bandwidth: 15.75e9,
            peer_bandwidth: 15.75e9,
            multiprocessors: 16,
            threads_per_multiprocessor: 1536,
            efficiency: Efficiency::default(),
        }
    }

    /// Operations a second in `arithmetic` at the clock under load; where the device lacks it, in the one that stands in.
    ///
    /// bf16 without hardware for it is widened to fp32 and takes several operations more, which the
    /// calibration's share of fp32 tells; the rest falls back along the table below.
    pub fn peak(&self, arithmetic: Arithmetic) -> f64 {
        let own = self.peak.of(arithmetic) * self.efficiency.clock;
        if own > 0.0 {
            return own;
        }
        match arithmetic {
            Arithmetic::Fp8 | Arithmetic::Int8 => self.peak(Arithmetic::Fp16),
            Arithmetic::Tf32 | Arithmetic::Fp16 => self.peak(Arithmetic::Fp32),
            Arithmetic::Bf16 => self.peak(Arithmetic::Fp32) * self.efficiency.emulated_bf16,
            Arithmetic::Fp64 | Arithmetic::Fp32 => own,
        }
    }
}
