//! Several lengths of context beside each other.

use maud::{Markup, html};

use super::super::page::{Table, cell, numbers, words};
use super::setting;
use crate::plan::{Context, Plan, Speed};
use crate::report::contexts::{answer, failures, gained, longest, reference, steps};

/// None where one length was asked for.
pub(super) fn of(plan: &Plan) -> Option<Markup> {
    let contexts = plan.contexts.as_ref()?;
    let reference = reference(contexts);
    let is_reference = |context: &Context| reference.is_some_and(|it| it.tokens == context.tokens);
    let row = |context: &Context| {
        let gain = reference.filter(|_| !is_reference(context)).and_then(|it| gained(context, it));
        match &context.choice {
            Some(choice) => vec![
                cell(context.tokens.to_string()),
                cell(steps(choice).replace(" x ", "\u{a0}×\u{a0}")),
                cell(setting(choice, plan)),
                cell(choice.memory.device_peak.to_string()),
                cell(choice.speed.as_ref().map_or_else(|| "-".to_owned(), Speed::tokens)),
                cell(gain.unwrap_or_default()),
            ],
            None => {
                let none = || cell("-");
                let answer = cell(answer(context, contexts.limit));
                vec![cell(context.tokens.to_string()), none(), answer, none(), none(), cell("")]
            }
        }
    };
    let gain = reference.map_or_else(String::new, |it| format!("against {}", it.tokens));
    let table = Table {
        caption: "What a shorter context buys",
        columns: vec![
            numbers("tokens"),
            numbers("micro-batch × steps"),
            words("setting"),
            numbers("device peak"),
            numbers("tokens/s"),
            words(gain),
        ],
        rows: contexts.lengths.iter().map(row).collect(),
        marked: contexts.lengths.iter().position(is_reference),
    };
    let said = failures(contexts).into_iter().chain(longest(contexts, plan));
    Some(html! {
        (table.render())
        @for text in said { p .note { (super::step::capital(&text)) "." } }
    })
}
