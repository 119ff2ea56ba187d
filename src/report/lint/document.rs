use serde::Serialize;

use crate::lint::{Finding, Severity};

/// Version of [`LintDocument`].
pub const LINT_SCHEMA: u32 = 1;

/// What was found, as `lint --json` prints it.
#[derive(Debug, Serialize)]
pub struct LintDocument {
    /// Version of the document.
    pub schema: u32,
    /// Version of vramfit.
    pub vramfit: &'static str,
    /// How many of each there are.
    pub summary: LintSummary,
    /// Script by script, in the order of their lines.
    pub findings: Vec<Finding>,
    /// What could not be read, in words.
    pub unread: Vec<String>,
}

/// Counts.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct LintSummary {
    /// Scripts and notebooks that were read.
    pub scripts: usize,
    /// Findings that are errors.
    pub errors: usize,
    /// Findings that are warnings.
    pub warnings: usize,
    /// Findings that are notes.
    pub notes: usize,
}

impl LintDocument {
    /// Of so many scripts that were read.
    pub fn new(scripts: usize, findings: Vec<Finding>, unread: Vec<String>) -> Self {
        let count = |severity| findings.iter().filter(|it| it.severity == severity).count();
        let summary = LintSummary {
            scripts,
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            notes: count(Severity::Note),
        };
        Self { schema: LINT_SCHEMA, vramfit: env!("CARGO_PKG_VERSION"), summary, findings, unread }
    }
}

impl LintSummary {
    /// Whether there is nothing that ought to be mended.
    pub fn is_clean(&self) -> bool {
        self.errors + self.warnings == 0
    }

    /// `1 error, 2 warnings and 3 notes in 4 scripts`.
    pub fn words(&self) -> String {
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            _ => format!("{number} {what}s"),
        };
        let found: Vec<_> =
            [(self.errors, "error"), (self.warnings, "warning"), (self.notes, "note")]
                .into_iter()
                .filter(|(number, _)| *number > 0)
                .map(|(number, what)| count(number, what))
                .collect();
        let found = match found.split_last() {
            None => "nothing found".to_owned(),
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
        };
        format!("{found} in {}", count(self.scripts, "script"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_in_words() {
        let summary = LintSummary { scripts: 4, errors: 1, warnings: 2, notes: 3 };
        assert_eq!(summary.words(), "1 error, 2 warnings and 3 notes in 4 scripts");
        assert!(!summary.is_clean());
        let notes = LintSummary { scripts: 1, notes: 1, ..LintSummary::default() };
        assert_eq!(notes.words(), "1 note in 1 script");
        assert!(notes.is_clean());
        assert_eq!(LintSummary { scripts: 1, ..notes }.words(), "1 note in 1 script");
        assert_eq!(LintSummary::default().words(), "nothing found in 0 scripts");
    }
}
