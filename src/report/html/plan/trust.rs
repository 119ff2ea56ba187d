//! How the numbers are known, and how to get them again.

use maud::{Markup, html};

use super::super::page::{Table, cell, command, words};
use crate::measurement::EvidenceKind;
use crate::plan::{Ground, Level, Plan};
use crate::report::table;

pub(super) fn of(plan: &Plan, made_by: &str) -> Markup {
    let device = &plan.device;
    let kind = match device.kind {
        EvidenceKind::Real => "a real GPU",
        EvidenceKind::Virtual => "a virtual GPU",
    };
    html! {
        p { (super::step::capital(&table::evidence(plan))) }
        p {
            (device.product) ", " (kind) ", compute capability " (device.compute_capability) "."
        }
        (grounds(plan))
        p .note { "Made by" }
        (command(made_by))
    }
}

fn grounds(plan: &Plan) -> Markup {
    let grounds = &plan.grounds;
    let rows = [
        ("allocated peak", &grounds.allocated_peak),
        ("reserved peak", &grounds.reserved_peak),
        ("device peak", &grounds.device_peak),
        ("budget", &grounds.budget),
        ("step time", &grounds.step_time),
    ];
    let row = |(what, ground): (&str, &Ground)| {
        let because = html! {
            @for reason in &ground.because { p { (reason) } }
            @if ground.because.is_empty() { "-" }
        };
        vec![cell(what), cell(level(ground.level)), because]
    };
    Table {
        caption: "What the numbers rest on",
        columns: vec![words("number"), words("known"), words("because")],
        rows: rows.map(row).into(),
        marked: None,
    }
    .render()
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Measured => "measured",
        Level::Exact => "exact",
        Level::Estimated => "estimated",
    }
}
