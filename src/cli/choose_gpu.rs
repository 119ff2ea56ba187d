//! Which GPU is meant: a real one of this machine, or a virtual one by its profile's name.

use super::args::DeviceArgs;
use super::output::Output;
use crate::device::{Gpu, RealGpus, Setup, VirtualGpu};
use crate::error::{Error, ErrorKind};
use crate::profile::Catalog;

/// Planned for where there is no GPU and none is named: the smallest card that people still train
/// on, so that what fits it fits nearly everywhere.
const DEFAULT: &str = "rtx-3050-laptop-4gb";

/// What the flags say of the GPU's memory.
pub(super) fn setup(args: &DeviceArgs) -> Setup {
    Setup { vram: args.vram, reserve: args.reserve, margin: args.margin }
}

/// Opens the GPU that is meant. A virtual one is opened only by name, or where there is no real one.
///
/// # Errors
/// When nothing is called so, the driver is broken, or nothing of the memory is left to plan with.
pub(super) fn open(args: &DeviceArgs, catalog: &Catalog, output: &Output) -> Result<Gpu, Error> {
    let setup = setup(args);
    if args.gpu == "auto" {
        if let Some(gpus) = RealGpus::find()? {
            return gpus.open(0, setup).map(Gpu::Real);
        }
        output.say(&format!(
            "no NVIDIA GPU found: using the virtual {DEFAULT}; `--gpu NAME` chooses another"
        ));
        return open_virtual(DEFAULT, catalog, setup);
    }
    if names_a_real_card(&args.gpu) {
        return open_real(&args.gpu, setup)?.ok_or_else(|| not_here(&args.gpu));
    }
    match open_virtual(&args.gpu, catalog, setup) {
        // Perhaps a product name as the driver prints it.
        Err(error) if matches!(error.kind(), ErrorKind::UnknownName { .. }) => {
            open_real(&args.gpu, setup).ok().flatten().ok_or(error)
        }
        opened => opened,
    }
}

/// Opens a virtual GPU, also where there is a real one.
///
/// # Errors
/// As [`open`].
pub(super) fn open_virtual(name: &str, catalog: &Catalog, setup: Setup) -> Result<Gpu, Error> {
    let name = if name == "auto" { DEFAULT } else { name };
    VirtualGpu::new(&catalog.gpu(name)?, setup).map(Gpu::Virtual)
}

fn open_real(name: &str, setup: Setup) -> Result<Option<Gpu>, Error> {
    let Some(gpus) = RealGpus::find()? else { return Ok(None) };
    let Some(index) = gpus.named(name) else { return Ok(None) };
    gpus.open(index, setup).map(Gpu::Real).map(Some)
}

/// An index or a UUID; no profile is called so.
fn names_a_real_card(name: &str) -> bool {
    name.starts_with("GPU-") || name.chars().all(|character| character.is_ascii_digit())
}

fn not_here(name: &str) -> Error {
    let error =
        Error::new(ErrorKind::UnknownName { what: "GPU in this machine", name: name.to_owned() });
    let cards = RealGpus::find().ok().flatten().map_or_else(Vec::new, |gpus| gpus.list());
    match cards.as_slice() {
        [] => error.hint("there is no NVIDIA GPU here; `vramfit gpus` lists virtual ones"),
        cards => cards.iter().fold(error, |error, (index, uuid, product)| {
            error.hint(format!("`{index}` is {product}, {uuid}"))
        }),
    }
}
