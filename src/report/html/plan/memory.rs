//! The budget, and what takes it at the peak.

use maud::{Markup, html};

use super::super::page::figure;
use super::super::plot::{Described, percent};
use super::super::stack::{Part, bar, keys, pieces, table as parts_table};
use crate::plan::Plan;
use crate::report::table;
use crate::report::table::memory::{earlier, parts};
use crate::units::Bytes;

/// The whole board in one bar.
pub(super) fn of(plan: &Plan) -> Markup {
    let budget = &plan.budget;
    let mut shown: Vec<Part> = Vec::new();
    let mut words = table::budget(plan) + ".";
    if let Some(choice) = &plan.recommendation {
        let memory = &choice.memory;
        shown.extend(parts(memory).into_iter().filter(|part| part.1 > Bytes::ZERO));
        shown.push(("free", budget.budget.saturating_sub(memory.device_peak)));
        if let Some(earlier) = earlier(memory) {
            words += &format!(" Of the {}.", earlier);
        }
    } else {
        shown.push(("free", budget.budget));
    }
    shown.push(("margin", budget.margin));
    shown.push(("reserve", budget.reserve));
    shown.push(("held by others", budget.held_by_others));
    shown.push(("driver", budget.total.saturating_sub(budget.usable)));
    shown.retain(|part| part.1 > Bytes::ZERO);
    let said: Vec<_> = shown.iter().map(|(name, bytes)| format!("{name} {bytes}")).collect();
    let described = Described {
        id: "memory",
        title: "The GPU's memory at the peak",
        description: format!("Of {} on the board: {}.", budget.total, said.join(", ")),
    };
    let pieces = pieces(&shown, budget.total);
    let peak = plan.recommendation.as_ref().map(|choice| choice.memory.device_peak);
    let chart = html! {
        @if let Some(peak) = peak { (reach("peak", peak, budget.total)) }
        (bar(&described, &pieces))
        (reach("budget", budget.budget, budget.total))
    };
    let numbers = parts_table("Parts of the GPU's memory", &shown, budget.total, "of the board");
    figure(&chart, &keys(&pieces), &html! { (words) }, &numbers)
}

/// How far something reaches along the bar.
fn reach(name: &str, bytes: Bytes, whole: Bytes) -> Markup {
    let end = bytes.get() as f64 / whole.get().max(1) as f64 * 100.0;
    html! {
        div .reach.{ "reach-" (name) } style={ "--end:" (percent(end)) } aria-hidden="true" {
            span { (name) " " (bytes) }
        }
    }
}
