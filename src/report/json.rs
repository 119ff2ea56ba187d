use super::Report;
use crate::plan::Plan;

/// The document itself; its schema is `docs/schema/plan.schema.json`.
pub(super) struct Json;

impl Report for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn render(&self, plan: &Plan) -> String {
        // All keys are text and all numbers finite or null, so this cannot fail.
        serde_json::to_string_pretty(plan).unwrap_or_default()
    }
}
