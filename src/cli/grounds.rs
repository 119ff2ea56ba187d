//! What a plan's numbers rest on: the real card, or PyTorch on a virtual one and what lies below it.

use crate::device::{Platform, RunReports, VirtualGpu};
use crate::plan::{Ground, Grounds};
use crate::profile::gpu::Fact;
use crate::profile::uncertainty::Uncertainty;
use crate::units::Bytes;

/// Of a plan that was verified on the card.
pub(super) fn on_the_card() -> Grounds {
    Grounds {
        allocated_peak: Ground::measured(),
        reserved_peak: Ground::measured(),
        device_peak: Ground::measured(),
        budget: Ground::measured(),
        step_time: Ground::measured(),
    }
}

/// Of a plan on a virtual GPU, by what its processes reported.
pub(super) fn on_virtual_gpu(gpu: &VirtualGpu, seen: &RunReports, platform: Platform) -> Grounds {
    let profile = gpu.profile();
    let mut below = seen.estimates.clone();
    let not_implemented = seen.not_implemented.iter();
    below.extend(not_implemented.map(|name| format!("`{name}` was called and is not implemented")));
    if !seen.internal_errors.is_empty() {
        below.push("the virtual GPU failed somewhere".to_owned());
    }
    if !seen.sizes.is_empty() {
        below.push("sizes depend on values that nobody knows".to_owned());
    }
    let context = stated("context", &profile.context);
    let usable = match platform.is_windows() {
        true => "on Windows CUDA's total is taken to be NVML's".to_owned(),
        false => stated("usable memory", &profile.usable_memory),
    };
    let Uncertainty { error, slowdown, basis } = profile.uncertainty();
    let mut of_time = vec![format!("{basis}: nine of ten within {:.0} %", error * 100.0)];
    of_time.push("the host's part is that of this machine".to_owned());
    if slowdown > 1.0 {
        of_time.push(format!("the clock is {slowdown:.2} times lower at the least power"));
    }
    Grounds {
        allocated_peak: Ground::exact_but_for(below.clone()),
        reserved_peak: Ground::exact_but_for(below.clone()),
        device_peak: Ground::exact_but_for([vec![context], below].concat()),
        budget: Ground::exact_but_for(vec![usable]),
        step_time: Ground::exact_but_for(of_time),
    }
}

fn stated(what: &str, fact: &Fact<Bytes>) -> String {
    let Fact { value, basis, source } = fact;
    format!("{what} of {value}, {}: {source}", basis.name())
}
