//! Findings in scripts, for a person, a program and a code host.

mod document;
mod sarif;
mod text;

pub use document::{LINT_SCHEMA, LintDocument, LintSummary};
pub use sarif::sarif;
pub use text::lint;
