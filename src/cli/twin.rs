//! The virtual GPU that is made after a card.

use crate::device::{Gpu, RealGpu, VIRTUAL_SUFFIX, VirtualGpu, twin_profile};
use crate::error::Error;
use crate::profile::Catalog;
use crate::profile::gpu::GpuProfile;

/// The virtual twin of a real card, with the card's own budget.
///
/// # Errors
/// When the virtual GPU's library or folder is not to be had.
pub(super) fn of(gpu: &Gpu, catalog: &Catalog) -> Result<Gpu, Error> {
    let profile = match gpu {
        Gpu::Virtual(gpu) => gpu.profile().clone(),
        Gpu::Real(card) => {
            let twin = twin_profile(card, profile_of(card, catalog)?.as_ref());
            if twin.calibration.is_some() { twin } else { catalog.calibrated(twin)? }
        }
    };
    VirtualGpu::with_budget(&profile, gpu.budget(), gpu.count()).map(Box::new).map(Gpu::Virtual)
}

/// The profile of a real card, where there is one.
///
/// # Errors
/// When a profile is broken.
pub(super) fn profile_of(card: &RealGpu, catalog: &Catalog) -> Result<Option<GpuProfile>, Error> {
    // A virtual card that stands in for a real one is of the same kind.
    let product = card.product.trim_end_matches(VIRTUAL_SUFFIX);
    catalog.match_product(product, card.budget.total, card.multiprocessors)
}
