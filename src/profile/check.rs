//! What a profile must be, beyond being well formed.

use super::gpu::{Fact, GpuProfile};
use super::model::ModelProfile;

/// A profile that can contradict itself.
pub(super) trait Check {
    /// Name on the command line.
    fn name(&self) -> &str;

    /// The first contradiction, in words, if there is one.
    fn contradiction(&self) -> Option<String>;
}

impl Check for GpuProfile {
    fn name(&self) -> &str {
        &self.name
    }

    fn contradiction(&self) -> Option<String> {
        let Self { total_memory, usable_memory, context, .. } = self;
        if usable_memory.value > total_memory.value {
            return Some(format!(
                "usable memory of {} exceeds the total of {}",
                usable_memory.value, total_memory.value
            ));
        }
        if context.value >= usable_memory.value {
            return Some(format!(
                "a context of {} leaves nothing of {} usable",
                context.value, usable_memory.value
            ));
        }
        if self.product.trim().is_empty() {
            return Some("`product` is empty".to_owned());
        }
        let unsourced = [
            ("compute_capability", sourced(&self.compute_capability)),
            ("multiprocessors", sourced(&self.multiprocessors)),
            ("total_memory", sourced(total_memory)),
            ("usable_memory", sourced(usable_memory)),
            ("context", sourced(context)),
            ("l2_cache", sourced(&self.l2_cache)),
            ("memory_bus", sourced(&self.memory_bus)),
            ("bandwidth", sourced(&self.bandwidth)),
            ("boost_clock", sourced(&self.boost_clock)),
            ("power", sourced(&self.power)),
        ];
        if let Some((fact, _)) = unsourced.into_iter().find(|(_, sourced)| !sourced) {
            return Some(format!("`{fact}` has no source"));
        }
        let zero = [
            ("multiprocessors", self.multiprocessors.value == 0),
            ("memory_bus", self.memory_bus.value == 0),
            ("boost_clock", self.boost_clock.value == 0),
            ("power", self.power.value == 0),
            ("bandwidth", self.bandwidth.value.is_nan() || self.bandwidth.value <= 0.0),
        ];
        let (fact, _) = zero.into_iter().find(|(_, zero)| *zero)?;
        Some(format!("`{fact}` must be above zero"))
    }
}

fn sourced<T>(fact: &Fact<T>) -> bool {
    !fact.source.trim().is_empty()
}

impl Check for ModelProfile {
    fn name(&self) -> &str {
        &self.name
    }

    fn contradiction(&self) -> Option<String> {
        if self.parameters == 0 {
            return Some("`parameters` must be above zero".to_owned());
        }
        if self.source.trim().is_empty() {
            return Some("`source` is empty".to_owned());
        }
        None
    }
}
