//! Virtual time: what the device takes for what it is given.

use vramfit_vgpu_cost::Work;

/// The current device does what is called `name`.
pub(crate) fn run(_name: &str, _work: &Work) {}
