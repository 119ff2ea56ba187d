//! What each means of saving memory buys and costs.

use maud::{Markup, html};

use super::super::page::{Table, cell, numbers, words};
use super::super::plot::percent;
use crate::plan::{Plan, Rung};
use crate::report::table::{self, speed};
use crate::units::Bytes;

/// None where no rung ran.
pub(super) fn of(plan: &Plan) -> Option<Markup> {
    let most = plan.ladder.iter().filter_map(|rung| rung.device_peak).max()?;
    let whole = most.max(plan.budget.budget);
    let at = plan.ladder.first().map_or(1, |rung| rung.micro_batch);
    let timed = plan.ladder.iter().any(|rung| rung.speed.is_some());
    let mut columns = vec![words("step"), words(format!("peak at micro-batch {at}"))];
    columns.push(numbers("memory"));
    columns.extend(timed.then(|| numbers("speed")));
    columns.extend([numbers("largest"), words("target")]);
    let before = std::iter::once(None).chain(plan.ladder.iter().map(Some));
    let row = |(rung, before): (&Rung, Option<&Rung>)| {
        let mut row = vec![
            html! {
                (table::step(rung.step))
                small { (table::setting(rung, plan)) }
            },
            peak(rung, whole),
            cell(minus(table::change(before.and_then(|it| it.device_peak), rung.device_peak))),
        ];
        row.extend(timed.then(|| {
            let before = before.and_then(|it| it.speed.as_ref());
            cell(minus(speed::change(before, rung.speed.as_ref())))
        }));
        let largest = rung.largest_micro_batch.map(|it| it.to_string());
        row.push(cell(largest.unwrap_or_else(|| "none".to_owned())));
        row.push(cell(if rung.reaches_target { "yes" } else { "no" }));
        row
    };
    let rows = plan.ladder.iter().zip(before).map(row).collect();
    let caption = "What each step buys";
    Some(html! {
        (Table { caption, columns, rows, marked: None }.render())
        p .note {
            "Each step on top of those above it; memory and speed are changes against the row above. "
            "Largest: the largest micro-batch that fits; target: whether the batch of "
            (plan.goal.target_batch) " is reached so."
        }
    })
}

/// With the sign that is as wide as a plus.
fn minus(change: String) -> String {
    change.replace('-', "−").replace("x ", "× ")
}

/// The size, and a bar of how much of the budget that is.
fn peak(rung: &Rung, whole: Bytes) -> Markup {
    let Some(peak) = rung.device_peak else { return cell("out of memory") };
    let share = peak.get() as f64 / whole.get().max(1) as f64 * 100.0;
    html! {
        span .measured { (peak) }
        svg .level aria-hidden="true" {
            rect .empty width="100%" height="100%" {}
            rect .full width=(percent(share)) height="100%" {}
        }
    }
}
