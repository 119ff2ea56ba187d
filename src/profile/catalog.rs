//! Finding a profile: by name, or by what a real card says of itself.

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

use super::calibration::{self, Calibration};
use super::gpu::GpuProfile;
use super::model::ModelProfile;
use super::shelf::Shelf;
use crate::error::Error;
use crate::units::Bytes;

static BUILT_IN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/profiles");

/// All profiles: those built in, and the user's own, which stand before them.
#[derive(Debug)]
pub struct Catalog {
    gpus: Shelf<GpuProfile>,
    models: Shelf<ModelProfile>,
    calibrations: Shelf<Calibration>,
}

impl Catalog {
    /// The profiles built in and those of the user's folder: `$VRAMFIT_PROFILES`, or else
    /// `$XDG_CONFIG_HOME/vramfit/profiles` (`~/.config/vramfit/profiles`).
    ///
    /// # Errors
    /// When a file of the user's folder cannot be read or is no profile.
    pub fn load() -> Result<Self, Error> {
        match users_folder() {
            Some(folder) => Self::with_folder(&folder),
            None => Ok(Self::built_in()),
        }
    }

    /// The profiles built in, and nothing else.
    pub fn built_in() -> Self {
        Self {
            gpus: Shelf::new("GPU", "gpus", BUILT_IN.get_dir("gpus")),
            models: Shelf::new("model", "models", BUILT_IN.get_dir("models")),
            calibrations: Shelf::new("calibration", "gpus", BUILT_IN.get_dir("calibrations")),
        }
    }

    /// The profiles built in, after those in `folder/gpus` and `folder/models`.
    ///
    /// # Errors
    /// When a file of the folder cannot be read or is no profile. A folder that is not there is
    /// no error.
    pub fn with_folder(folder: &Path) -> Result<Self, Error> {
        let mut catalog = Self::built_in();
        catalog.gpus.add_folder(&folder.join("gpus"))?;
        catalog.models.add_folder(&folder.join("models"))?;
        catalog.calibrations.add_folder(&folder.join("calibrations"))?;
        Ok(catalog)
    }

    /// The GPU named `name`.
    ///
    /// # Errors
    /// When there is none, with the nearest name as a hint.
    pub fn gpu(&self, name: &str) -> Result<GpuProfile, Error> {
        self.calibrated(self.gpus.get(name)?)
    }

    /// The model named `name`.
    ///
    /// # Errors
    /// When there is none, with the nearest name as a hint.
    pub fn model(&self, name: &str) -> Result<ModelProfile, Error> {
        self.models.get(name)
    }

    /// All GPUs, sorted by name, without their calibrations.
    ///
    /// # Errors
    /// When a profile is broken.
    pub fn gpus(&self) -> Result<Vec<GpuProfile>, Error> {
        self.gpus.all()
    }

    /// `gpu` with the constants of its cost model: the user's own come before those built in.
    ///
    /// # Errors
    /// When a calibration is broken.
    pub fn calibrated(&self, gpu: GpuProfile) -> Result<GpuProfile, Error> {
        let calibration = calibration::choose(self.calibrations.all()?, &gpu);
        Ok(GpuProfile { calibration, ..gpu })
    }

    /// All models, sorted by name.
    ///
    /// # Errors
    /// When a profile is broken.
    pub fn models(&self) -> Result<Vec<ModelProfile>, Error> {
        self.models.all()
    }

    /// The profile of a real card, by what its driver says: one product name stands on cards of
    /// several sizes (RTX 3080, 10 and 12 GB), and a laptop may bear its desktop sister's name (GTX
    /// 1650, 16 and 14 multiprocessors), so all three are compared. None when no profile is of such
    /// a card.
    ///
    /// `total_memory` is NVML's total; within 7 % is taken as the same, since ECC and old drivers
    /// take up to one sixteenth of it.
    ///
    /// # Errors
    /// When a profile is broken.
    pub fn match_product(
        &self,
        product: &str,
        total_memory: Bytes,
        multiprocessors: Option<u32>,
    ) -> Result<Option<GpuProfile>, Error> {
        let distance = |gpu: &GpuProfile| gpu.total_memory.value.get().abs_diff(total_memory.get());
        let alike = |gpu: &GpuProfile| {
            gpu.goes_by(product)
                && multiprocessors.is_none_or(|count| count == gpu.multiprocessors.value)
                && distance(gpu) <= total_memory.percent(7.0).get()
        };
        let found = self.gpus()?.into_iter().filter(alike).min_by_key(distance);
        found.map(|gpu| self.calibrated(gpu)).transpose()
    }
}

fn users_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("VRAMFIT_PROFILES").or_else(|| {
        let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
        Some(config.join("vramfit").join("profiles"))
    })
}
