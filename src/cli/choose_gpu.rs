//! Which GPU is meant: a real one of this machine, or a virtual one by its profile's name.

use super::args::DeviceArgs;
use super::output::Output;
use crate::device::{Gpu, Platform, RealGpu, RealGpus, Setup, VirtualGpu};
use crate::error::{Error, ErrorKind};
use crate::profile::Catalog;
use crate::profile::gpu::{ComputeCapability, GpuProfile};

/// Planned for where there is no GPU and none is named: the smallest card that people still train
/// on, so that what fits it fits nearly everywhere.
pub(super) const DEFAULT: &str = "rtx-3050-laptop-4gb";

/// What the flags say of the GPU's memory.
pub(super) fn setup(args: &DeviceArgs) -> Setup {
    Setup {
        vram: args.vram,
        platform: args.platform.map_or_else(Platform::here, Platform::from),
        reserve: args.reserve,
        margin: args.margin,
    }
}

/// A GPU that is meant; a virtual one is not laid out yet.
pub(super) enum Chosen {
    /// A card of this machine.
    Real(RealGpu),
    /// A card that a profile describes.
    Virtual(Box<GpuProfile>),
}

impl Chosen {
    /// Name on the command line.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Real(card) => &card.uuid,
            Self::Virtual(profile) => &profile.name,
        }
    }

    /// CUDA compute capability.
    pub(super) fn compute_capability(&self) -> ComputeCapability {
        match self {
            Self::Real(card) => card.compute_capability,
            Self::Virtual(profile) => profile.compute_capability.value,
        }
    }

    /// Makes it ready for use, with `ranks` of its kind for a command that trains on several.
    ///
    /// # Errors
    /// When nothing of its memory is left to plan with, a virtual GPU cannot be laid out, or a real
    /// one is asked to be several.
    pub(super) fn open(self, setup: Setup, ranks: u32) -> Result<Gpu, Error> {
        match self {
            Self::Real(_) if ranks > 1 => Err(ErrorKind::SeveralRealGpus { ranks }.into()),
            Self::Real(card) => Ok(Gpu::Real(card)),
            Self::Virtual(profile) => {
                VirtualGpu::several(&profile, setup, ranks).map(Box::new).map(Gpu::Virtual)
            }
        }
    }
}

/// Finds the GPU that is meant. A virtual one is taken only by name, or where there is no real one.
///
/// # Errors
/// When nothing is called so, or the driver is broken.
pub(super) fn choose(
    args: &DeviceArgs,
    catalog: &Catalog,
    output: &Output,
) -> Result<Chosen, Error> {
    let setup = setup(args);
    if args.gpu == "auto" {
        if let Some(gpus) = RealGpus::find()? {
            return gpus.open(0, setup).map(Chosen::Real);
        }
        output.say(&format!(
            "no NVIDIA GPU found: using the virtual {DEFAULT}; `--gpu NAME` chooses another"
        ));
        return catalog.gpu(DEFAULT).map(Box::new).map(Chosen::Virtual);
    }
    if names_a_real_card(&args.gpu) {
        return real(&args.gpu, setup)?.map(Chosen::Real).ok_or_else(|| not_here(&args.gpu));
    }
    match catalog.gpu(&args.gpu) {
        // Perhaps a product name as the driver prints it.
        Err(error) if matches!(error.kind(), ErrorKind::UnknownName { .. }) => {
            real(&args.gpu, setup).ok().flatten().map(Chosen::Real).ok_or(error)
        }
        found => found.map(Box::new).map(Chosen::Virtual),
    }
}

/// As [`choose`]; none where nothing is chosen and there is no real GPU.
///
/// # Errors
/// As [`choose`].
pub(super) fn choose_if_any(
    args: &DeviceArgs,
    catalog: &Catalog,
    output: &Output,
) -> Result<Option<Chosen>, Error> {
    if args.gpu == "auto" && args.vram.is_none() && RealGpus::find()?.is_none() {
        return Ok(None);
    }
    choose(args, catalog, output).map(Some)
}

/// `count` virtual GPUs of that name, also where there is a real one; `auto` is the default card.
///
/// # Errors
/// As [`Catalog::gpu`] and [`Chosen::open`].
pub(super) fn open_virtual(
    name: &str,
    catalog: &Catalog,
    setup: Setup,
    count: u32,
) -> Result<VirtualGpu, Error> {
    let name = if name == "auto" { DEFAULT } else { name };
    VirtualGpu::several(&catalog.gpu(name)?, setup, count)
}

/// The card of this machine that is meant; `auto` is the first.
///
/// # Errors
/// When there is none, or none of that name, or the driver is broken.
pub(super) fn open_real(name: &str) -> Result<RealGpu, Error> {
    let Some(gpus) = RealGpus::find()? else { return Err(ErrorKind::NoRealGpu.into()) };
    let index = if name == "auto" { Some(0) } else { gpus.named(name) };
    match index {
        Some(index) => gpus.open(index, Setup::default()),
        None => Err(not_here(name)),
    }
}

fn real(name: &str, setup: Setup) -> Result<Option<RealGpu>, Error> {
    let Some(gpus) = RealGpus::find()? else { return Ok(None) };
    let Some(index) = gpus.named(name) else { return Ok(None) };
    gpus.open(index, setup).map(Some)
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
