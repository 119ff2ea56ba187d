//! What is known of GPUs and models: data files, their types, and finding one by name.

pub mod calibration;
mod catalog;
mod check;
pub mod context;
pub mod gpu;
pub(crate) mod limits;
pub mod model;
mod shelf;
pub(crate) mod speed;
pub mod uncertainty;

pub use catalog::Catalog;
