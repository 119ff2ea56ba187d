use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::{PLAN_VERSION, Plan};
use crate::error::{Error, ErrorKind};
use crate::workload::Goal;

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
    let plan: Plan = serde_json::from_str(&text).map_err(broken)?;
    match contradiction(&plan) {
        None => Ok(plan),
        Some(reason) => Err(ErrorKind::BrokenPlan { path: path(), reason }.into()),
    }
}

/// What no plan of ours says, and what would be divided by later.
fn contradiction(plan: &Plan) -> Option<String> {
    let Goal { target_batch, world_size, .. } = plan.goal;
    if target_batch == 0 || world_size == 0 || !target_batch.is_multiple_of(world_size) {
        return Some(format!("a target batch of {target_batch} for {world_size} GPUs"));
    }
    let choice = plan.recommendation.as_ref()?;
    (choice.micro_batch == 0 || choice.micro_batch > plan.goal.per_gpu())
        .then(|| format!("it recommends a micro-batch of {}", choice.micro_batch))
}
