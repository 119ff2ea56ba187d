//! What NVML told of a GPU over time.

use maud::{Markup, html};

use super::super::page::{Table, cell, figure, numbers};
use super::super::plot::{Axis, Described, area, plot, steps, up};
use super::super::scale::{Scale, size};
use super::View;
use crate::units::{Bytes, duration};
use crate::watch::{Gpu, Reading};

/// Rows of a table over time.
const ROWS: usize = 24;

/// Its memory; none where it was not read.
pub(super) fn memory(index: usize, gpu: &Gpu, view: &View<'_>) -> Option<Markup> {
    let readings = view.readings(gpu.index);
    let most = readings.iter().map(|(_, reading)| reading.used).max()?;
    let y = Scale::from_zero(size(most.max(gpu.total)));
    let places = |value: &dyn Fn(&Reading) -> Option<Bytes>| {
        let values = readings.iter().filter_map(|(at, it)| Some((*at, size(value(it)?)))).collect();
        view.places(values, y)
    };
    let all = places(&|reading| Some(reading.used));
    let own = places(&|reading| reading.process);
    let id = format!("gpu-{index}");
    let described = Described {
        id: &id,
        title: "Memory of the GPU over time",
        description: format!("At most {most} of {}, over {}.", gpu.total, time(view.until)),
    };
    let limit = up(y.place(size(gpu.total)));
    let y_axis = Axis { name: "held", ticks: y.sizes() };
    let chart = plot(
        &described,
        &x_axis(view),
        &y_axis,
        &html! {
            (view.ranges())
            (area("held", &all))
            (steps("held-line", &all))
            @if own.len() > 1 { (steps("own-line", &own)) }
            line .limit x1="0" x2="100%" y1=(limit) y2=(limit) {}
            text .limit-name x="6" y=(limit) dy="-6" { "all " (gpu.total) }
        },
    );
    let key = html! {
        ul .keys {
            li { (line("held-line")) "held by all" }
            @if own.len() > 1 { li { (line("own-line")) "by the program" } }
        }
    };
    let words = html! {
        "Held of the GPU, as NVML tells."
        @if gpu.held > Bytes::ZERO { " Before the program was started others held " (gpu.held) "." }
        @if !view.findings.is_empty() { " Letters mark the time of what was found." }
    };
    let row = |chunk: &[(f64, &Reading)]| {
        let most = |value: &dyn Fn(&Reading) -> Option<Bytes>| {
            let known = chunk.iter().filter_map(|(_, reading)| value(reading)).max();
            cell(known.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()))
        };
        let until = chunk.last().map_or(0.0, |(at, _)| *at);
        vec![cell(time(until)), most(&|it| Some(it.used)), most(&|it| it.process)]
    };
    let table = Table {
        caption: "Memory of the GPU over time",
        columns: vec![numbers("until"), numbers("by all at most"), numbers("by the program")],
        rows: readings.chunks(readings.len().div_ceil(ROWS).max(1)).map(row).collect(),
        marked: None,
    };
    Some(figure(&chart, &key, &words, &table.render()))
}

/// A value of a reading that has a strip of its own.
struct Strip {
    name: &'static str,
    unit: &'static str,
    value: fn(&Reading) -> Option<f64>,
    /// What it can be at most, where that is known.
    limit: Option<f64>,
}

/// Its other readings, a strip each; none of a GPU that tells none.
pub(super) fn strips(index: usize, gpu: &Gpu, view: &View<'_>) -> Option<Markup> {
    let readings = view.readings(gpu.index);
    let milli = |value: u32| f64::from(value) / 1000.0;
    let strips = [
        Strip {
            name: "utilisation",
            unit: "%",
            value: |it| it.utilisation.map(f64::from),
            limit: Some(100.0),
        },
        Strip {
            name: "clock",
            unit: "MHz",
            value: |it| it.clock.map(f64::from),
            limit: gpu.highest_clock.map(f64::from),
        },
        Strip {
            name: "temperature",
            unit: "°C",
            value: |it| it.temperature.map(f64::from),
            limit: None,
        },
        Strip {
            name: "power",
            unit: "W",
            value: |it| it.power.map(|power| f64::from(power) / 1000.0),
            limit: gpu.power_limit.map(milli),
        },
    ];
    let told: Vec<_> = strips
        .into_iter()
        .filter(|strip| readings.iter().filter_map(|(_, it)| (strip.value)(it)).count() > 1)
        .collect();
    (!told.is_empty()).then(|| {
        html! {
            div .strips {
                @for strip in &told { (self::strip(index, strip, &readings, view)) }
            }
            details {
                summary { "The numbers" }
                (table(&told, &readings))
            }
        }
    })
}

fn strip(index: usize, strip: &Strip, readings: &[(f64, &Reading)], view: &View<'_>) -> Markup {
    let values: Vec<_> =
        readings.iter().filter_map(|(at, it)| Some((*at, (strip.value)(it)?))).collect();
    let (least, most) = ends(values.iter().map(|value| value.1));
    let y = Scale::from_zero(most.max(strip.limit.unwrap_or(0.0)));
    let id = format!("{}-{index}", strip.name);
    let title = format!("{} in {} over time", strip.name, strip.unit);
    let described = Described {
        id: &id,
        title: &title,
        description: format!("From {least:.0} to {most:.0} {}.", strip.unit),
    };
    let places = view.places(values, y);
    let name = format!("{}, {}", strip.name, strip.unit);
    let y_axis = Axis { name: &name, ticks: y.few() };
    plot(
        &described,
        &x_axis(view),
        &y_axis,
        &html! {
            (view.ranges())
            @if let Some(limit) = strip.limit {
                @let at = up(y.place(limit));
                line .limit x1="0" x2="100%" y1=(at) y2=(at) {}
            }
            (steps("held-line", &places))
        },
    )
}

fn table(strips: &[Strip], readings: &[(f64, &Reading)]) -> Markup {
    let row = |chunk: &[(f64, &Reading)]| {
        let mut row = vec![cell(time(chunk.last().map_or(0.0, |(at, _)| *at)))];
        row.extend(strips.iter().map(|strip| {
            let values = || chunk.iter().filter_map(|(_, it)| (strip.value)(it));
            cell(match ends(values()) {
                _ if values().next().is_none() => "-".to_owned(),
                (least, most) if format!("{least:.0}") == format!("{most:.0}") => {
                    format!("{most:.0}")
                }
                (least, most) => format!("{least:.0} to {most:.0}"),
            })
        }));
        row
    };
    let named = strips.iter().map(|strip| numbers(format!("{}, {}", strip.name, strip.unit)));
    Table {
        caption: "Readings over time",
        columns: std::iter::once(numbers("until")).chain(named).collect(),
        rows: readings.chunks(readings.len().div_ceil(ROWS).max(1)).map(row).collect(),
        marked: None,
    }
    .render()
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(least, most), it| (least.min(it), most.max(it)))
}

/// Time since the program's start.
pub(super) fn x_axis<'a>(view: &View<'_>) -> Axis<'a> {
    Axis { name: "since the program's start", ticks: view.time.times() }
}

/// A piece of a line, for a key.
pub(super) fn line(class: &str) -> Markup {
    html! {
        svg .key viewBox="0 0 30 12" width="30" height="12" aria-hidden="true" {
            path class=(class) d="M0 6H30" {}
        }
    }
}

pub(super) fn time(seconds: f64) -> String {
    if seconds > 0.0 { duration(seconds, 3) } else { "0".to_owned() }
}
