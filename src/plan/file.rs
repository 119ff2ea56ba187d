use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::check::contradiction;
use super::{PLAN_VERSION, Plan};
use crate::error::{Error, ErrorKind};

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
    let plan = serde_json::from_str(&text).map_err(broken)?;
    match contradiction(&plan) {
        None => Ok(plan),
        Some(reason) => Err(ErrorKind::BrokenPlan { path: path(), reason }.into()),
    }
}
