use crate::lint::{Finding, Selection, Source, lint};

/// The lines that a rule finds something in.
#[track_caller]
pub(super) fn lines(rule: &str, code: &str) -> Vec<usize> {
    findings(rule, code).into_iter().map(|it| it.place.line).collect()
}

/// What a rule finds; the code comes after `import torch` in the same line, so that lines keep their
/// numbers.
#[track_caller]
pub(super) fn findings(rule: &str, code: &str) -> Vec<Finding> {
    let code = format!("import torch; import numpy as np; import torch.nn.functional as F{code}");
    let source = Source::script("train.py".to_owned(), code);
    let selection = Selection::of(&[rule.to_owned()], &[]).unwrap();
    lint(&source, &selection).unwrap()
}
