//! `{micro_batch}` and its like: the syntax of placeholders in a command.
//!
//! | written | becomes |
//! | --- | --- |
//! | `{micro_batch}` | its value; of truth values `True` or `False` |
//! | `{bf16:YES}`, `{bf16:YES\|NO}` | one of the texts, for truth values |
//! | `{precision:fp32=A,bf16=B}` | the text of the precision; only those named are tried |
//! | `{{steps}}` | the text `{steps}` |

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
        if !is_shells && let Some(name) = doubled(rest) {
            text.push_str(&format!("{{{name}}}"));
            rest = &rest[name.len() + 4..];
            continue;
        }
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

/// What is wrong with the texts of precisions: who reads them must tell one from another.
fn ambiguous(named: &[(Precision, String)]) -> Option<String> {
    named.iter().enumerate().find_map(|(index, (precision, text))| {
        named[..index].iter().find_map(|(other, same)| match () {
            () if other == precision => Some(format!("names {} twice", precision.name())),
            () if same == text => {
                Some(format!("says the same for {} and {}", other.name(), precision.name()))
            }
            () => None,
        })
    })
}

/// The name in `{{name}}`, which is the text `{name}`: of our names, and those that are like them. Others
/// stay as they are.
fn doubled(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix("{{")?.split_once("}}")?;
    is_name(name).then_some(name).filter(|name| like(name).is_some())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
}

/// The variable that a name is, or is a slip of.
fn like(name: &str) -> Option<Variable> {
    Variable::named(name).or_else(|| {
        let alike = |known: &Variable| strsim::jaro_winkler(known.name(), name) >= ALIKE;
        Variable::ALL.into_iter().find(alike)
    })
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
    if !is_name(name) {
        return Ok(None);
    }
    let Some(variable) = Variable::named(name) else {
        return match like(name) {
            Some(known) => refused(
                "is no placeholder".to_owned(),
                format!(
                    "did you mean `{{{}}}`? `{{{{{name}}}}}` is the text `{{{name}}}`",
                    known.name()
                ),
            ),
            None => Ok(None),
        };
    };
    let texts = match texts {
        None => Texts::Value,
        Some(texts) if variable.is_truth_value() => {
            let (yes, no) = texts.split_once('|').unwrap_or((texts, ""));
            if yes == no {
                return refused(
                    "says the same either way".to_owned(),
                    format!("write it as `{{{name}:--{name}}}`"),
                );
            }
            Texts::YesNo(yes.to_owned(), no.to_owned())
        }
        Some(texts) if variable == Variable::Precision => {
            let named = texts.split(',').map(|pair| {
                let (precision, text) = pair.split_once('=').ok_or_else(|| pair.to_owned())?;
                Precision::from_str(precision).map(|it| (it, text.to_owned()))
            });
            match named.collect::<Result<Vec<_>, String>>() {
                Ok(named) => match ambiguous(&named) {
                    None => Texts::Named(named),
                    Some(reason) => {
                        return refused(reason, "give each precision a text of its own".to_owned());
                    }
                },
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
