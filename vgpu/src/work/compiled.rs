//! Kernels that Triton compiled, of Inductor and of packages.

use super::Rule;
use super::signature::Signature;

pub(super) fn rule(_signature: &Signature) -> Option<Rule> {
    None
}
