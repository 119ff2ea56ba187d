//! A card beside its twin, as a table and as one line a point.

use super::table::{grid, indent, right, versions, wrap};
use crate::comparison::{
    Compared, Comparison, Difference, Order, Side, Skipped, Spread, StepDifference, StepSpread,
};
use crate::measurement::Outcome;
use crate::units::duration;
use crate::workload::Checkpointing;

/// The whole document for a person, without a line end at its end.
pub fn comparison(document: &Comparison) -> String {
    let mut parts = vec![headline(document), points(document)];
    parts.extend(spreads(document));
    parts.extend(steps(document));
    parts.push(wrap(&counts(document), "", "  "));
    parts.push(wrap(&format!("Evidence: {}.", versions(&document.versions)), "", "  "));
    parts.join("\n\n")
}

/// What came of one point, in one line.
pub fn compared(result: &Compared) -> String {
    let end = match (&result.errors, &result.skipped) {
        (Some(errors), _) => {
            let step =
                errors.step.map_or_else(String::new, |it| format!(", step {}", of_step(&it)));
            format!(
                "allocated {}, reserved {}, device {}{step}",
                percent(&errors.allocated),
                percent(&errors.reserved),
                percent(&errors.device)
            )
        }
        (None, Some(skipped)) => skip(skipped),
        (None, None) => [("twin", &result.twin), ("card", &result.card)]
            .into_iter()
            .filter_map(|(name, side)| Some((name, failure(side.as_ref()?)?)))
            .map(|(name, failure)| format!("{name}: {failure}"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    format!("{}: {end}", name(result))
}

fn headline(document: &Comparison) -> String {
    let product = &document.card.product;
    let what = match document.rehearsal {
        true => format!(
            "REHEARSAL on {product}: both sides are virtual, and nothing here was measured on a GPU."
        ),
        false => format!("{product} beside its virtual twin."),
    };
    let end = match document.complete {
        true => String::new(),
        false => format!(" Stopped after {} of {}.", document.results.len(), document.planned),
    };
    wrap(&(what + &end), "", "")
}

fn points(document: &Comparison) -> String {
    let mut grid = grid();
    grid.set_header([
        "point",
        "allocated",
        "twin",
        "reserved",
        "context",
        "device",
        "twin",
        "step",
        "twin",
    ]);
    for result in &document.results {
        let card = result.card.as_ref().and_then(Side::ran);
        let memory = card.map(|ran| &ran.memory);
        let errors = result.errors.as_ref();
        grid.add_row([
            name(result),
            or_dash(memory.map(|memory| memory.allocated_peak.to_string())),
            or_dash(errors.map(|errors| percent(&errors.allocated))),
            or_dash(errors.map(|errors| percent(&errors.reserved))),
            or_dash(errors.map(|errors| percent(&errors.context))),
            or_dash(memory.map(|memory| memory.device_peak.to_string())),
            or_dash(errors.map(|errors| percent(&errors.device))),
            or_dash(card.map(|ran| duration(ran.step_seconds, 3))),
            or_dash(errors.and_then(|errors| errors.step).map(|it| of_step(&it))),
        ]);
    }
    right(&mut grid, &[1, 2, 3, 4, 5, 6, 7, 8]);
    format!(
        "The card's peaks and times, and how far its twin is off\n{}",
        indent(&grid.to_string())
    )
}

fn spreads(document: &Comparison) -> Option<String> {
    let summary = &document.summary;
    let mut grid = grid();
    grid.set_header(["", "exact", "median", "worst", "at"]);
    for (name_of, spread) in [
        ("allocated", summary.allocated),
        ("reserved", summary.reserved),
        ("context", summary.context),
        ("device", summary.device),
    ] {
        let Spread { exact, median_percent, worst_percent, worst } = spread?;
        grid.add_row([
            name_of.to_owned(),
            format!("{exact} of {}", summary.compared),
            format!("{median_percent:.2} %"),
            format!("{worst_percent:+.2} %"),
            document
                .results
                .get(worst)
                .filter(|_| worst_percent != 0.0)
                .map_or_else(String::new, name),
        ]);
    }
    right(&mut grid, &[1, 2, 3]);
    Some(format!("The twin's errors\n{}", indent(&grid.to_string())))
}

/// Predicted against measured step times, by family.
fn steps(document: &Comparison) -> Option<String> {
    let summary = &document.summary;
    if summary.step.is_empty() {
        return None;
    }
    let mut grid = grid();
    grid.set_header(["", "points", "median", "worst", "at"]);
    for StepSpread { family, compared, median_percent, worst_percent, worst } in &summary.step {
        grid.add_row([
            family.clone(),
            compared.to_string(),
            format!("{median_percent:.0} %"),
            format!("{worst_percent:+.0} %"),
            document.results.get(*worst).map_or_else(String::new, name),
        ]);
    }
    right(&mut grid, &[1, 2, 3]);
    let Order { pairs, right } = summary.order;
    let order = match pairs {
        0 => String::new(),
        _ => format!(
            "\n  of {pairs} pairs of points that differ by more than 5 % in samples/s, the twin has {right} \
             in the right order"
        ),
    };
    Some(format!(
        "The errors of the twin's modelled step times\n{}{order}",
        indent(&grid.to_string())
    ))
}

fn counts(document: &Comparison) -> String {
    let summary = &document.summary;
    let mut text = format!("{} points ran on both", summary.compared);
    for (count, what) in [
        (summary.skipped, "skipped, since they do not fit or are not in hardware"),
        (summary.failed, "failed"),
        (summary.only_card_out_of_memory, "out of memory on the card alone"),
    ] {
        if count > 0 {
            text += &format!("; {count} {what}");
        }
    }
    text + "."
}

fn name(result: &Compared) -> String {
    let (workload, point) = (&result.workload, &result.point);
    let model = match workload.sequence {
        Some(tokens) => format!("{}/{tokens}", workload.subject.name()),
        None => workload.subject.name(),
    };
    let checkpointing = match point.setting.checkpointing {
        Checkpointing::None => String::new(),
        checkpointing => format!(" ckpt {checkpointing}"),
    };
    let accumulation = match point.accumulation {
        1 => String::new(),
        n => format!("x{n}"),
    };
    format!(
        "{model} {}{checkpointing} {}{accumulation}",
        point.setting.precision, point.micro_batch
    )
}

fn percent(difference: &Difference) -> String {
    match (difference.bytes, difference.percent) {
        (0, _) => "exact".to_owned(),
        (_, Some(percent)) => format!("{percent:+.2} %"),
        (_, None) => "of nothing".to_owned(),
    }
}

fn of_step(difference: &StepDifference) -> String {
    format!("{:+.0} %", difference.percent)
}

fn skip(skipped: &Skipped) -> String {
    match skipped {
        Skipped::NotInHardware { precision } => format!("skipped, no {precision} in hardware"),
        Skipped::DoesNotFit => "skipped, does not fit".to_owned(),
    }
}

fn failure(side: &Side) -> Option<&str> {
    match &side.outcome {
        Outcome::Ran(_) => None,
        Outcome::OutOfMemory { .. } => Some("out of memory"),
        Outcome::Failed { message, .. } => Some(message),
    }
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}
