//! The step with the highest use of memory, and what was in use then.

use maud::{Markup, html};

use super::super::page::{Table, cell, figure, numbers, words};
use super::super::plot::{Axis, Described, area, percent, plot, steps, up};
use super::super::scale::{Scale, size};
use super::super::stack::swatch;
use crate::snapshot::{Kept, Peak, Phase, Sample};
use crate::units::{Bytes, count};

/// Places of a curve, at most.
const PLACES: usize = 600;
/// Bands narrower than this, in hundredths, bear no name.
const NAMED: f64 = 20.0;
/// Rows of what was in use.
const ROWS: usize = 16;
/// What is less than this part of all is not shown by itself.
const LEAST: f64 = 0.002;
/// Characters of a line of code that are shown.
const CODE: usize = 44;

/// Samples of one phase in a row: its place and theirs.
struct Band {
    phase: Phase,
    places: Vec<(f64, f64)>,
}

/// The allocator's memory over that step.
pub(super) fn step(index: usize, peak: &Peak) -> Markup {
    let wanted = peak.wanted.unwrap_or(Bytes::ZERO);
    let most = Bytes(peak.bytes.get().saturating_add(wanted.get()));
    let x = Scale::between(0.0, peak.samples.len() as f64);
    let y = Scale::from_zero(size(most));
    let bands = bands(&peak.samples, x, y);
    let at = x.place(peak.at as f64);
    let phases = phases(&peak.samples);
    let said: Vec<_> =
        phases.iter().map(|(phase, most)| format!("{} {most}", phase.name())).collect();
    let id = format!("step-{index}");
    let described = Described {
        id: &id,
        title: "Memory that tensors hold over the step with the peak",
        description: format!("At most, by phase: {}.", said.join(", ")),
    };
    let x_axis = Axis { name: "events of the allocator", ticks: x.numbers() };
    let y_axis = Axis { name: "held by tensors", ticks: y.sizes() };
    let end = if at > 60.0 { "end" } else { "start" };
    let offset = if at > 60.0 { "-8" } else { "8" };
    let chart = plot(
        &described,
        &x_axis,
        &y_axis,
        &html! {
            @for band in &bands {
                g .{ "in-" (band.phase.name()) } {
                    (area("held", &band.places))
                    (steps("held-line", &band.places))
                }
            }
            line .at-peak x1=(percent(at)) x2=(percent(at)) y1=(up(y.place(size(most)))) y2="100%" {}
            @if peak.wanted.is_some() {
                line .wanted x1=(percent(at)) x2=(percent(at))
                    y1=(up(y.place(size(most)))) y2=(up(y.place(size(peak.bytes)))) {}
            }
            text .limit-name .peak-name[peak.wanted.is_none()] x=(percent(at)) y=(up(y.place(size(most)))) dx=(offset) dy="4"
                text-anchor=(end) {
                @match peak.wanted {
                    Some(wanted) => { "no room for " (wanted) },
                    None => { "peak " (peak.bytes) },
                }
            }
            @for band in &bands {
                @let (from, until) = ends(band);
                @if until - from >= NAMED {
                    // The last one's is held by the edge.
                    @let (place, anchor) = if until > 99.0 { (until, "end") } else { ((from + until) / 2.0, "middle") };
                    text .band-name x=(percent(place)) y="100%" dx=(if anchor == "end" { "-4" } else { "0" }) dy="-10"
                        text-anchor=(anchor) { (band.phase.name()) }
                }
            }
        },
    );
    let key = html! {
        ul .keys {
            @for (phase, most) in &phases {
                li { (swatch(phase.name())) span .size { (most) } }
            }
        }
    };
    let words = html! {
        "What tensors hold of PyTorch's allocator, as it was asked for, from the end of the optimizer step \
         before to the end of the next. Phases are told by the calls that each allocation came from; beside \
         each is the most in it."
        @if !peak.is_whole { " The record begins in the midst of the run." }
    };
    figure(&chart, &key, &words, &table(&phases))
}

/// In the order in which they come.
fn phases(samples: &[Sample]) -> Vec<(Phase, Bytes)> {
    let mut phases: Vec<(Phase, Bytes)> = Vec::new();
    for sample in samples {
        match phases.iter_mut().find(|known| known.0 == sample.phase) {
            Some(known) => known.1 = known.1.max(sample.bytes),
            None => phases.push((sample.phase, sample.bytes)),
        }
    }
    phases
}

/// Of the samples, as many as can be told apart; each the highest of its share.
fn bands(samples: &[Sample], x: Scale, y: Scale) -> Vec<Band> {
    let share = samples.len().div_ceil(PLACES).max(1);
    let mut bands: Vec<Band> = Vec::new();
    for (index, chunk) in samples.chunks(share).enumerate() {
        let Some(highest) = chunk.iter().max_by_key(|sample| sample.bytes) else { continue };
        let place = (x.place((index * share) as f64), y.place(size(highest.bytes)));
        match bands.last_mut().filter(|band| band.phase == highest.phase) {
            Some(band) => band.places.push(place),
            None => {
                // A band goes on to where the next begins.
                if let Some(band) = bands.last_mut() {
                    let held = band.places.last().map_or(0.0, |last| last.1);
                    band.places.push((place.0, held));
                }
                bands.push(Band { phase: highest.phase, places: vec![place] });
            }
        }
    }
    if let Some(band) = bands.last_mut() {
        let held = band.places.last().map_or(0.0, |last| last.1);
        band.places.push((100.0, held));
    }
    bands
}

fn ends(band: &Band) -> (f64, f64) {
    let end = |place: Option<&(f64, f64)>| place.map_or(0.0, |place| place.0);
    (end(band.places.first()), end(band.places.last()))
}

fn table(phases: &[(Phase, Bytes)]) -> Markup {
    let row = |(phase, most): &(Phase, Bytes)| vec![cell(phase.name()), cell(most.to_string())];
    Table {
        caption: "Memory that tensors hold, by phase",
        columns: vec![words("phase"), numbers("held at most")],
        rows: phases.iter().map(row).collect(),
        marked: None,
    }
    .render()
}

/// By operator, module and line, the largest first.
pub(super) fn kept(peak: &Peak) -> Markup {
    let all = peak.bytes.get().max(1) as f64;
    let row = |kept: &Kept| {
        let share = kept.bytes.get() as f64 / all * 100.0;
        vec![
            html! {
                @match (&kept.operator, &kept.code) {
                    (Some(operator), _) => (operator),
                    (None, Some(code)) => code { (shortened(code)) },
                    (None, None) => (kept.phase.name()),
                }
                @if let Some(module) = &kept.module { " " small { "in " (module) } }
            },
            cell(kept.phase.name()),
            cell(kept.place.as_deref().unwrap_or("-")),
            cell(if kept.blocks > 0 { count(kept.blocks) } else { "-".to_owned() }),
            html! {
                span .measured { (kept.bytes) }
                svg .level aria-hidden="true" {
                    rect .empty width="100%" height="100%" {}
                    rect .full width=(percent(share)) height="100%" {}
                }
            },
        ]
    };
    let shown = peak.kept.iter().take(ROWS);
    let shown = shown.take_while(|kept| kept.bytes.get() as f64 >= all * LEAST).count();
    let mut rows: Vec<_> = peak.kept[..shown].iter().map(row).collect();
    let others = peak.kept[shown..].iter();
    let (bytes, blocks) =
        others.fold((0, 0), |(bytes, blocks), it| (bytes + it.bytes.get(), blocks + it.blocks));
    if bytes > 0 {
        let name = match peak.kept.len() - shown {
            1 => "1 other".to_owned(),
            rest => format!("{rest} others"),
        };
        let kept = Kept { operator: Some(name), bytes: Bytes(bytes), blocks, ..Kept::default() };
        let mut others = row(&kept);
        others[1] = cell("-");
        rows.push(others);
    }
    let table = Table {
        caption: "What was in use at the peak",
        columns: vec![
            words("made by"),
            words("phase"),
            words("line"),
            numbers("tensors"),
            words("size"),
        ],
        rows,
        marked: None,
    };
    html! {
        p {
            (peak.bytes) " in use"
            @if let Some(wanted) = peak.wanted {
                ", and no room for " (wanted) " more"
                @if let Some(at) = &peak.wanted_at { ", asked for " (asked(at)) }
            }
            ". Each row is what one operator made at one line of the program."
        }
        (table.render())
    }
}

fn shortened(code: &str) -> String {
    match code.char_indices().nth(CODE) {
        None => code.to_owned(),
        Some((end, _)) => format!("{}…", &code[..end]),
    }
}

/// Where something was asked for, in words.
fn asked(at: &Kept) -> String {
    let mut text = format!(
        "in {}",
        match at.phase {
            Phase::Other => "none of a step's phases".to_owned(),
            phase => format!("the {} pass", phase.name()).replace("optimizer pass", "optimizer"),
        }
    );
    if let Some(operator) = &at.operator {
        text += &format!(" by {operator}");
    }
    if let Some(module) = &at.module {
        text += &format!(" in {module}");
    }
    if let Some(place) = &at.place {
        text += &format!(" at {place}");
    }
    text
}
