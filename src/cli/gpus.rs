//! `vramfit gpus`: which cards there are profiles of, and all that is known of one.

use super::args::{GpusArgs, Show};
use super::output::{self, Output};
use crate::error::{Error, ExitStatus};
use crate::profile::Catalog;
use crate::profile::context::Range;
use crate::profile::gpu::{Fact, GpuProfile};

pub(super) fn run(
    args: &GpusArgs,
    catalog: &Catalog,
    output: &Output,
) -> Result<ExitStatus, Error> {
    match &args.show {
        Some(Show::Show { name, json: false }) => output.data(&facts(&catalog.gpu(name)?))?,
        Some(Show::Show { name, json: true }) => output.json(&catalog.gpu(name)?)?,
        None if args.json => output.json(&catalog.gpus()?)?,
        None => output.data(&list(&catalog.gpus()?))?,
    }
    Ok(ExitStatus::Done)
}

fn list(gpus: &[GpuProfile]) -> String {
    let rows = gpus.iter().map(|gpu| {
        vec![
            gpu.name.clone(),
            gpu.total_memory.value.to_string(),
            gpu.usable_memory.value.to_string(),
            gpu.compute_capability.value.to_string(),
            gpu.multiprocessors.value.to_string(),
            gpu.segment.name().to_owned(),
        ]
    });
    output::table(&["name", "memory", "usable", "cc", "SMs", "segment"], 1..5, rows)
}

/// Everything a profile states, each fact with how it is known.
fn facts(gpu: &GpuProfile) -> String {
    let bit = |bits: &u32| format!("{bits} bit");
    let megahertz = |clock: &u32| format!("{clock} MHz");
    let watts = |power: &u32| format!("{power} W");
    let Range { low, high } = gpu.context_range();
    let mut rows = vec![
        row("compute capability", &gpu.compute_capability, ToString::to_string),
        row("multiprocessors", &gpu.multiprocessors, ToString::to_string),
        row("total memory", &gpu.total_memory, |size| size.exact()),
        row("usable memory", &gpu.usable_memory, |size| size.exact()),
        row("context", &gpu.context, |size| format!("{size} ({low} to {high})")),
        row("L2 cache", &gpu.l2_cache, |size| size.exact()),
        row("memory bus", &gpu.memory_bus, bit),
        row("bandwidth", &gpu.bandwidth, |rate| format!("{rate} GB/s")),
        row("boost clock", &gpu.boost_clock, megahertz),
        row("power", &gpu.power, watts),
    ];
    rows.extend(gpu.lowest_boost_clock.iter().map(|it| row("lowest boost clock", it, megahertz)));
    rows.extend(gpu.lowest_power.iter().map(|it| row("lowest power", it, watts)));
    let mut text = format!("{}: {}, {}\n", gpu.name, gpu.product, gpu.architecture);
    if !gpu.aliases.is_empty() {
        text += &format!("also called {}\n", gpu.aliases.join(", "));
    }
    text += &format!("\n{}", output::table(&["fact", "value", "basis", "source"], 1..1, rows));
    if !gpu.notes.is_empty() {
        text += &format!("\n\n{}", gpu.notes);
    }
    text
}

fn row<T>(name: &str, fact: &Fact<T>, show: impl Fn(&T) -> String) -> Vec<String> {
    vec![name.to_owned(), show(&fact.value), fact.basis.name().to_owned(), fact.source.clone()]
}
