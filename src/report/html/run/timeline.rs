//! What each process held of a device as it went on.

use maud::{Markup, html};
use vramfit_vgpu_schema::{Report, TimelinePoint};

use super::super::page::{Table, cell, figure, numbers};
use super::super::plot::{Axis, Described, area, plot, steps, up};
use super::super::scale::{Scale, size};
use super::MOST;
use super::memory::title;
use crate::report::run::RunDocument;
use crate::units::{Bytes, count};

/// Launches too few to be an axis.
const FEW: u64 = 60;
/// Rows of the table.
const ROWS: usize = 24;

/// None where nothing was held.
pub(super) fn of(document: &RunDocument<'_>) -> Option<Markup> {
    let lines = || {
        document.processes.iter().flat_map(|report| {
            (0..report.process_peak.len()).filter_map(move |ordinal| {
                let points = points(report, ordinal);
                (points.len() > 1).then_some((report, ordinal, points))
            })
        })
    };
    let all = lines().count();
    (all > 0).then(|| {
        html! {
            @for (index, (report, ordinal, points)) in lines().take(MOST).enumerate() {
                @if all > 1 { h3 { (title(report, ordinal, document)) } }
                (of_process(index, &points, document))
            }
        }
    })
}

fn points(report: &Report, ordinal: usize) -> Vec<&TimelinePoint> {
    report.timeline.iter().filter(|point| point.device as usize == ordinal).collect()
}

fn of_process(index: usize, points: &[&TimelinePoint], document: &RunDocument<'_>) -> Markup {
    let launches = points.iter().map(|point| point.launches).max().unwrap_or(0);
    // Of a program that hardly launches anything its allocations are the axis.
    let by_launches = launches > FEW;
    let last = if by_launches { launches } else { points.len() as u64 };
    let x = Scale::between(0.0, last as f64);
    let name = if by_launches { "kernel launches" } else { "changes" };
    let peak = Bytes(points.iter().map(|point| point.used_bytes).max().unwrap_or(0));
    let near = peak.get() as f64 > document.budget.get() as f64 * 0.4;
    let top = if near { peak.max(document.budget) } else { peak };
    let y = Scale::from_zero(size(top));
    let at = |(index, point): (usize, &&TimelinePoint)| {
        let place = if by_launches { point.launches } else { index as u64 };
        (x.place(place as f64), y.place(point.used_bytes as f64))
    };
    let mut places: Vec<_> = points.iter().enumerate().map(at).collect();
    // Until its end it holds what it held.
    places.extend(places.last().map(|(_, held)| (100.0, *held)));
    let id = format!("timeline-{index}");
    let described = Described {
        id: &id,
        title: "Memory of the process over its run",
        description: format!("At most {peak}, over {} {name}.", count(last)),
    };
    let y_axis = Axis { name: "held of the GPU", ticks: y.sizes() };
    let limit = up(y.place(size(document.budget)));
    let chart = plot(
        &described,
        &Axis { name, ticks: x.numbers() },
        &y_axis,
        &html! {
            (area("held", &places))
            (steps("held-line", &places))
            @if near {
                line .limit x1="0" x2="100%" y1=(limit) y2=(limit) {}
                text .limit-name x="6" y=(limit) dy="-6" { "budget " (document.budget) }
            }
        },
    );
    let words = html! {
        "All that the process held, context included, over the kernels that it launched."
        @if !near { " The budget of " (document.budget) " lies far above." }
    };
    figure(&chart, &html! {}, &words, &table(points, name, by_launches))
}

/// The most in each of some stretches of the run.
fn table(points: &[&TimelinePoint], name: &str, by_launches: bool) -> Markup {
    let size = points.len().div_ceil(ROWS).max(1);
    let row = |(index, chunk): (usize, &[&TimelinePoint])| {
        let most = chunk.iter().map(|point| point.used_bytes).max().unwrap_or(0);
        let until = match (by_launches, chunk.last()) {
            (true, Some(last)) => last.launches,
            _ => (index * size + chunk.len()) as u64,
        };
        vec![cell(count(until)), cell(Bytes(most).to_string())]
    };
    Table {
        caption: "Memory of the process over its run",
        columns: vec![numbers(format!("{name} until")), numbers("held at most")],
        rows: points.chunks(size).enumerate().map(row).collect(),
        marked: None,
    }
    .render()
}
