//! `vramfit models`: what can be planned for without writing a model.

use comfy_table::CellAlignment;
use serde_json::Value;

use super::args::{ModelsArgs, Show};
use super::output::{self, Output};
use crate::error::{Error, ExitStatus};
use crate::profile::Catalog;
use crate::profile::model::ModelProfile;

pub(super) fn run(
    args: &ModelsArgs,
    catalog: &Catalog,
    output: &Output,
) -> Result<ExitStatus, Error> {
    match &args.show {
        Some(Show::Show { name, json: false }) => output.data(&text(&catalog.model(name)?))?,
        Some(Show::Show { name, json: true }) => output.json(&catalog.model(name)?)?,
        None if args.json => output.json(&catalog.models()?)?,
        None => output.data(&list(&catalog.models()?))?,
    }
    Ok(ExitStatus::Done)
}

fn list(models: &[ModelProfile]) -> String {
    let mut table = output::table(&["name", "family", "parameters", "context", "description"]);
    for model in models {
        let context = model.architecture.max_sequence().map(|tokens| tokens.to_string());
        table.add_row([
            model.name.clone(),
            model.architecture.family().to_owned(),
            millions(model.parameters),
            context.unwrap_or_else(|| "-".to_owned()),
            model.description.clone(),
        ]);
    }
    for column in 2..4 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// Everything a profile states; the dimensions by the names they have in the file.
fn text(model: &ModelProfile) -> String {
    let mut table = output::table(&["fact", "value"]);
    table.add_row(["family", model.architecture.family()]);
    table.add_row(["parameters", &model.parameters.to_string()]);
    let architecture = serde_json::to_value(&model.architecture).unwrap_or_default();
    let dimensions = architecture.get(model.architecture.family()).and_then(Value::as_object);
    for (name, value) in dimensions.into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        table.add_row([&name.replace('_', " "), &value]);
    }
    table.add_row(["source", &model.source]);
    format!("{}: {}\n\n{}", model.name, model.description, table.trim_fmt())
}

/// A count of parameters as people say it.
fn millions(parameters: u64) -> String {
    match parameters as f64 {
        billions if billions >= 1e9 => format!("{:.2} B", billions / 1e9),
        millions if millions >= 1e6 => format!("{:.1} M", millions / 1e6),
        thousands => format!("{:.1} k", thousands / 1e3),
    }
}
