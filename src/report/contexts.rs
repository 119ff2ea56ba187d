//! What a shorter context buys.

use super::table::{grid, indent, right, wrap};
use crate::plan::{Answer, Choice, Context, Contexts, Limit, LimitOf, LongestContext, Plan, Speed};

/// The lengths beside each other, and the longest that fits.
pub(super) fn table(contexts: &Contexts, plan: &Plan) -> String {
    let reference = reference(contexts);
    let gain = reference.map_or_else(String::new, |it| format!("against {}", it.tokens));
    let mut grid = grid();
    grid.set_header(["", "tokens", "micro-batch", "setting", "device peak", "tokens/s", &gain]);
    for context in &contexts.lengths {
        let is_recommended = reference.is_some_and(|it| it.tokens == context.tokens);
        let arrow = if is_recommended { "->" } else { "" };
        let cells = match &context.choice {
            Some(choice) => [
                steps(choice),
                choice.setting().to_string(),
                choice.memory.device_peak.to_string(),
                context
                    .choice
                    .as_ref()
                    .and_then(|it| it.speed.as_ref())
                    .map_or_else(dash, Speed::tokens),
                reference
                    .filter(|_| !is_recommended)
                    .and_then(|reference| gained(context, reference))
                    .unwrap_or_default(),
            ],
            None => ["-".to_owned(), answer(context, contexts.limit), dash(), dash(), dash()],
        };
        grid.add_row([arrow.to_owned(), context.tokens.to_string()].into_iter().chain(cells));
    }
    right(&mut grid, &[1, 2, 4, 5]);
    let mut lines = vec!["What a shorter context buys".to_owned(), indent(&grid.to_string())];
    lines.extend(failures(contexts).iter().map(|text| wrap(text, "  ", "    ")));
    lines.extend(longest(contexts, plan).iter().map(|text| wrap(text, "  ", "    ")));
    lines.join("\n")
}

/// The recommended one: the longest that fits.
pub(super) fn reference(contexts: &Contexts) -> Option<&Context> {
    contexts.lengths.iter().rev().find(|context| context.choice.is_some())
}

fn dash() -> String {
    "-".to_owned()
}

/// Micro-batch and how often.
pub(super) fn steps(choice: &Choice) -> String {
    let rest = choice.remainder.map_or_else(String::new, |rest| format!(" + {rest}"));
    format!("{} x {}{rest}", choice.micro_batch, choice.accumulation)
}

/// How much more a length does than the recommended one: of tokens a second, where those are known.
pub(super) fn gained(context: &Context, reference: &Context) -> Option<String> {
    let (now, then) = (context.choice.as_ref()?, reference.choice.as_ref()?);
    Some(match (context.tokens_per_second(), reference.tokens_per_second()) {
        (Some(now), Some(then)) if then.value > 0.0 => {
            format!("x{:.2} tokens/s", now.value / then.value)
        }
        _ => {
            let times = f64::from(now.micro_batch) / f64::from(then.micro_batch.max(1));
            format!("x{} micro-batch", (times * 100.0).round() / 100.0)
        }
    })
}

/// Why a length has no setting, in a few words.
pub(super) fn answer(context: &Context, limit: Limit) -> String {
    match &context.answer {
        Answer::Fits | Answer::DoesNotFit => "not even one sample fits".to_owned(),
        Answer::BeyondPositions => format!("the model has {} positions", limit.tokens),
        Answer::NotMeasured { .. } => "could not be measured".to_owned(),
        Answer::NotReached => "stopped before it was known".to_owned(),
    }
}

/// Why lengths could not be measured, a line each.
pub(super) fn failures(contexts: &Contexts) -> Vec<String> {
    let failed = contexts.lengths.iter().filter_map(|context| match &context.answer {
        Answer::NotMeasured { reason } => Some(format!("at {} tokens: {reason}", context.tokens)),
        _ => None,
    });
    failed.collect()
}

/// The longest that fit.
pub(super) fn longest(contexts: &Contexts, plan: &Plan) -> Option<String> {
    let found = contexts.longest.iter().map(|longest| {
        let setting = longest.setting();
        match longest.tokens {
            Some(tokens) => {
                let peak = device_peak(longest, plan);
                format!("{tokens} tokens with {setting}{peak}{}", end(longest, contexts.limit))
            }
            None => format!("none with {setting}"),
        }
    });
    let found: Vec<_> = found.collect();
    (!found.is_empty())
        .then(|| format!("longest that fits with a micro-batch of 1: {}", found.join("; ")))
}

fn device_peak(longest: &LongestContext, plan: &Plan) -> String {
    let measured = longest.evidence.and_then(|index| plan.measurements.get(index)?.ran());
    measured.map_or_else(String::new, |ran| format!(" ({})", ran.memory.device_peak))
}

/// What keeps a longest context from being longer.
fn end(longest: &LongestContext, limit: Limit) -> String {
    match (longest.next, limit.of) {
        (Some(next), _) => format!(", {} does not fit", next.tokens),
        (None, _) if longest.tokens != Some(limit.tokens) => String::new(),
        (None, LimitOf::Positions) => ", all that the model has".to_owned(),
        (None, LimitOf::Asked) => ", the longest that was asked for".to_owned(),
    }
}
