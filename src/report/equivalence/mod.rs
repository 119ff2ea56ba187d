//! What accumulation and precision change, for a person.

mod chart;
mod gradients;
mod training;

use super::table::wrap;
use crate::equivalence::Equivalence;

/// What a person reads, at most 100 columns wide.
pub fn equivalence(document: &Equivalence) -> String {
    let mut parts = vec![wrap(&headline(document), "", "")];
    if !document.gradients.is_empty() {
        parts.push(gradients::table(&document.gradients));
        parts.push(gradients::lessons(&document.gradients));
    }
    if let Some(own) = &document.own {
        parts.push(gradients::own(own));
    }
    if let Some(training) = &document.training {
        parts.push(training::table(training));
        parts.push(chart::losses(training));
        parts.push(training::notes(training, &document.about));
    }
    parts.push(wrap(&evidence(document), "", "  "));
    parts.join("\n\n")
}

fn headline(document: &Equivalence) -> String {
    if let Some(own) = &document.own {
        return gradients::own_headline(own);
    }
    let wrong: Vec<_> = document.gradients.iter().filter(|case| !case.is_as_expected()).collect();
    match (wrong.as_slice(), document.gradients.is_empty()) {
        ([], true) => {
            "A small language model, trained with each precision and accumulation.".to_owned()
        }
        ([], false) => gradients::headline(&document.gradients),
        (wrong, _) => {
            let titles: Vec<_> = wrong.iter().map(|case| case.title.as_str()).collect();
            format!("This PyTorch does not compute gradients as it must: {}.", titles.join("; "))
        }
    }
}

fn evidence(document: &Equivalence) -> String {
    let about = &document.about;
    let threads = match about.threads {
        1 => "1 thread".to_owned(),
        many => format!("{many} threads"),
    };
    let on = match about.device.as_str() {
        "cpu" => format!("a CPU ({}, {threads})", about.name),
        _ => about.name.clone(),
    };
    format!(
        "Evidence: computed on {on} from seed {}. PyTorch {}, vramfit {}.",
        document.seed, about.torch, document.vramfit
    )
}
