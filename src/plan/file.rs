use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::{PLAN_VERSION, Plan};
use crate::error::{Error, ErrorKind};

/// Writes a plan as indented JSON.
///
/// # Errors
/// When the file cannot be written.
pub fn write(plan: &Plan, path: &Path) -> Result<(), Error> {
    serde_json::to_string_pretty(plan)
        .map_err(std::io::Error::from)
        .and_then(|text| fs::write(path, text + "\n"))
        .map_err(|source| ErrorKind::Unwritable { path: path.to_path_buf(), source }.into())
}

/// Reads a plan.
///
/// # Errors
/// When the file cannot be read, is of another version, cut off, or no plan at all.
pub fn read(path: &Path) -> Result<Plan, Error> {
    #[derive(Deserialize)]
    struct Version {
        plan_version: u64,
    }

    let path = || path.to_path_buf();
    let broken = |reason: serde_json::Error| {
        Error::from(ErrorKind::BrokenPlan { path: path(), reason: reason.to_string() })
    };
    let text = fs::read_to_string(path())
        .map_err(|source| ErrorKind::Unreadable { path: path(), source })?;
    // The version first: a plan of another one need not have the fields of this.
    let Version { plan_version: found } = serde_json::from_str(&text).map_err(broken)?;
    if found != u64::from(PLAN_VERSION) {
        return Err(ErrorKind::PlanVersion { path: path(), found, expected: PLAN_VERSION }.into());
    }
    serde_json::from_str(&text).map_err(broken)
}
