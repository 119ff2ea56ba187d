//! `# vramfit: ignore[rule]`: findings that somebody has looked at.

use std::collections::HashMap;

use ruff_python_ast::ModModule;
use ruff_python_parser::Parsed;

use super::rule;
use super::source::Source;

/// What is not to be reported, by line from 0.
#[derive(Debug)]
pub(super) struct Ignored(HashMap<usize, Vec<What>>);

#[derive(Debug)]
enum What {
    All,
    Rule(&'static str),
}

impl Ignored {
    /// A comment stands for its own line, or alone in one, for the next.
    pub(super) fn of(source: &Source, parsed: &Parsed<ModModule>) -> Self {
        let mut lines: HashMap<usize, Vec<What>> = HashMap::new();
        for comment in source.comments(parsed) {
            let line = comment.line + usize::from(comment.alone);
            lines.entry(line).or_default().extend(read(comment.text));
        }
        Self(lines)
    }

    /// Whether a finding of the rule, from line to line, is not to be reported.
    pub(super) fn covers(&self, number: &str, mut lines: std::ops::RangeInclusive<usize>) -> bool {
        lines.any(|line| {
            self.0.get(&line).is_some_and(|whats| {
                whats.iter().any(|what| match what {
                    What::All => true,
                    What::Rule(ignored) => *ignored == number,
                })
            })
        })
    }
}

/// The rules that a comment names: several by commas or spaces, none for all.
fn read(comment: &str) -> Vec<What> {
    let Some((_, after)) = comment.split_once("vramfit:") else { return Vec::new() };
    let Some(after) = after.trim_start().strip_prefix("ignore") else { return Vec::new() };
    let Some(list) = after.trim_start().strip_prefix('[') else { return vec![What::All] };
    let names = list.split(']').next().unwrap_or_default();
    names
        .split([',', ' '])
        .filter_map(|name| rule::named(name.trim()))
        .map(|rule| What::Rule(rule.number))
        .collect()
}
