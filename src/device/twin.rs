use super::RealGpu;
use crate::profile::context;
use crate::profile::gpu::{Basis, Fact, GpuProfile, Segment};
use crate::units::Bytes;

/// The profile of a real card's virtual twin: what NVML and CUDA tell, and for the rest the card's
/// profile where there is one.
pub fn twin_profile(real: &RealGpu, known: Option<&GpuProfile>) -> GpuProfile {
    let multiprocessors = real
        .multiprocessors
        .unwrap_or_else(|| known.map_or(16, |profile| profile.multiprocessors.value));
    let clock = real.clock.unwrap_or_else(|| known.map_or(1500, |known| known.boost_clock.value));
    let power = real.power_limit.map(|milliwatts| milliwatts / 1000);
    let mut twin = GpuProfile {
        name: real.uuid.clone(),
        product: real.product.clone(),
        aliases: Vec::new(),
        segment: known.map_or(Segment::Desktop, |profile| profile.segment),
        architecture: known.map_or_else(String::new, |profile| profile.architecture.clone()),
        compute_capability: observed(real.compute_capability),
        multiprocessors: observed(multiprocessors),
        total_memory: observed(real.budget.total),
        usable_memory: observed(real.budget.usable),
        context: known.map_or_else(|| inferred(Bytes::ZERO), |profile| profile.context.clone()),
        l2_cache: known.map_or_else(|| inferred(Bytes::mib(4)), |known| known.l2_cache.clone()),
        memory_bus: known.map_or_else(|| inferred(256), |known| known.memory_bus.clone()),
        bandwidth: known.map_or_else(|| inferred(400.0), |known| known.bandwidth.clone()),
        boost_clock: observed(clock),
        power: match (power, known) {
            (Some(power), _) => observed(power),
            (None, Some(profile)) => profile.power.clone(),
            (None, None) => inferred(100),
        },
        notes: String::new(),
        calibration: known.and_then(|profile| profile.calibration.clone()),
    };
    if known.is_none() {
        twin.context = context::inferred(&twin);
    }
    twin
}

fn observed<T>(value: T) -> Fact<T> {
    Fact { value, basis: Basis::Observed, source: "NVML on this machine".to_owned() }
}

fn inferred<T>(value: T) -> Fact<T> {
    Fact { value, basis: Basis::Inferred, source: "no profile of this card".to_owned() }
}
