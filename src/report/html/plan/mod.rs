//! The page of a plan.

mod contexts;
mod curve;
mod front;
mod ladder;
mod memory;
mod sizes;
mod step;
mod trust;

use maud::{Markup, html};

use super::page::{Page, Table, cell, command, figures, list, numbers, section, words};
use crate::plan::{Choice, Plan};
use crate::report::table::{self, speed};

/// A plan as a page. `made_by` is the shell's line that made it.
pub fn page(plan: &Plan, made_by: &str) -> String {
    let mut sections = vec![section("Memory", &memory::of(plan))];
    sections.extend(step::memory(plan).map(|it| section("One step", &it)));
    sections.extend(step::time(plan).map(|it| section("Where the time goes", &it)));
    sections.extend(sizes::of(plan).map(|it| section("Peak against micro-batch", &it)));
    sections.extend(choices(plan).map(|it| section("Settings that reach the target", &it)));
    sections.extend(ladder::of(plan).map(|it| section("What each step buys", &it)));
    sections.extend(front::of(plan).map(|it| section("Memory against speed", &it)));
    sections.extend(contexts::of(plan).map(|it| section("What a shorter context buys", &it)));
    if !plan.notes.is_empty() {
        let notes = plan.notes.iter().map(ToString::to_string);
        sections.push(section("Notes", &list(notes)));
    }
    sections.push(section("Evidence", &trust::of(plan, made_by)));
    Page { kind: "plan", headline: &table::headline(plan), lead: lead(plan), sections }.render()
}

fn lead(plan: &Plan) -> Markup {
    html! {
        @if let Some(choice) = &plan.recommendation { (figures(&read_first(choice, plan))) }
        @if let Some(line) = &plan.command { (command(line)) }
    }
}

fn read_first<'a>(choice: &Choice, plan: &Plan) -> Vec<(&'a str, String, String)> {
    let peak = choice.memory.device_peak;
    let steps = match (choice.accumulation, choice.remainder) {
        (times, None) => format!("{} × {times}", choice.micro_batch),
        (times, Some(rest)) => format!("{} × {times} + {rest}", choice.micro_batch),
    };
    let target = format!("micro-batch and steps, for {}", choice.effective_batch);
    let mut figures = vec![
        ("Peak", peak.to_string(), format!("of {} budget", plan.budget.budget)),
        ("Batch", steps, target),
    ];
    if let Some(speed) = &choice.speed {
        let each = if plan.goal.world_size > 1 { " on each GPU" } else { "" };
        let how = format!("{}{each}", speed.basis.word());
        figures.push(("Step time", speed.step_time(), how.clone()));
        let (rate, unit) = match speed.tokens_per_second {
            Some(_) => (speed.tokens(), "tokens/s"),
            None => {
                let rate = speed.samples_per_second;
                (speed.basis.range(rate, crate::units::significant), "samples/s")
            }
        };
        figures.push(("Throughput", rate, format!("{unit}, {how}")));
        if let Some(training) = plan.training {
            let time = speed.basis.range(training.seconds, crate::units::duration);
            let samples = crate::units::count(training.samples);
            figures.push(("Training", time, format!("for {samples} samples")));
        }
    }
    figures
}

fn choices(plan: &Plan) -> Option<Markup> {
    let best = plan.recommendation.as_ref()?;
    let all = || std::iter::once(best).chain(&plan.alternatives);
    let rates = all().any(|choice| choice.speed.is_some()).then(|| speed::rates(best));
    let mut columns =
        vec![words("setting"), numbers("micro-batch × steps"), numbers("device peak")];
    columns.extend(rates.map(numbers));
    columns.push(words("next larger"));
    let row = |choice: &Choice| {
        let mut row = setting_and_size(choice, plan).to_vec();
        row.extend(rates.map(|_| cell(speed::rate(choice))));
        row.push(cell(table::next(choice)));
        row
    };
    let rows = all().map(row).collect();
    let caption = "Settings that reach the target";
    Some(Table { caption, columns, rows, marked: Some(0) }.render())
}

/// Cells of a choice: its setting, micro-batch and steps, device peak.
fn setting_and_size(choice: &Choice, plan: &Plan) -> [Markup; 3] {
    let rest = choice.remainder.map_or_else(String::new, |rest| format!(" + {rest}"));
    [
        cell(setting(choice, plan)),
        cell(format!("{}\u{a0}×\u{a0}{}{rest}", choice.micro_batch, choice.accumulation)),
        cell(choice.memory.device_peak.to_string()),
    ]
}

fn setting(choice: &Choice, plan: &Plan) -> String {
    named(choice.setting(), plan)
}

/// A setting in few words.
fn named(setting: crate::measurement::Setting, plan: &Plan) -> String {
    use crate::workload::{Checkpointing, Precision};
    let checkpointing = match setting.checkpointing {
        Checkpointing::None => "none".to_owned(),
        other => table::checkpointing(other, plan),
    };
    match (setting.precision, setting.checkpointing) {
        (Precision::AsIs, _) | (_, Checkpointing::AsIs) => setting.to_string(),
        (precision, Checkpointing::Blocks(_)) => format!("{precision}, {checkpointing}"),
        (precision, _) => format!("{precision}, checkpointing {checkpointing}"),
    }
}
