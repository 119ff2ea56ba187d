//! `{micro_batch}` and its like: the syntax of placeholders in a command.
//!
//! | written | becomes |
//! | --- | --- |
//! | `{micro_batch}` | its value; of truth values `True` or `False` |
//! | `{bf16:YES}`, `{bf16:YES\|NO}` | one of the texts, for truth values |
//! | `{precision:fp32=A,bf16=B}` | the text of the precision; only those named are tried |

use std::str::FromStr as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Precision;
use super::command::Values;
use crate::error::{Error, ErrorKind};

/// How alike an unknown name must be to a known one to be taken for a slip.
const ALIKE: f64 = 0.85;

/// Something that a command lets vramfit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Variable {
    /// Samples in one micro-step.
    MicroBatch,
    /// Micro-steps in one optimizer step.
    Accumulation,
    /// `fp32`, `tf32`, `bf16` or `fp16`.
    Precision,
    /// Whether it is fp16.
    Fp16,
    /// Whether it is bf16.
    Bf16,
    /// Whether activations are checkpointed.
    Checkpoint,
    /// Tokens in one sample.
    Seq,
    /// Optimizer steps to run; a command that takes it is left to run to its end.
    Steps,
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Hole(Hole),
}

/// A placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) variable: Variable,
    texts: Texts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Texts {
    /// The value itself.
    Value,
    /// Of a truth value.
    YesNo(String, String),
    /// Of precisions.
    Named(Vec<(Precision, String)>),
}

impl Variable {
    /// All, in the order in which they are explained.
    pub const ALL: [Self; 8] = [
        Self::MicroBatch,
        Self::Accumulation,
        Self::Precision,
        Self::Fp16,
        Self::Bf16,
        Self::Checkpoint,
        Self::Seq,
        Self::Steps,
    ];

    /// Name in a placeholder.
    pub fn name(self) -> &'static str {
        match self {
            Self::MicroBatch => "micro_batch",
            Self::Accumulation => "accumulation",
            Self::Precision => "precision",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
            Self::Checkpoint => "checkpoint",
            Self::Seq => "seq",
            Self::Steps => "steps",
        }
    }

    /// Name in the environment, e.g. `VRAMFIT_MICRO_BATCH`.
    pub fn environment(self) -> String {
        format!("VRAMFIT_{}", self.name().to_uppercase())
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variable| variable.name() == name)
    }

    fn is_truth_value(self) -> bool {
        matches!(self, Self::Fp16 | Self::Bf16 | Self::Checkpoint)
    }
}

impl Hole {
    /// Whether it may stand for no text at all.
    pub(super) fn is_optional(&self) -> bool {
        self.texts != Texts::Value
    }

    /// What it stands for.
    pub(super) fn text(&self, values: &Values) -> String {
        match &self.texts {
            Texts::Value => {
                let unsaid = || format!("{{{}}}", self.variable.name());
                values.text(self.variable).unwrap_or_else(unsaid)
            }
            Texts::YesNo(yes, no) => {
                let is_so = values.text(self.variable).is_some_and(|it| it == "True");
                if is_so { yes } else { no }.clone()
            }
            Texts::Named(names) => {
                let precision = values.precision;
                let named = names.iter().find(|(of, _)| *of == precision);
                named.map(|(_, text)| text.clone()).unwrap_or_default()
            }
        }
    }

    /// The precisions it has texts for.
    pub(super) fn precisions(&self) -> Vec<Precision> {
        let names = |of: Precision| match &self.texts {
            Texts::Named(names) => names.iter().any(|(named, _)| *named == of),
            Texts::Value | Texts::YesNo(..) => true,
        };
        Precision::ALL.into_iter().filter(|precision| names(*precision)).collect()
    }
}

/// The pieces of a word, in order. Braces around anything else are text.
///
/// # Errors
/// When a placeholder is mistyped or has texts that it cannot have.
pub(super) fn parts(word: &str) -> Result<Vec<Part>, Error> {
    let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), word);
    while let Some(open) = rest.find('{') {
        text.push_str(&rest[..open]);
        rest = &rest[open..];
        let inside = rest.find('}').map(|close| &rest[1..close]);
        // `${NAME}` is the shell's.
        let is_shells = text.ends_with('$');
        match inside.filter(|_| !is_shells).map(hole).transpose()?.flatten() {
            Some(hole) => {
                parts.extend((!text.is_empty()).then(|| Part::Text(std::mem::take(&mut text))));
                parts.push(Part::Hole(hole));
                rest = &rest[inside.unwrap_or_default().len() + 2..];
            }
            None => {
                text.push('{');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    parts.extend((!text.is_empty()).then_some(Part::Text(text)));
    Ok(parts)
}

fn hole(inside: &str) -> Result<Option<Hole>, Error> {
    let refused = |reason: String, hint: String| {
        let placeholder = format!("{{{inside}}}");
        Err(Error::new(ErrorKind::BadPlaceholder { placeholder, reason }).hint(hint))
    };
    let (name, texts) = match inside.split_once(':') {
        Some((name, texts)) => (name, Some(texts)),
        None => (inside, None),
    };
    if name.is_empty() || !name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_') {
        return Ok(None);
    }
    let Some(variable) = Variable::named(name) else {
        let like = |known: &Variable| strsim::jaro_winkler(known.name(), name) >= ALIKE;
        return match Variable::ALL.iter().find(|known| like(known)) {
            Some(known) => refused(
                "is no placeholder".to_owned(),
                format!("did you mean `{{{}}}`?", known.name()),
            ),
            None => Ok(None),
        };
    };
    let texts = match texts {
        None => Texts::Value,
        Some(texts) if variable.is_truth_value() => {
            let (yes, no) = texts.split_once('|').unwrap_or((texts, ""));
            Texts::YesNo(yes.to_owned(), no.to_owned())
        }
        Some(texts) if variable == Variable::Precision => {
            let named = texts.split(',').map(|pair| {
                let (precision, text) = pair.split_once('=').ok_or_else(|| pair.to_owned())?;
                Precision::from_str(precision).map(|it| (it, text.to_owned()))
            });
            match named.collect::<Result<Vec<_>, String>>() {
                Ok(named) => Texts::Named(named),
                Err(pair) => {
                    return refused(
                        format!("has `{pair}` where a precision and its text should be"),
                        "write it as `{precision:fp32=no,bf16=bf16}`".to_owned(),
                    );
                }
            }
        }
        Some(_) => {
            return refused(
                "takes no texts".to_owned(),
                format!("write `{{{name}}}`; texts are for `{{bf16:--bf16}}` and the like"),
            );
        }
    };
    Ok(Some(Hole { variable, texts }))
}
