//! What was seen at each optimizer step.

use maud::{Markup, html};

use super::super::page::{Table, cell, figure, numbers, words};
use super::super::plot::{Axis, Described, line as curve, plot, steps};
use super::super::scale::{Scale, size};
use super::View;
use super::device::{line, time, x_axis};
use crate::units::{Bytes, count, duration};
use crate::watch::Step;

/// Processes that have lines of their own.
const MOST: usize = 4;
/// Rows of a table.
const ROWS: usize = 24;

type OfProcess<'a> = (u32, Vec<(f64, &'a Step)>);

/// What tensors hold after each step, and at most within it; none without steps.
pub(super) fn memory(view: &View<'_>) -> Option<Markup> {
    let view = &view.while_stepping();
    let processes = view.steps();
    are_several(&processes)?;
    let most = processes.iter().flat_map(|it| &it.1).map(|(_, step)| step.allocated_peak).max()?;
    let y = Scale::from_zero(size(most));
    let described = Described {
        id: "tensors",
        title: "Memory that tensors hold, step by step",
        description: format!("At most {most}."),
    };
    let places = |of: &OfProcess<'_>, value: fn(&Step) -> Bytes| -> Vec<_> {
        let values = of.1.iter().map(|(at, step)| (*at, size(value(step)))).collect();
        view.places(values, y)
    };
    let y_axis = Axis { name: "held by tensors", ticks: y.sizes() };
    let chart = plot(
        &described,
        &x_axis(view),
        &y_axis,
        &html! {
            (view.ranges())
            @for process in processes.iter().take(MOST) {
                (steps("peak-line", &places(process, |step| step.allocated_peak)))
                (steps("held-line", &places(process, |step| step.allocated)))
            }
        },
    );
    let key = html! {
        ul .keys {
            li { (line("peak-line")) "at most within a step" }
            li { (line("held-line")) "after a step" }
        }
    };
    let words = html! {
        "What tensors hold of PyTorch's allocator."
        @if processes.len() > 1 { " A line for each of " (processes.len().min(MOST)) " processes." }
    };
    Some(figure(&chart, &key, &words, &table(&processes)))
}

/// How long steps took; none where that is not known.
pub(super) fn times(view: &View<'_>) -> Option<Markup> {
    let view = &view.while_stepping();
    let processes = view.steps();
    are_several(&processes)?;
    let steps = processes.iter().flat_map(|it| &it.1);
    let most = steps.filter_map(|(_, step)| step.seconds).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let y = Scale::from_zero(most * 1000.0);
    // In milliseconds, as the axis is.
    let values = |of: &OfProcess<'_>, value: fn(&Step) -> Option<f64>| -> Vec<_> {
        of.1.iter().filter_map(|(at, step)| Some((*at, value(step)? * 1000.0))).collect()
    };
    let seconds = |of: &OfProcess<'_>| view.places(values(of, |step| step.seconds), y);
    let loader = |of: &OfProcess<'_>| view.places(values(of, |step| step.loader_seconds), y);
    let has_loader = processes.iter().any(|it| !loader(it).is_empty());
    let middle = median(&processes).unwrap_or(most);
    let said = format!("{} at the median, {} at most.", duration(middle, 3), duration(most, 3));
    let described = Described { id: "step-times", title: "Step times", description: said.clone() };
    let y_axis = Axis { name: "ms", ticks: y.numbers() };
    let chart = plot(
        &described,
        &x_axis(view),
        &y_axis,
        &html! {
            (view.ranges())
            @for process in processes.iter().take(MOST) {
                (curve("held-line", &seconds(process)))
                @if has_loader { (curve("loader-line", &loader(process))) }
            }
        },
    );
    let key = html! {
        ul .keys {
            li { (line("held-line")) "a step" }
            @if has_loader { li { (line("loader-line")) "of it, waiting for the loader" } }
        }
    };
    Some(figure(&chart, &key, &html! { (said) }, &table(&processes)))
}

/// One point is no line.
fn are_several(processes: &[OfProcess<'_>]) -> Option<()> {
    processes.iter().any(|it| it.1.len() > 1).then_some(())
}

/// Of the times of all steps.
pub(super) fn median(processes: &[OfProcess<'_>]) -> Option<f64> {
    let all = processes.iter().flat_map(|it| &it.1);
    let mut seconds: Vec<_> = all.filter_map(|(_, step)| step.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().filter(|seconds| *seconds > 0.0)
}

fn table(processes: &[OfProcess<'_>]) -> Markup {
    let many = processes.len() > 1;
    let rows = processes.iter().take(MOST).flat_map(|(pid, steps)| {
        let size = steps.len().div_ceil(ROWS / processes.len().clamp(1, MOST)).max(1);
        steps.chunks(size).filter_map(move |chunk| {
            let (at, last) = chunk.last()?;
            let longest = chunk.iter().filter_map(|it| it.1.seconds).fold(0.0, f64::max);
            let peak = chunk.iter().map(|it| it.1.allocated_peak).max()?;
            let mut row = vec![cell(count(last.step)), cell(time(*at))];
            if many {
                row.push(cell(pid.to_string()));
            }
            row.extend([
                cell(last.allocated.to_string()),
                cell(peak.to_string()),
                cell(if longest > 0.0 { duration(longest, 3) } else { "-".to_owned() }),
            ]);
            Some(row)
        })
    });
    let mut columns = vec![numbers("step"), numbers("at")];
    columns.extend(many.then(|| words("process")));
    columns.extend([numbers("tensors after"), numbers("at most"), numbers("longest step")]);
    Table { caption: "Steps", columns, rows: rows.collect(), marked: None }.render()
}
