//! What a card can do at best, from the few facts of its profile.

use vramfit_vgpu_cost::{ByArithmetic, Efficiency, Speed};

use super::gpu::{ComputeCapability, GpuProfile, Segment};
use super::limits::Limits;

/// Dense operations of one multiprocessor in one clock, a multiplication and an addition counted as two.
struct Rates {
    fp64: f64,
    fp32: f64,
    tf32: f64,
    fp16: f64,
    bf16: f64,
}

/// How a vendor sells the same chip: tensor cores at half their rate where sums are fp32, or none at all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tensor {
    Full,
    Half,
    None,
}

impl Tensor {
    /// GeForce cards, and the A10G, sum in fp32 at half the rate of the same chip in other cards; the GTX
    /// 16 series is Turing without tensor cores (hmc-tech.com; nvidia.com's comparison of laptop GPUs).
    fn of(product: &str, capability: ComputeCapability) -> Self {
        let words = |word| product.split_whitespace().any(|it| it == word);
        match capability.major {
            ..=6 => Self::None,
            _ if words("GTX") || words("MX450") => Self::None,
            7 if !words("GeForce") => Self::Full,
            _ if words("GeForce") || words("A10G") => Self::Half,
            _ => Self::Full,
        }
    }
}

/// Whether matrix products in fp16 run on tensor cores of the card called `product`.
pub(crate) fn has_tensor_cores(product: &str, capability: ComputeCapability) -> bool {
    Tensor::of(product, capability) != Tensor::None
}

impl GpuProfile {
    /// What the card can do at best, at its boost clock, and the share of it that its calibration states.
    pub fn speed(&self) -> Speed {
        let efficiency =
            self.calibration.as_ref().map_or_else(Efficiency::default, |it| it.efficiency);
        let clocks = f64::from(self.boost_clock.value) * 1e6;
        let processors = f64::from(self.multiprocessors.value);
        let rates = self.rates();
        let whole = |rate: f64| rate * processors * clocks;
        let capability = self.compute_capability.value;
        let fp8 = match (capability.major, capability.minor) {
            (8, 9) | (9.., _) => 2.0 * rates.fp16,
            _ => 0.0,
        };
        let int8 = match (capability.major, capability.minor) {
            (7, 2..) | (8.., _) => 2.0 * rates.fp16,
            _ => 0.0,
        };
        Speed {
            peak: ByArithmetic {
                fp64: whole(rates.fp64),
                fp32: whole(rates.fp32),
                tf32: whole(rates.tf32),
                fp16: whole(rates.fp16),
                bf16: whole(rates.bf16),
                fp8: whole(fp8),
                int8: whole(int8),
            },
            memory_bandwidth: self.bandwidth.value * 1e9,
            host_bandwidth: self.host_bandwidth(),
            peer_bandwidth: self.peer_bandwidth(),
            multiprocessors: self.multiprocessors.value.into(),
            threads_per_multiprocessor: Limits::of(capability).threads.unsigned_abs().into(),
            efficiency,
        }
    }

    /// Whether matrix products in fp16 run on tensor cores.
    pub fn has_tensor_cores(&self) -> bool {
        self.tensor() != Tensor::None
    }

    fn tensor(&self) -> Tensor {
        Tensor::of(&self.product, self.compute_capability.value)
    }

    /// From the table "Arithmetic instructions" of NVIDIA's CUDA C++ programming guide and, for tensor
    /// cores, the architecture white papers (Volta, Turing, GA100, GA102, Ada, GH100, Blackwell). What
    /// that table says of fp16 without tensor cores, twice fp32, is for sums in fp16 too: PyTorch sums in
    /// fp32, which goes at the rate of fp32.
    fn rates(&self) -> Rates {
        let capability = self.compute_capability.value;
        let half = if self.tensor() == Tensor::Half { 0.5 } else { 1.0 };
        // Each lane multiplies and adds.
        let fp32 = 2.0 * f64::from(Limits::of(capability).cores);
        let rates = |fp64, tf32, fp16, bf16| Rates { fp64, fp32, tf32, fp16, bf16 };
        match (capability.major, capability.minor) {
            (..=5, _) => rates(8.0, 0.0, 0.0, 0.0),
            (6, 0) => rates(64.0, 0.0, fp32, 0.0),
            (6, _) => rates(8.0, 0.0, 0.0, 0.0),
            (7, 0..=2) => rates(64.0, 0.0, 1024.0, 0.0),
            (7, _) if self.tensor() == Tensor::None => rates(4.0, 0.0, fp32, 0.0),
            (7, _) => rates(4.0, 0.0, 1024.0 * half, 0.0),
            (8, 0) => rates(128.0, 1024.0, 2048.0, 2048.0),
            (8, 7) => rates(4.0, 1024.0, 2048.0, 2048.0),
            (8, _) | (12, _) => rates(4.0, 512.0 * half, 1024.0 * half, 1024.0 * half),
            (9, _) => rates(256.0, 2048.0, 4096.0, 4096.0),
            (11, _) => rates(4.0, 2048.0, 4096.0, 4096.0),
            _ => rates(128.0, 4096.0, 8192.0, 8192.0),
        }
    }

    /// PCI Express of the generation, eight lanes in a laptop, else sixteen: 15.75, 31.5 and 63 GB/s one way.
    fn host_bandwidth(&self) -> f64 {
        let sixteen = match self.compute_capability.value.major {
            ..=7 => 15.75e9,
            8 => 31.5e9,
            _ => 63e9,
        };
        if self.segment == Segment::Laptop { sixteen / 2.0 } else { sixteen }
    }

    /// NVLink of the cards that are sold with it in servers, one way; else the way over the host.
    fn peer_bandwidth(&self) -> f64 {
        let capability = self.compute_capability.value;
        match (capability.major, capability.minor) {
            _ if self.segment != Segment::DataCenter => self.host_bandwidth(),
            (6, 0) => 80e9,
            (7, 0) => 150e9,
            (8, 0) => 300e9,
            (9, _) => 450e9,
            (10, _) => 900e9,
            _ => self.host_bandwidth(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::profile::Catalog;

    /// Tera-operations a second in fp32, TF32, fp16 and bf16 as stated in data sheets.
    fn teraflops(name: &str) -> [f64; 4] {
        let speed = Catalog::built_in().gpu(name).unwrap().speed();
        let peak = speed.peak;
        [peak.fp32, peak.tf32, peak.fp16, peak.bf16].map(|it| (it / 1e11).round() / 10.0)
    }

    #[test]
    fn peaks_are_those_of_data_sheets() {
        assert_eq!(teraflops("a100-80gb")[1..], [155.9, 311.9, 311.9]);
        assert_eq!(teraflops("t4"), [8.1, 0.0, 65.1, 0.0]);
        assert_eq!(teraflops("rtx-3090"), [35.6, 35.6, 71.2, 71.2]);
        assert_eq!(teraflops("l40s")[2..], [366.4, 366.4]);
    }

    #[test]
    fn a_gtx_16_has_no_tensor_cores() {
        let card = Catalog::built_in().gpu("gtx-1650-laptop").unwrap();
        assert!(!card.has_tensor_cores());
        let peak = card.speed().peak;
        assert_eq!(peak.fp16, peak.fp32);
        assert!(Catalog::built_in().gpu("rtx-2060-6gb").unwrap().has_tensor_cores());
    }
}
