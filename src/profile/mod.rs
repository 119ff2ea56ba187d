//! What is known of GPUs and models: data files, their types, and finding one by name.

pub mod gpu;
pub mod model;
