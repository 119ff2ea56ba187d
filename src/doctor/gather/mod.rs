//! Finding the facts out. Nothing here fails: what cannot be found out is a fact too.

mod nvml;
mod pci;
mod python;
mod system;
mod virtual_gpus;

use std::path::{Path, PathBuf};
use std::thread;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use super::machine::{Access, Driver, GpuFacts, Machine, System};
use crate::device::{NvmlFault, nvml_words};
use crate::probe::Interrupt;
use crate::profile::Catalog;

/// Where facts are looked for; a test has places of its own.
#[derive(Clone, Copy)]
pub struct Reach<'a> {
    /// What stands before `/proc`, `/sys` and `/dev`.
    pub root: &'a Path,
    /// Values of environment variables.
    pub variable: &'a (dyn Fn(&str) -> Option<String> + Sync),
    /// Opens NVML, which wakes sleeping GPUs.
    pub nvml: &'a dyn Fn() -> Result<Nvml, NvmlError>,
    /// Whether the sleeping GPUs of these names may be woken.
    pub wakes: &'a dyn Fn(&[String]) -> bool,
    /// The Python that vramfit runs.
    pub python: &'a Path,
    /// Profiles of cards.
    pub catalog: &'a Catalog,
    /// Begins to listen to Ctrl-C, once nothing is asked any more: it ends what takes long.
    pub listens: &'a dyn Fn() -> Interrupt,
}

impl Reach<'_> {
    fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }
}

/// Looks around.
pub fn gather(reach: Reach<'_>) -> Machine {
    let (system, driver, gpus) = surroundings(&reach);
    // CUDA would wake what NVML was not to wake.
    let opens = driver.nvml == Access::Answers;
    // Both start PyTorch, which takes seconds.
    let (Reach { python, catalog, .. }, interrupt) = (reach, (reach.listens)());
    let (python, virtual_gpus) = thread::scope(|scope| {
        let python = scope.spawn(|| python::python(python, catalog, opens, &interrupt));
        let virtual_gpus = virtual_gpus::virtual_gpus(catalog, &interrupt);
        (python.join(), virtual_gpus)
    });
    let python = python.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Machine { system, driver, gpus, python, virtual_gpus }
}

/// What is known without starting anything. It is looked first for GPUs that sleep: opening NVML
/// would wake them.
fn surroundings(reach: &Reach<'_>) -> (System, Driver, Vec<GpuFacts>) {
    let system = system::system(reach);
    let on_bus = pci::gpus(reach);
    let asleep: Vec<_> = on_bus.iter().filter(|gpu| gpu.asleep).map(name).collect();
    let (mut driver, gpus) = match asleep.is_empty() || (reach.wakes)(&asleep) {
        true => asked(reach, on_bus),
        false => (driver(Access::NotAsked), on_bus),
    };
    driver.module = system::module_version(reach);
    driver.library = system::library_version(reach);
    (system, driver, gpus)
}

fn name(gpu: &GpuFacts) -> String {
    match &gpu.product {
        Some(product) => product.clone(),
        None => gpu.label(),
    }
}

/// What NVML says, and the cards on the bus that it does not speak of.
fn asked(reach: &Reach<'_>, on_bus: Vec<GpuFacts>) -> (Driver, Vec<GpuFacts>) {
    let nvml = match (reach.nvml)() {
        Ok(nvml) => nvml,
        Err(error) => return (driver(fails(&error)), on_bus),
    };
    let mut found = Driver {
        version: nvml.sys_driver_version().ok(),
        cuda: nvml
            .sys_cuda_driver_version()
            .ok()
            .map(|version| format!("{}.{}", version / 1000, version % 1000 / 10)),
        ..driver(Access::Answers)
    };
    let gpus = match nvml::gpus(&nvml, reach) {
        Ok(gpus) => gpus,
        Err(error) => {
            found.nvml = fails(&error);
            Vec::new()
        }
    };
    (found, merged(gpus, on_bus))
}

/// NVML's cards, each with what the bus says of it, and then those that only the bus knows.
fn merged(mut gpus: Vec<GpuFacts>, on_bus: Vec<GpuFacts>) -> Vec<GpuFacts> {
    for card in on_bus {
        let known = gpus.iter_mut().find(|gpu| gpu.pci.is_some() && gpu.pci == card.pci);
        match known {
            Some(gpu) => {
                gpu.kernel_driver = card.kernel_driver;
                if gpu.product.is_none() {
                    gpu.product = card.product;
                    gpu.profiles = card.profiles;
                }
            }
            None => gpus.push(GpuFacts { asleep: false, ..card }),
        }
    }
    gpus
}

fn driver(nvml: Access) -> Driver {
    Driver { nvml, version: None, cuda: None, module: None, library: None }
}

fn fails(error: &NvmlError) -> Access {
    let (reason, remedy) = nvml_words(error);
    Access::Fails { fault: NvmlFault::of(error), reason, remedy: remedy.map(str::to_owned) }
}

#[cfg(test)]
mod tests;
