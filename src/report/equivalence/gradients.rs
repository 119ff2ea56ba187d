use crate::equivalence::{Cause, Compared, GradientCase, Measured, OwnGradient, Verdict};
use crate::report::table::{grid, indent, right, wrap};

pub(super) fn headline(cases: &[GradientCase]) -> String {
    let of = |verdict| cases.iter().filter(move |case| case.gradient.verdict == verdict);
    let apart: Vec<_> = of(Verdict::Unequal)
        .filter_map(|case| Some(case.gradient.most_exact()?.difference))
        .collect();
    let least = apart.iter().copied().fold(f64::INFINITY, f64::min);
    let most = apart.iter().copied().fold(0.0, f64::max);
    format!(
        "Micro-batches accumulate to the gradient of the full batch in {} of {} cases, but for rounding. \
         In {} they do not: it is off by {} to {}.",
        of(Verdict::Equal).count(),
        cases.len(),
        apart.len(),
        percent(least),
        percent(most)
    )
}

/// One row a case, one column a precision.
pub(super) fn table(cases: &[GradientCase]) -> String {
    let mut grid = grid();
    let precisions: Vec<_> = cases
        .first()
        .map(|case| case.gradient.measured.iter().map(|it| it.precision.clone()).collect())
        .unwrap_or_default();
    let mut header = vec!["model and loss".to_owned()];
    header.extend(precisions.iter().cloned());
    header.push("verdict".to_owned());
    grid.set_header(header);
    for case in cases {
        let mut row = vec![case.title.clone()];
        row.extend(case.gradient.measured.iter().map(difference));
        row.push(word(&case.gradient).to_owned());
        grid.add_row(row);
    }
    right(&mut grid, &(1..=precisions.len()).collect::<Vec<_>>());
    let title = "Accumulated against full gradient: norm of the difference / norm of the gradient";
    format!("{title}\n{}", indent(&grid.to_string()))
}

/// Of each case that is not equal: why, what to do, and what trying showed.
pub(super) fn lessons(cases: &[GradientCase]) -> String {
    let not_equal = cases.iter().filter(|case| case.gradient.verdict != Verdict::Equal);
    let bullets = not_equal.map(|case| {
        let found =
            case.gradient.cause.as_ref().map(|cause| format!(" By trying: {}.", tried(cause)));
        let text = format!("{}: {}{}", case.title, case.lesson, found.unwrap_or_default());
        wrap(&text, "  - ", "    ")
    });
    format!("Why, and what helps\n{}", bullets.collect::<Vec<_>>().join("\n"))
}

pub(super) fn own_headline(own: &OwnGradient) -> String {
    let steps = own.target_batch.div_ceil(own.micro_batch);
    let (model, target, micro) = (&own.model, own.target_batch, own.micro_batch);
    match own.gradient.verdict {
        Verdict::Equal => format!(
            "{model}: {steps} micro-batches of {micro} accumulate to the gradient of the full batch of \
             {target}, but for rounding."
        ),
        Verdict::Unequal => {
            let off = own.gradient.most_exact().map_or(f64::NAN, |it| it.difference);
            format!(
                "{model}: {steps} micro-batches of {micro} accumulate to another gradient than that of the \
                 full batch of {target}. It is off by {}.",
                percent(off)
            )
        }
        Verdict::Random => format!(
            "{model}: whether the gradients are equal cannot be said, since two passes over the same batch \
             differ already."
        ),
    }
}

/// The differences, where they are, and what follows.
pub(super) fn own(own: &OwnGradient) -> String {
    let mut grid = grid();
    grid.set_header(["precision", "difference", "by rounding alone", "another seed", "verdict"]);
    for measured in &own.gradient.measured {
        grid.add_row([
            measured.precision.clone(),
            difference(measured),
            format!("up to {}", small(measured.tolerance())),
            small(measured.seed),
            of(measured.verdict()).to_owned(),
        ]);
    }
    right(&mut grid, &[1, 2, 3]);
    let mut lines = own_lines(own);
    if let (Verdict::Unequal, Some(measured)) = (own.gradient.verdict, own.gradient.most_exact()) {
        let places =
            measured.parameters.iter().map(|(name, off)| format!("{name} ({})", percent(*off)));
        lines.push(format!("Most of it is in {}.", places.collect::<Vec<_>>().join(", ")));
    }
    let bullets: Vec<_> = lines.iter().map(|line| wrap(line, "  - ", "    ")).collect();
    let table = format!("Accumulated against full gradient\n{}", indent(&grid.to_string()));
    match bullets.is_empty() {
        true => table,
        false => format!("{table}\n\nNotes\n{}", bullets.join("\n")),
    }
}

fn own_lines(own: &OwnGradient) -> Vec<String> {
    let mut lines = Vec::new();
    match &own.gradient.cause {
        Some(cause @ Cause::BatchNorm { .. }) => lines.push(format!(
            "Batch norm sees the micro-batch alone: {}. {}. GroupNorm or LayerNorm instead, or `eval()` on \
             these modules, whose statistics are pretrained then.",
            few(&own.batch_norms),
            capitalized(&tried(cause))
        )),
        Some(cause @ Cause::Counts { .. }) => lines.push(format!(
            "The loss is a mean over counts that differ from one micro-batch to the next, such as tokens \
             without padding: {}. Sum it, and divide by the count of the full batch.",
            tried(cause)
        )),
        Some(cause @ Cause::Scale { .. }) => lines.push(format!(
            "The loss is no mean over samples: {}. Where it is a sum, do not weight it by the share of \
             samples.",
            tried(cause)
        )),
        Some(cause @ Cause::Coupled { .. }) => lines.push(format!(
            "A sample's loss depends on the others in its batch (a contrastive loss, statistics of the \
             batch): {}.{}",
            tried(cause),
            match own.batch_norms.as_slice() {
                [] => String::new(),
                names => format!(" Batch norm is not all of it: {}.", few(names)),
            }
        )),
        None => {}
    }
    if !own.dropouts.is_empty() {
        let count = own.dropouts.len();
        let modules = if count == 1 { "module was" } else { "modules were" };
        lines.push(format!(
            "{count} dropout {modules} switched off for this: with other units left out no two passes are \
             alike."
        ));
    }
    if own.evaluated {
        lines.push(
            "All but batch norm was in evaluation mode for this, since something without a module of its \
             own is random in training mode."
                .to_owned(),
        );
    }
    lines
}

/// What trying showed.
fn tried(cause: &Cause) -> String {
    match cause {
        Cause::BatchNorm { frozen } => {
            format!("with running statistics the difference is {}", small(*frozen))
        }
        Cause::Scale { factor } => {
            format!("the gradients are equal if each micro-batch counts {factor:.2} times as much")
        }
        Cause::Counts { factors } => {
            let shown: Vec<_> = factors.iter().take(6).map(|it| format!("{it:.2}")).collect();
            let more = if factors.len() > 6 { ", …" } else { "" };
            format!(
                "the gradients are equal if the micro-batches count {}{more} times as much",
                shown.join(", ")
            )
        }
        Cause::Coupled { left } => {
            format!("however the micro-batches are weighted, {} is left", percent(*left))
        }
    }
}

fn few(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(3).map(|name| format!("`{name}`")).collect();
    match names.len() {
        0..=3 => shown.join(", "),
        many => format!("{} and {} more", shown.join(", "), many - 3),
    }
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn difference(measured: &Measured) -> String {
    match measured.verdict() {
        Verdict::Equal => small(measured.difference),
        _ => percent(measured.difference),
    }
}

/// As `2e-7`.
fn small(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.0e}") }
}

fn percent(value: f64) -> String {
    match value * 100.0 {
        percent if percent < 10.0 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

fn word(compared: &Compared) -> &'static str {
    of(compared.verdict)
}

fn of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Equal => "equal",
        Verdict::Unequal => "not equal",
        Verdict::Random => "random",
    }
}
