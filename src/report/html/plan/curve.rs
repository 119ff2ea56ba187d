//! How a setting looks in charts: precision by colour and mark, checkpointing by the dashes of its line.

use super::super::plot::Mark;
use crate::measurement::Setting;
use crate::plan::Plan;
use crate::report::table;
use crate::workload::{Checkpointing, Precision};

/// The mark of a setting's points.
pub(super) fn mark(setting: Setting) -> Mark {
    match setting.precision {
        Precision::Fp32 | Precision::AsIs => Mark::Circle,
        Precision::Tf32 => Mark::Square,
        Precision::Bf16 => Mark::Diamond,
        Precision::Fp16 => Mark::Triangle,
    }
}

/// In a key: precision and checkpointing.
pub(super) fn name(setting: Setting, plan: &Plan) -> String {
    match (setting.precision, setting.checkpointing) {
        (Precision::AsIs, _) | (_, Checkpointing::AsIs) => setting.to_string(),
        (precision, checkpointing) => {
            format!("{precision}, {}", table::checkpointing(checkpointing, plan))
        }
    }
}

/// Classes of whatever belongs to a setting.
pub(super) fn classes(setting: Setting) -> String {
    let dashes = match setting.checkpointing {
        Checkpointing::None | Checkpointing::AsIs => "whole",
        Checkpointing::Full => "dashed",
        _ => "dotted",
    };
    format!("in-{} {dashes}", setting.precision)
}
