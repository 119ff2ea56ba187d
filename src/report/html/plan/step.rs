//! One step of the recommended setting: what is live at the borders of its phases, and where its time
//! goes.

use maud::{Markup, html};

use super::super::page::{Table, cell, figure, numbers, words};
use super::super::plot::{Axis, Described, percent, plot, up};
use super::super::scale::{Scale, Tick, size};
use super::super::stack::{Part, Piece, bar, class, keys, swatch};
use crate::plan::{Choice, Plan};
use crate::report::table::speed;
use crate::units::{Bytes, duration};

/// Shares of a step's time, in hundredths, that can be seen.
const SEEN: f64 = 0.5;
/// How wide a column is, in hundredths of its place.
const COLUMN: f64 = 58.0;

/// A border between phases, and what is live there.
struct Border {
    name: &'static str,
    parts: Vec<Part>,
}

/// What is live at the borders of the phases; none where the parts are not known.
pub(super) fn memory(plan: &Plan) -> Option<Markup> {
    let choice = plan.recommendation.as_ref()?;
    let memory = &choice.memory;
    if memory.activations == Bytes::ZERO || memory.weights == Bytes::ZERO {
        return None;
    }
    let borders = borders(choice);
    let peak = memory.allocated_peak;
    let most = borders.iter().map(|border| total(&border.parts)).max()?.max(peak);
    let y = Scale::from_zero(size(most));
    let place = 100.0 / borders.len() as f64;
    let ticks = borders.iter().enumerate().map(|(index, border)| Tick {
        at: place * (index as f64 + 0.5),
        label: border.name.to_owned(),
    });
    let x = Axis { name: "at the end of each phase", ticks: ticks.collect() };
    let said = borders.iter().map(|it| format!("{}: {}", it.name, total(&it.parts)));
    let described = Described {
        id: "step",
        title: "Memory that tensors hold at the borders of a step's phases",
        description: format!(
            "{}. The highest within the step: {peak}.",
            said.collect::<Vec<_>>().join("; ")
        ),
    };
    let chart = plot(
        &described,
        &x,
        &Axis { name: "held by tensors", ticks: y.sizes() },
        &html! {
            @for (index, border) in borders.iter().enumerate() {
                (column(border, place * (index as f64 + (1.0 - COLUMN / 100.0) / 2.0), place, y))
            }
            line .at-peak x1="0" x2="100%" y1=(up(y.place(size(peak)))) y2=(up(y.place(size(peak)))) {}
            text .limit-name.peak-name x="100%" y=(up(y.place(size(peak)))) dy="-6" text-anchor="end" {
                "peak " (peak)
            }
        },
    );
    let micro_step = match choice.accumulation {
        1 => {
            "Tensors at the borders of a step's phases, as they were read while it ran; the last is after \
              the optimizer's step, gradients zeroed."
        }
        _ => {
            "Tensors at the borders of a micro-step's phases, as they were read while it ran. The \
              gradients of earlier micro-steps are there from its beginning; the last border is after the \
              optimizer's step, gradients zeroed."
        }
    };
    let rest = "The line is the highest in between, temporaries and workspaces included.";
    let key = html! {
        ul .keys {
            @for name in ["weights", "gradients", "optimizer state", "activations"] {
                li { (swatch(name)) }
            }
        }
    };
    Some(figure(&chart, &key, &html! { (micro_step) " " (rest) }, &table(&borders)))
}

/// By what each part is: weights and state stay, activations are gone after the backward pass,
/// gradients are there from then on, or from the first micro-step on.
fn borders(choice: &Choice) -> Vec<Border> {
    let memory = &choice.memory;
    let weights = ("weights", memory.weights);
    let gradients = ("gradients", memory.gradients);
    let state = ("optimizer state", memory.optimizer_state);
    let activations = ("activations", memory.activations);
    let accumulates = choice.accumulation > 1 || choice.remainder.is_some();
    let at_first = if accumulates { vec![weights, gradients, state] } else { vec![weights, state] };
    let forward = [at_first.as_slice(), &[activations]].concat();
    vec![
        Border { name: "before", parts: at_first },
        Border { name: "forward", parts: forward },
        Border { name: "backward", parts: vec![weights, gradients, state] },
        Border { name: "step", parts: vec![weights, state] },
    ]
}

fn total(parts: &[Part]) -> Bytes {
    parts.iter().map(|part| part.1).sum()
}

fn column(border: &Border, left: f64, place: f64, y: Scale) -> Markup {
    let mut below = Bytes::ZERO;
    html! {
        @for (name, bytes) in &border.parts {
            @let low = y.place(size(below));
            @let high = y.place(size(below + *bytes));
            ({ below = below + *bytes; "" })
            svg .(class(name)) x=(percent(left)) width=(percent(place * COLUMN / 100.0)) y=(up(high))
                height=(percent(high - low)) {
                rect .part width="100%" height="100%" {}
                title { (name) ": " (bytes) }
            }
        }
    }
}

fn table(borders: &[Border]) -> Markup {
    let names = ["weights", "gradients", "optimizer state", "activations"];
    let row = |border: &Border| {
        let of = |name: &str| {
            let known = border.parts.iter().find(|part| part.0 == name);
            cell(known.map_or_else(|| "-".to_owned(), |part| part.1.to_string()))
        };
        let mut row = vec![cell(border.name)];
        row.extend(names.map(of));
        row.push(cell(total(&border.parts).to_string()));
        row
    };
    let mut columns = vec![words("border")];
    columns.extend(names.map(numbers));
    columns.push(numbers("together"));
    let rows = borders.iter().map(row).collect();
    Table { caption: "Tensors at the borders of a step's phases", columns, rows, marked: None }
        .render()
}

/// What the time of a step goes to; none where it was measured, which does not tell.
pub(super) fn time(plan: &Plan) -> Option<Markup> {
    let choice = plan.recommendation.as_ref()?;
    let known = choice.speed.as_ref()?;
    let split = known.split?;
    let parts: Vec<_> =
        speed::parts(&split).into_iter().filter(|(share, _)| *share >= SEEN).collect();
    let said: Vec<_> = parts.iter().map(|(share, name)| format!("{share:.0} % {name}")).collect();
    let described = Described {
        id: "time",
        title: "Where the time of a step goes",
        description: format!("{}.", said.join(", ")),
    };
    let pieces = parts.iter().map(|(share, name)| Piece {
        name,
        share: *share,
        size: format!("{share:.0} %"),
    });
    let pieces: Vec<_> = pieces.collect();
    let chart = bar(&described, &pieces);
    let row = |(share, name): &(f64, &'static str)| {
        let seconds = split.total * share / 100.0;
        vec![
            swatch(name),
            cell(format!("{share:.0} %")),
            cell(duration(seconds, known.basis.digits())),
        ]
    };
    let numbers = Table {
        caption: "Where the time of a step goes",
        columns: vec![words("part"), numbers("share"), numbers("time")],
        rows: parts.iter().map(row).collect(),
        marked: None,
    };
    let advice = speed::advice(&split, choice).map(|it| format!("{}: {it}.", known.basis.word()));
    let advice = advice.unwrap_or_else(|| format!("{}.", known.basis.word()));
    Some(figure(&chart, &keys(&pieces), &html! { (capital(&advice)) }, &numbers.render()))
}

/// As a sentence begins.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
