use ruff_text_size::{Ranged, TextRange};

use super::finding::Severity;
use super::rules::RULES;
use super::script::Script;
use crate::error::{Error, ErrorKind};

/// A trap, and how it is seen in the text.
#[derive(Debug)]
pub struct Rule {
    /// `V01`; never given to another rule.
    pub number: &'static str,
    /// As it is printed, selected and ignored.
    pub name: &'static str,
    /// What it looks for, as part of a sentence.
    pub summary: &'static str,
    /// The severity it mostly has.
    pub severity: Severity,
    /// Finds it.
    pub(super) check: fn(&Script<'_>, &mut Traps),
}

impl Rule {
    fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name) || self.number.eq_ignore_ascii_case(name)
    }
}

/// What one rule found in one script.
#[derive(Debug, Default)]
pub(super) struct Traps(pub(super) Vec<Trap>);

/// A finding before it has a line.
#[derive(Debug)]
pub(super) struct Trap {
    pub(super) range: TextRange,
    pub(super) severity: Severity,
    pub(super) message: String,
    pub(super) hint: String,
}

impl Traps {
    pub(super) fn error(
        &mut self,
        at: &impl Ranged,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(at, Severity::Error, message, hint);
    }

    pub(super) fn warning(
        &mut self,
        at: &impl Ranged,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(at, Severity::Warning, message, hint);
    }

    pub(super) fn note(
        &mut self,
        at: &impl Ranged,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(at, Severity::Note, message, hint);
    }

    pub(super) fn add(
        &mut self,
        at: &impl Ranged,
        severity: Severity,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let (message, hint) = (message.into(), hint.into());
        self.0.push(Trap { range: at.range(), severity, message, hint });
    }
}

/// The rules that are looked for.
#[derive(Clone, Debug)]
pub struct Selection(Vec<&'static Rule>);

impl Selection {
    /// All rules, or those of `select`, without those of `ignore`; each by name or number.
    ///
    /// # Errors
    /// When there is no rule of that name.
    pub fn of(select: &[String], ignore: &[String]) -> Result<Self, Error> {
        let (select, ignore) = (all_named(select)?, all_named(ignore)?);
        let is_in = |rules: &[&Rule], rule: &Rule| rules.iter().any(|it| it.number == rule.number);
        let chosen =
            |rule: &&&Rule| (select.is_empty() || is_in(&select, rule)) && !is_in(&ignore, rule);
        Ok(Self(RULES.iter().filter(chosen).copied().collect()))
    }

    /// The rules.
    pub fn rules(&self) -> &[&'static Rule] {
        &self.0
    }
}

fn all_named(names: &[String]) -> Result<Vec<&'static Rule>, Error> {
    names.iter().map(|name| named(name).ok_or_else(|| unknown(name))).collect()
}

/// The rule of that name or number.
pub(super) fn named(name: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.is_called(name))
}

fn unknown(name: &str) -> Error {
    const ALIKE: f64 = 0.8;
    let list = format!("`vramfit lint --rules` lists all {}", RULES.len());
    let nearest = RULES
        .iter()
        .map(|rule| (strsim::jaro_winkler(rule.name, name), rule.name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    let hint = match nearest {
        Some((_, nearest)) => format!("did you mean `{nearest}`? {list}"),
        None => list,
    };
    Error::new(ErrorKind::UnknownName { what: "rule", name: name.to_owned() }).hint(hint)
}
