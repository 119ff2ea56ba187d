//! What memory buys in speed.

use maud::{Markup, html};

use super::super::page::{Table, figure, numbers, words};
use super::super::plot::{Axis, Described, percent, plot, steps, up};
use super::super::scale::{Scale, size};
use super::{curve, setting_and_size, sizes};
use crate::plan::{Choice, Figure, Plan, Speed};
use crate::report::table::speed;
use crate::units::significant;

/// None where there is no choice.
pub(super) fn of(plan: &Plan) -> Option<Markup> {
    let [least, _, ..] = plan.pareto.as_slice() else { return None };
    let unit = speed::rates(least);
    let on_front = |choice: &Choice| plan.pareto.iter().any(|it| it.evidence == choice.evidence);
    let others: Vec<_> = plan
        .recommendation
        .iter()
        .chain(&plan.alternatives)
        .filter(|choice| !on_front(choice) && choice.speed.is_some())
        .collect();
    let all = || plan.pareto.iter().chain(others.iter().copied());
    let budget = plan.budget.budget;
    let x = Scale::from_zero(size(budget) / 1.02);
    let y = Scale::from_zero(all().filter_map(|it| Some(rate(it)?.high)).fold(0.0, f64::max));
    let place = |choice: &Choice| {
        let rate = rate(choice).map_or(0.0, |rate| rate.value);
        (x.place(size(choice.memory.device_peak)), y.place(rate))
    };
    let described = Described {
        id: "front",
        title: "Device peak against speed",
        description: description(plan, unit),
    };
    let x_axis = Axis { name: "device peak", ticks: x.sizes() };
    let y_axis = Axis { name: unit, ticks: y.numbers() };
    let best = plan.recommendation.as_ref();
    let limit = percent(x.place(size(budget)));
    let front: Vec<_> = plan.pareto.iter().map(place).collect();
    let chart = plot(
        &described,
        &x_axis,
        &y_axis,
        &html! {
            line .limit x1=(limit) x2=(limit) y1="0" y2="100%" {}
            text .limit-name x=(limit) y="0" dx="-6" dy="4" text-anchor="end" { "budget " (budget) }
            (steps("front", &front))
            @for choice in others.iter().copied().chain(&plan.pareto) {
                @let classes = curve::classes(choice.setting());
                @let at = place(choice);
                @let faint = if on_front(choice) { "" } else { " hollow" };
                @if let Some(rate) = rate(choice).filter(|rate| rate.high > rate.low) {
                    line .range .(classes) x1=(percent(at.0)) x2=(percent(at.0))
                        y1=(up(y.place(rate.low))) y2=(up(y.place(rate.high))) {}
                }
                @if best.is_some_and(|it| it.evidence == choice.evidence) { (sizes::chosen(at)) }
                (curve::mark(choice.setting()).at(
                    &format!("point{faint} {classes}"), at, &hint(choice, plan, unit),
                ))
            }
        },
    );
    let ranges = all().any(|it| rate(it).is_some_and(|rate| rate.high > rate.low));
    let mut settings: Vec<_> = all().map(Choice::setting).collect();
    settings.sort();
    settings.dedup();
    let key = html! {
        ul .keys {
            @for setting in settings {
                li {
                    @let line = format!("range {}", curve::classes(setting));
                    (curve::mark(setting).key(
                        &format!("point {}", curve::classes(setting)),
                        ranges.then_some(line.as_str()),
                    ))
                    (curve::name(setting, plan))
                }
            }
        }
    };
    let words = html! {
        "Each filled mark is faster than all that take less memory, by more than counts as equal; hollow \
         ones reach the target too. "
        @if ranges {
            "A vertical line is the range in which the speed is expected."
        }
    };
    Some(figure(&chart, &key, &words, &table(plan, unit)))
}

/// Tokens per second where samples have a length, else samples.
fn rate(choice: &Choice) -> Option<Figure> {
    let speed = choice.speed.as_ref()?;
    Some(speed.tokens_per_second.unwrap_or(speed.samples_per_second))
}

fn range(choice: &Choice) -> String {
    let of = |speed: &Speed| Some(speed.basis.range(rate(choice)?, significant));
    choice.speed.as_ref().and_then(of).unwrap_or_else(|| "-".to_owned())
}

fn hint(choice: &Choice, plan: &Plan, unit: &str) -> String {
    let Choice { micro_batch, accumulation, memory, .. } = choice;
    let (setting, peak) = (super::setting(choice, plan), memory.device_peak);
    format!("{setting}, {micro_batch} × {accumulation}: {peak}, {} {unit}", range(choice))
}

fn description(plan: &Plan, unit: &str) -> String {
    let (Some(least), Some(most)) = (plan.pareto.first(), plan.pareto.last()) else {
        return String::new();
    };
    format!("From {} to {}.", hint(least, plan, unit), hint(most, plan, unit))
}

fn table(plan: &Plan, unit: &str) -> Markup {
    let row = |choice: &Choice| {
        let mut row = setting_and_size(choice, plan).to_vec();
        row.extend([html! { (speed::rate(choice)) }, html! { (range(choice)) }]);
        row
    };
    let best = plan.recommendation.as_ref().map(|choice| choice.evidence);
    Table {
        caption: "What memory buys in speed",
        columns: vec![
            words("setting"),
            numbers("micro-batch × steps"),
            numbers("device peak"),
            numbers(unit),
            numbers("expected"),
        ],
        rows: plan.pareto.iter().map(row).collect(),
        marked: plan.pareto.iter().position(|choice| Some(choice.evidence) == best),
    }
    .render()
}
