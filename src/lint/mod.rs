//! Reads training scripts, never running them, for traps that cost memory or the right gradient.
//!
//! ```text
//! files ─► source (text, lines, cells) ─► parser ─► tree ─► script (what the names stand for)
//!                                                              │
//!                                          rules, one a file ◄─┘ ─► findings, less those ignored
//! ```
//!
//! A rule speaks where the text alone shows the trap. Where a framework does the work (transformers'
//! `Trainer`, accelerate, Lightning), or something comes from where it cannot be seen, it is silent:
//! a false alarm costs more trust than a trap that is missed.

mod files;
mod finding;
mod ignore;
mod notebook;
mod python;
mod rule;
mod rules;
mod script;
mod source;
mod tree;

pub use files::scripts;
pub use finding::{Finding, Place, Severity};
pub use rule::{Rule, Selection};
pub use rules::RULES;
pub use source::Source;

use self::ignore::Ignored;
use self::rule::Traps;
use self::script::Script;
use crate::error::Error;

/// What the rules find in a script, in the order of its lines.
///
/// # Errors
/// When it is no Python 3.
pub fn lint(source: &Source, selection: &Selection) -> Result<Vec<Finding>, Error> {
    let parsed = source.parse()?;
    let script = Script::of(parsed.syntax(), source.text());
    if !script.trains_with_torch() {
        return Ok(Vec::new());
    }
    let ignored = Ignored::of(source, &parsed);
    let mut findings = Vec::new();
    for rule in selection.rules() {
        let mut traps = Traps::default();
        (rule.check)(&script, &mut traps);
        for trap in traps.0 {
            let lines = source.line_of(trap.range.start().to_usize())
                ..=source.line_of(trap.range.end().to_usize());
            if ignored.covers(rule.number, lines) {
                continue;
            }
            let place = source.place(trap.range);
            findings.push(Finding {
                number: rule.number,
                rule: rule.name,
                severity: trap.severity,
                source: source.line(&place).trim_end().to_owned(),
                place,
                message: trap.message,
                hint: trap.hint,
            });
        }
    }
    findings.sort_by(|a, b| (&a.place, a.number).cmp(&(&b.place, b.number)));
    Ok(findings)
}
