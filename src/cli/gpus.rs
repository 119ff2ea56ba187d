//! `vramfit gpus`: which cards there are profiles of, and all that is known of one.

use comfy_table::CellAlignment;

use super::args::{GpusArgs, Show};
use super::output::{self, Output};
use crate::error::{Error, ExitStatus};
use crate::profile::Catalog;
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
    let mut table = output::table(&["name", "memory", "usable", "cc", "SMs", "segment"]);
    for gpu in gpus {
        table.add_row([
            gpu.name.clone(),
            gpu.total_memory.value.to_string(),
            gpu.usable_memory.value.to_string(),
            gpu.compute_capability.value.to_string(),
            gpu.multiprocessors.value.to_string(),
            gpu.segment.name().to_owned(),
        ]);
    }
    for column in 1..5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn facts(gpu: &GpuProfile) -> String {
    let mut table = output::table(&["fact", "value", "basis", "source"]);
    let mut row = |name: &str, value: String, basis: &str, source: &str| {
        table.add_row([name, &value, basis, source]);
    };
    fn of<T>(fact: &Fact<T>, value: String) -> (String, &'static str, &str) {
        (value, fact.basis.name(), &fact.source)
    }
    for (name, (value, basis, source)) in [
        (
            "compute capability",
            of(&gpu.compute_capability, gpu.compute_capability.value.to_string()),
        ),
        ("multiprocessors", of(&gpu.multiprocessors, gpu.multiprocessors.value.to_string())),
        ("total memory", of(&gpu.total_memory, gpu.total_memory.value.to_string())),
        ("usable memory", of(&gpu.usable_memory, gpu.usable_memory.value.to_string())),
        ("context", of(&gpu.context, gpu.context.value.to_string())),
        ("L2 cache", of(&gpu.l2_cache, gpu.l2_cache.value.to_string())),
        ("memory bus", of(&gpu.memory_bus, format!("{} bit", gpu.memory_bus.value))),
        ("bandwidth", of(&gpu.bandwidth, format!("{} GB/s", gpu.bandwidth.value))),
        ("boost clock", of(&gpu.boost_clock, format!("{} MHz", gpu.boost_clock.value))),
        ("power", of(&gpu.power, format!("{} W", gpu.power.value))),
    ] {
        row(name, value, basis, source);
    }
    let mut text = format!("{}: {}, {}\n", gpu.name, gpu.product, gpu.architecture);
    if !gpu.aliases.is_empty() {
        text += &format!("also called {}\n", gpu.aliases.join(", "));
    }
    text += &format!("\n{}", table.trim_fmt());
    if !gpu.notes.is_empty() {
        text += &format!("\n\n{}", gpu.notes);
    }
    text
}
