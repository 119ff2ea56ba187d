//! Whether virtual GPUs work, tried out: one is laid out, and the worker started on it.

use std::time::Duration;

use super::python::STAND_IN;
use crate::device::{Gpu, Setup, VirtualGpu};
use crate::doctor::machine::{VirtualGpus, Worker};
use crate::error::{Error, one_line};
use crate::probe::{Interrupt, Workers};
use crate::profile::Catalog;

/// How long the worker may take to be ready.
const LIMIT: Duration = Duration::from_secs(120);

pub(super) fn virtual_gpus(catalog: &Catalog, interrupt: &Interrupt) -> VirtualGpus {
    let laid_out =
        catalog.gpu(STAND_IN).and_then(|profile| VirtualGpu::new(&profile, Setup::default()));
    let gpu = match laid_out {
        Ok(gpu) => Gpu::Virtual(Box::new(gpu)),
        Err(error) => {
            return VirtualGpus {
                failure: Some(one_line(&error.to_string())),
                remedy: error.hints().first().cloned(),
                ..VirtualGpus::default()
            };
        }
    };
    let (worker, worker_failure) = match worker(&gpu, interrupt) {
        Ok(worker) => (Some(worker), None),
        Err(error) => (None, Some(one_line(&error.to_string()))),
    };
    VirtualGpus { worker, worker_failure, ..VirtualGpus::default() }
}

fn worker(gpu: &Gpu, interrupt: &Interrupt) -> Result<Worker, Error> {
    let hello = Workers::built_in(Some(LIMIT), interrupt.clone()).hello(gpu)?;
    Ok(Worker { torch: hello.torch, cuda: hello.cuda, cudnn: hello.cudnn })
}
