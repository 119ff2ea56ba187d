//! What was held at the last look, by where it was made.

use maud::{Markup, html};

use super::super::page::{Table, cell, numbers, words};
use super::View;
use crate::units::count;
use crate::watch::{Event, KeptAt};

/// Rows.
const ROWS: usize = 16;

/// None where nobody looked.
pub(super) fn of(view: &View<'_>) -> Option<Markup> {
    let last = view.recording.entries.iter().rev().find_map(|entry| match &entry.event {
        Event::Kept { step, places, .. } if !places.is_empty() => Some((*step, places)),
        _ => None,
    });
    let (step, places) = last?;
    let row = |kept: &KeptAt| {
        vec![
            html! {
                (if kept.operator.is_empty() { "-" } else { &kept.operator })
                @if let Some(module) = &kept.module { " " small { "in " (module) } }
            },
            cell(if kept.place.is_empty() { "-" } else { &kept.place }),
            cell(count(kept.blocks)),
            cell(kept.bytes.to_string()),
        ]
    };
    let table = Table {
        caption: "What is kept, by where it was made",
        columns: vec![words("made by"), words("line"), numbers("tensors"), numbers("size")],
        rows: places.iter().take(ROWS).map(row).collect(),
        marked: None,
    };
    Some(html! {
        p { "Held after step " (count(step)) ", by where it was made: the largest, and what has grown most." }
        (table.render())
    })
}
