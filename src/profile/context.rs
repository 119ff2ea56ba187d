//! The CUDA context: what a process holds on a GPU beyond what PyTorch's allocator took.
//!
//! Two parts. **The bare context** is there before anything is launched, and is nearly all local
//! memory: the driver sets it aside for as many threads as the GPU can hold at once. Contexts that
//! were read alone give it (`docs/profiles.md`, "The CUDA context"): an RTX 4060 Ti, an RTX 6000 Ada
//! and an RTX PRO 6000 lie within 4 MiB of [`bare`], and an A100 and an RTX 4090 keep below it.
//! **Handles and kernels** come with the first call of cuBLAS or cuDNN and with each kernel, which is
//! loaded when it is first launched. Nobody has published them one by one; out-of-memory messages of
//! eleven programs on cards that are known leave 6 to 147 MiB beyond the bare context, half of them
//! less than 60.

use super::gpu::{Basis, Fact, GpuProfile};
use super::limits::Limits;
use crate::units::Bytes;

/// Of the bare context: whatever the GPU.
const FIXED: Bytes = Bytes::mib(7);
/// Of the bare context: for each thread that can be resident.
const PER_THREAD: u64 = 2000;
/// Handles and kernels: the least and the most that was seen, and what a profile reckons with.
const LEAST: Bytes = Bytes::mib(6);
const MOST: Bytes = Bytes::mib(150);
const USUAL: Bytes = Bytes::mib(64);

/// The sizes between which a context is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least, in bytes.
    pub low: Bytes,
    /// The most, in bytes.
    pub high: Bytes,
}

/// A context in which nothing was launched yet, in bytes.
pub fn bare(gpu: &GpuProfile) -> Bytes {
    let limits = Limits::of(gpu.compute_capability.value);
    let threads = u64::from(gpu.multiprocessors.value) * u64::from(limits.threads.unsigned_abs());
    FIXED + Bytes(threads * PER_THREAD)
}

/// What a profile says of a context that nobody has read off such a card, in whole MiB.
pub fn inferred(gpu: &GpuProfile) -> Fact<Bytes> {
    let bytes = bare(gpu) + USUAL;
    Fact {
        value: Bytes::mib(bytes.get() >> 20),
        basis: Basis::Inferred,
        source: "resident threads x 2000 B + 7 MiB, and 64 MiB of handles and kernels".to_owned(),
    }
}

impl GpuProfile {
    /// The sizes between which the context of a PyTorch process is expected. The profile's own figure
    /// is always among them.
    pub fn context_range(&self) -> Range {
        let (bare, figure) = (bare(self), self.context.value);
        Range { low: (bare + LEAST).min(figure), high: (bare + MOST).max(figure) }
    }

    /// How much larger than the profile's figure the context may be, in bytes.
    pub fn context_uncertainty(&self) -> Bytes {
        self.context_range().high.saturating_sub(self.context.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Catalog;

    fn gpu(name: &str) -> GpuProfile {
        Catalog::built_in().gpu(name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Card, what was read in MiB, source. See `docs/profiles.md`.
    const READ_ALONE: [(&str, u64); 3] =
        [("rtx-4060-ti-8gb", 107), ("rtx-6000-ada", 426), ("rtx-pro-6000", 555)];
    const WITH_KERNELS: [(&str, u64); 10] = [
        ("rtx-a500-laptop", 70),
        ("t4", 96),
        ("t4", 128),
        ("t4", 133),
        ("t4", 143),
        ("rtx-a4000", 210),
        ("rtx-6000-ada", 429),
        ("rtx-5090", 614),
        ("h200", 670),
        ("b200", 712),
    ];

    #[test]
    fn contexts_that_were_read_alone_are_as_the_rule_says() {
        for (name, mib) in READ_ALONE {
            let off = bare(&gpu(name)).get().abs_diff(Bytes::mib(mib).get());
            assert!(Bytes(off) <= Bytes::mib(4), "{name}: {}", bare(&gpu(name)));
        }
    }

    #[test]
    fn contexts_of_programs_lie_in_the_range_of_their_card() {
        for (name, mib) in WITH_KERNELS {
            let Range { low, high } = gpu(name).context_range();
            assert!(
                low <= Bytes::mib(mib + 1) && Bytes::mib(mib) <= high,
                "{name}: {mib}, {low} to {high}"
            );
        }
    }
}
