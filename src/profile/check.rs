//! What a profile must be, beyond being well formed.

use super::gpu::{Fact, GpuProfile};
use super::model::{Architecture, Decoder, Mlp, ModelProfile, Pinn, Resnet};

/// Beyond any dimension of any model, and small enough that products of two do not overflow.
const LARGEST_DIMENSION: u32 = 1 << 24;
/// Beyond any model: a hundred million million.
const MOST_PARAMETERS: u64 = 100_000_000_000_000;

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
            ("lowest_boost_clock", self.lowest_boost_clock.as_ref().is_none_or(sourced)),
            ("lowest_power", self.lowest_power.as_ref().is_none_or(sourced)),
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
        if let Some((fact, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            return Some(format!("`{fact}` must be above zero"));
        }
        let lowest = [
            ("lowest_boost_clock", &self.lowest_boost_clock, "boost_clock", &self.boost_clock),
            ("lowest_power", &self.lowest_power, "power", &self.power),
        ];
        for (name, low, top, high) in lowest {
            let Some(low) = low else { continue };
            if low.value == 0 || low.value > high.value {
                return Some(format!(
                    "`{name}` of {} is not from 1 to the `{top}` of {}",
                    low.value, high.value
                ));
            }
        }
        self.beyond_bounds()
    }
}

impl GpuProfile {
    /// A fact far beyond any card, which the driver's 32-bit fields could not state.
    fn beyond_bounds(&self) -> Option<String> {
        let capability = self.compute_capability.value;
        let facts = [
            ("compute_capability", u64::from(capability.major), 99),
            ("compute_capability", u64::from(capability.minor), 99),
            ("multiprocessors", u64::from(self.multiprocessors.value), 10_000),
            ("total_memory", self.total_memory.value.get(), 1 << 45),
            ("l2_cache", self.l2_cache.value.get(), (1 << 31) - 1),
            ("memory_bus", u64::from(self.memory_bus.value), 100_000),
            // In kHz it has to stay below 2³¹, and so has the power in milliwatts.
            ("boost_clock", u64::from(self.boost_clock.value), 100_000),
            ("power", u64::from(self.power.value), 100_000),
            ("bandwidth", self.bandwidth.value as u64, 1_000_000),
        ];
        if let Some((fact, value, most)) = facts.into_iter().find(|(_, value, most)| value > most) {
            return Some(format!("`{fact}` of {value} is beyond {most}"));
        }
        // As CUDA states it, with 8 bits to the byte and two transfers a tick.
        let clock = self.bandwidth.value * 4e6 / f64::from(self.memory_bus.value);
        (clock > f64::from(i32::MAX)).then(|| {
            let (bandwidth, bus) = (self.bandwidth.value, self.memory_bus.value);
            format!("`bandwidth` of {bandwidth} is beyond a `memory_bus` of {bus} bits")
        })
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
        ModelProfile::contradiction(self)
    }
}

impl ModelProfile {
    /// The first contradiction in it, in words, if there is one.
    pub(crate) fn contradiction(&self) -> Option<String> {
        if self.parameters == 0 {
            return Some("`parameters` must be above zero".to_owned());
        }
        if self.source.trim().is_empty() {
            return Some("`source` is empty".to_owned());
        }
        let dimensions = match &self.architecture {
            Architecture::Decoder(decoder) => decoder_dimensions(decoder),
            Architecture::Resnet(resnet) => resnet_dimensions(resnet),
            Architecture::Mlp(mlp) => mlp_dimensions(mlp),
            Architecture::Pinn(pinn) => pinn_dimensions(pinn),
        };
        if let Some((name, _)) = dimensions.iter().find(|(_, size)| *size == 0) {
            return Some(format!("`{name}` must be above zero"));
        }
        if let Some((name, size)) = dimensions.iter().find(|(_, size)| *size > LARGEST_DIMENSION) {
            return Some(format!("`{name}` of {size} is beyond {LARGEST_DIMENSION}"));
        }
        if self.parameters > MOST_PARAMETERS {
            return Some(format!(
                "`parameters` of {} is beyond {MOST_PARAMETERS}",
                self.parameters
            ));
        }
        match &self.architecture {
            Architecture::Decoder(decoder) => heads(decoder),
            Architecture::Pinn(pinn) if pinn.inputs < 2 => {
                Some("`inputs` must be at least 2: time and space".to_owned())
            }
            _ => None,
        }
    }
}

/// A dimension's name in the file, and its size.
type Dimension = (&'static str, u32);

fn decoder_dimensions(decoder: &Decoder) -> Vec<Dimension> {
    vec![
        ("vocabulary", decoder.vocabulary),
        ("context", decoder.context),
        ("hidden", decoder.hidden),
        ("layers", decoder.layers),
        ("heads", decoder.heads),
        ("kv_heads", decoder.kv_heads),
        ("head_dim", decoder.head_dim.unwrap_or(1)),
        ("feed_forward", decoder.feed_forward),
    ]
}

fn resnet_dimensions(resnet: &Resnet) -> Vec<Dimension> {
    let stages = resnet.stages.map(|blocks| ("stages", blocks));
    stages.into_iter().chain([("classes", resnet.classes), ("image", resnet.image)]).collect()
}

fn mlp_dimensions(mlp: &Mlp) -> Vec<Dimension> {
    let hidden = mlp.hidden.iter().map(|width| ("hidden", *width));
    hidden.chain([("inputs", mlp.inputs), ("outputs", mlp.outputs)]).collect()
}

fn pinn_dimensions(pinn: &Pinn) -> Vec<Dimension> {
    vec![
        ("inputs", pinn.inputs),
        ("width", pinn.width),
        ("depth", pinn.depth),
        ("points", pinn.points),
    ]
}

/// What attention asks of the widths of a decoder.
fn heads(decoder: &Decoder) -> Option<String> {
    let Decoder { hidden, heads, kv_heads, head_dim, dropout, .. } = *decoder;
    if head_dim.is_none() && hidden % heads != 0 {
        return Some(format!("`hidden` of {hidden} does not divide by {heads} `heads`"));
    }
    if heads % kv_heads != 0 {
        return Some(format!("{heads} `heads` do not divide by {kv_heads} `kv_heads`"));
    }
    if !(0.0..1.0).contains(&dropout) {
        return Some(format!("`dropout` of {dropout} is not from 0 up to 1"));
    }
    None
}
