//! A real card beside its virtual twin: which points are tried on both, what came back, and by how
//! much the twin is off, as one versioned document.

mod difference;
mod document;
mod file;
mod points;

pub use difference::{Difference, Errors, Order, Spread, StepDifference, StepSpread, Summary};
pub use document::{COMPARISON_VERSION, Card, Compared, Comparison, Side, Skipped, Twin};
pub use file::{read, write};
pub use points::{Group, Level, groups};
