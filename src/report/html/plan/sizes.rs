//! Peak against micro-batch: a curve for each setting, and each of its points was run.

use maud::{Markup, html};

use super::super::page::{Table, cell, figure, numbers, words};
use super::super::plot::{Axis, Described, line, plot, up};
use super::super::scale::{Scale, size};
use super::{curve, named};
use crate::measurement::{EvidenceKind, Measurement, Outcome, Point, Setting, Verdict};
use crate::plan::Plan;
use crate::units::Bytes;

/// A setting and what was run of it as it trains, by micro-batch.
struct Curve<'a> {
    setting: Setting,
    points: Vec<&'a Measurement>,
}

/// None where nothing was run, or nothing could be.
pub(super) fn of(plan: &Plan) -> Option<Markup> {
    let curves = curves(plan);
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let known = all().filter(|it| it.verdict(plan.budget.budget) != Verdict::Unknown).count();
    if known == 0 {
        return None;
    }
    let budget = plan.budget.budget;
    // Memory is about affine in the micro-batch, and so are lines on an even axis.
    let x = Scale::from_zero(f64::from(all().map(|it| it.point.micro_batch).max()?));
    let peaks = all().filter_map(|it| Some(it.ran()?.memory.device_peak));
    // Room above for what ran out of memory.
    let y = Scale::from_zero(size(peaks.chain([budget]).max()?) * 1.1);
    let described = Described {
        id: "sizes",
        title: "Device peak against micro-batch",
        description: description(&curves, plan),
    };
    let x_axis = Axis { name: "samples in one micro-batch", ticks: x.powers() };
    let y_axis = Axis { name: "device peak", ticks: y.sizes() };
    let limit = up(y.place(size(budget)));
    let chart = plot(
        &described,
        &x_axis,
        &y_axis,
        &html! {
            line .limit x1="0" x2="100%" y1=(limit) y2=(limit) {}
            text .limit-name x="6" y=(limit) dy="-6" { "budget " (budget) }
            // The recommended one last, above the others.
            @for (index, curve) in curves.iter().enumerate().rev() {
                (draw(index, curve, plan, x, y))
            }
        },
    );
    let key = html! {
        ul .keys {
            @for (index, it) in curves.iter().enumerate() {
                li .{ "key-" (index) } tabindex="0" {
                    (curve::mark(it.setting).key(
                        &format!("point {}", curve::classes(it.setting)),
                        Some(&format!("curve {}", curve::classes(it.setting))),
                    ))
                    (curve::name(it.setting, plan))
                }
            }
        }
    };
    let words = html! {
        "A curve is a precision and what is checkpointed. Each mark is a run of a whole step. Filled marks fit, hollow ones fit only by flushing the \
         allocator's cache, and a cross ran out of memory or went beyond the budget."
        @if all().any(|it| on_twin(it, plan)) {
            " Small marks were run on the card's virtual twin."
        }
    };
    Some(figure(&chart, &key, &words, &table(&curves, plan)))
}

/// The recommended setting first, then in the order in which they were tried.
fn curves(plan: &Plan) -> Vec<Curve<'_>> {
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for known in &plan.measurements {
        let Point { setting, micro_batch, .. } = known.point;
        // The ladder's points, without accumulation, and those of other lengths are not of the curve.
        if known.point != Point::to_probe(setting, micro_batch, &plan.goal)
            || known.sequence.is_some_and(|tokens| Some(tokens) != plan.workload.sequence)
        {
            continue;
        }
        match curves.iter_mut().find(|curve| curve.setting == setting) {
            Some(curve) => curve.points.push(known),
            None => curves.push(Curve { setting, points: vec![known] }),
        }
    }
    for curve in &mut curves {
        curve.points.sort_by_key(|it| it.point.micro_batch);
    }
    let best = plan.recommendation.as_ref().map(|choice| choice.setting());
    curves.sort_by_key(|curve| Some(curve.setting) != best);
    curves
}

fn on_twin(known: &Measurement, plan: &Plan) -> bool {
    known.evidence.kind != plan.device.kind && plan.device.kind == EvidenceKind::Real
}

fn draw(index: usize, it: &Curve<'_>, plan: &Plan, x: Scale, y: Scale) -> Markup {
    let Curve { setting, points } = it;
    let at = |known: &Measurement| x.place(f64::from(known.point.micro_batch));
    let places: Vec<_> = points
        .iter()
        .filter_map(|known| Some((at(known), y.place(size(known.ran()?.memory.device_peak)))))
        .collect();
    let classes = curve::classes(*setting);
    let best = plan.recommendation.as_ref();
    let is_best = best.is_some_and(|choice| choice.setting() == *setting);
    html! {
        g .series .best[is_best] .{ "series-" (index) } {
            (line(&format!("curve {classes}"), &places))
            @for known in points {
                @let verdict = known.verdict(plan.budget.budget);
                @let small = if on_twin(known, plan) { " small" } else { "" };
                @let hint = hint(known, plan);
                @match known.ran() {
                    Some(ran) => {
                        @let place = (at(known), y.place(size(ran.memory.device_peak)));
                        @let kind = if verdict == Verdict::Fits { "point" } else { "point hollow" };
                        @if best.is_some_and(|choice| &plan.measurements[choice.evidence] == *known) {
                            (chosen(place))
                        }
                        (curve::mark(*setting).at(&format!("{kind}{small} {classes}"), place, &hint))
                    }
                    None if verdict == Verdict::TooLarge => {
                        (super::super::plot::Mark::Cross.at(
                            &format!("cross{small} {classes}"), (at(known), 100.0), &hint,
                        ))
                    }
                    None => {}
                }
            }
        }
    }
}

/// A ring around the recommended point.
pub(super) fn chosen((x, y): (f64, f64)) -> Markup {
    html! { circle .chosen cx=(super::super::plot::percent(x)) cy=(up(y)) r="9" {} }
}

fn hint(known: &Measurement, plan: &Plan) -> String {
    let setting = named(known.point.setting, plan);
    format!("{setting}, micro-batch {}: {}", known.point.micro_batch, outcome(known, plan))
}

fn outcome(known: &Measurement, plan: &Plan) -> String {
    let peak = |peak: Bytes| match known.verdict(plan.budget.budget) {
        Verdict::Tight => format!("{peak}, too tight"),
        Verdict::TooLarge => format!("{peak}, beyond the budget"),
        Verdict::Fits | Verdict::Unknown => peak.to_string(),
    };
    match &known.outcome {
        Outcome::Ran(ran) => peak(ran.memory.device_peak),
        Outcome::OutOfMemory { .. } => "out of memory".to_owned(),
        Outcome::Failed { .. } => "failed".to_owned(),
    }
}

fn description(curves: &[Curve<'_>], plan: &Plan) -> String {
    let budget = plan.budget.budget;
    let largest = curves.iter().map(|curve| {
        let fits = |known: &&&Measurement| known.verdict(budget) == Verdict::Fits;
        let setting = named(curve.setting, plan);
        match curve.points.iter().rfind(fits) {
            Some(known) => format!(
                "{setting} fits up to micro-batch {} with {}",
                known.point.micro_batch,
                outcome(known, plan)
            ),
            None => format!("{setting} does not fit"),
        }
    });
    format!("Of a budget of {budget}: {}.", largest.collect::<Vec<_>>().join("; "))
}

fn table(curves: &[Curve<'_>], plan: &Plan) -> Markup {
    let row = |known: &&Measurement| {
        let kind = match known.evidence.kind {
            EvidenceKind::Real => "GPU",
            EvidenceKind::Virtual => "virtual GPU",
        };
        vec![
            cell(named(known.point.setting, plan)),
            cell(known.point.micro_batch.to_string()),
            cell(outcome(known, plan)),
            cell(kind),
        ]
    };
    Table {
        caption: "Device peak against micro-batch",
        columns: vec![
            words("setting"),
            numbers("micro-batch"),
            numbers("device peak"),
            words("run on"),
        ],
        rows: curves.iter().flat_map(|curve| curve.points.iter().map(row)).collect(),
        marked: None,
    }
    .render()
}
