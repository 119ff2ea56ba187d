//! `vramfit models`: what can be planned for without writing a model.

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
        Some(Show::Show { name, json: false }) => output.data(&facts(&catalog.model(name)?))?,
        Some(Show::Show { name, json: true }) => output.json(&catalog.model(name)?)?,
        None if args.json => output.json(&catalog.models()?)?,
        None => output.data(&list(&catalog.models()?))?,
    }
    Ok(ExitStatus::Done)
}

fn list(models: &[ModelProfile]) -> String {
    let rows = models.iter().map(|model| {
        let context = model.architecture.max_sequence().map(|tokens| tokens.to_string());
        vec![
            model.name.clone(),
            model.architecture.family().to_owned(),
            parameters(model.parameters),
            context.unwrap_or_else(|| "-".to_owned()),
            model.description.clone(),
        ]
    });
    output::table(&["name", "family", "parameters", "context", "description"], 2..4, rows)
}

/// Everything a profile states; the dimensions by the names they have in the file.
fn facts(model: &ModelProfile) -> String {
    let family = model.architecture.family();
    let mut rows = vec![
        vec!["family".to_owned(), family.to_owned()],
        vec!["parameters".to_owned(), model.parameters.to_string()],
    ];
    let architecture = serde_json::to_value(&model.architecture).unwrap_or_default();
    let dimensions = architecture.get(family).and_then(Value::as_object);
    rows.extend(dimensions.into_iter().flatten().map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        vec![name.replace('_', " "), value]
    }));
    rows.push(vec!["source".to_owned(), model.source.clone()]);
    let table = output::table(&["fact", "value"], 1..1, rows);
    format!("{}: {}\n\n{table}", model.name, model.description)
}

/// A count of parameters as people say it.
fn parameters(count: u64) -> String {
    match count as f64 {
        billions if billions >= 1e9 => format!("{:.2} B", billions / 1e9),
        millions if millions >= 1e6 => format!("{:.1} M", millions / 1e6),
        thousands => format!("{:.1} k", thousands / 1e3),
    }
}
