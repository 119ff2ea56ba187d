//! What the time on the GPU went to, by the cost model.

use maud::{Markup, html};
use vramfit_vgpu_schema::{Report, Time};

use super::super::page::{Table, cell, figure, numbers, words};
use super::super::plot::Described;
use super::super::stack::{Piece, bar, keys, swatch};
use super::MOST;
use super::memory::title;
use crate::report::run::RunDocument;
use crate::report::time::{kernels, parts, seconds, short};

/// Kernels that are named.
const KERNELS: usize = 8;

/// None where nothing was launched.
pub(super) fn of(document: &RunDocument<'_>) -> Option<Markup> {
    let used = || {
        document.processes.iter().flat_map(|report| {
            let times = report.time.iter().enumerate().filter(|(_, time)| time.total > 0.0);
            times.map(move |(ordinal, time)| (report, ordinal, time))
        })
    };
    let count = used().count();
    (count > 0).then(|| {
        html! {
            @for (index, (report, ordinal, time)) in used().take(MOST).enumerate() {
                @if count > 1 { h3 { (title(report, ordinal, document)) } }
                (of_process(index, report, time))
            }
        }
    })
}

fn of_process(index: usize, report: &Report, time: &Time) -> Markup {
    let parts: Vec<_> = parts(time).into_iter().filter(|(part, _)| *part > 0.0).collect();
    let all: f64 = parts.iter().map(|part| part.0).sum();
    let piece = |(part, name): &(f64, &'static str)| Piece {
        name,
        share: part / all * 100.0,
        size: seconds(*part),
    };
    let pieces: Vec<_> = parts.iter().map(piece).collect();
    let said: Vec<_> = pieces.iter().map(|it| format!("{} {}", it.name, it.size)).collect();
    let id = format!("time-{index}");
    let described = Described {
        id: &id,
        title: "Where the time on the GPU goes",
        description: format!("Of {}: {}.", seconds(time.total), said.join(", ")),
    };
    let row = |(part, name): &(f64, &'static str)| {
        vec![swatch(name), cell(seconds(*part)), cell(format!("{:.0} %", part / all * 100.0))]
    };
    let numbers_of_parts = Table {
        caption: "Where the time on the GPU goes",
        columns: vec![words("part"), numbers("time"), numbers("share")],
        rows: parts.iter().map(row).collect(),
        marked: None,
    };
    let row = |(name, share): &(&str, f64)| {
        vec![html! { code { (short(name)) } }, cell(format!("{share:.0} %"))]
    };
    let costliest = Table {
        caption: "Costliest kernels",
        columns: vec![words("kernel"), numbers("of the work")],
        rows: kernels(report).iter().take(KERNELS).map(row).collect(),
        marked: None,
    };
    let numbers = html! {
        (numbers_of_parts.render())
        @if !costliest.rows.is_empty() { (costliest.render()) }
    };
    let words = html! {
        (seconds(time.total)) " from the first launch to the end of the last, by the cost model."
    };
    figure(&bar(&described, &pieces), &keys(&pieces), &words, &numbers)
}
