//! Reading a flag's value, and saying in our own words why it cannot be read.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use vramfit_vgpu_schema::Description;

use crate::error::Error;
use crate::export::{EXPORTERS, Exporter};
use crate::units::{Bytes, Share};
use crate::workload::{Checkpointing, Lengths, Optimizer, Precision, Variable};

/// Why a value cannot be used, and what would do instead. clap carries it up to [`explain`].
#[derive(Debug)]
pub(super) struct Refusal {
    value: String,
    reason: String,
    hint: &'static str,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refusal {}

/// A function of a Python file, as `--workload` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionName {
    /// The file, as it was typed.
    pub(super) file: String,
    /// The function.
    pub(super) name: String,
}

/// `FILE:FUNCTION`.
pub(super) fn function(text: &str) -> Result<FunctionName, Refusal> {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name.chars().all(|it| it.is_alphanumeric() || it == '_')
    };
    match text.rsplit_once(':') {
        Some((file, name)) if !file.is_empty() && is_name(name) => {
            Ok(FunctionName { file: file.to_owned(), name: name.to_owned() })
        }
        _ => refuse(text, "names no function", "write it as train.py:workload"),
    }
}

/// What `--checkpoint` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checkpoint {
    /// This one.
    As(Checkpointing),
    /// The blocks that it takes, found by trying.
    Selective,
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::As(checkpointing) => checkpointing.fmt(f),
            Self::Selective => f.pad("selective"),
        }
    }
}

/// The name of a framework that plans are exported to.
pub(super) fn exporter() -> impl TypedValueParser<Value = &'static dyn Exporter> {
    let names = EXPORTERS.iter().map(|it| PossibleValue::new(it.name()).help(it.about()));
    PossibleValuesParser::new(names.collect::<Vec<_>>()).try_map(|name| {
        EXPORTERS.iter().copied().find(|it| it.name() == name).ok_or("no such format")
    })
}

/// A count of at least one.
pub(super) fn count(text: &str) -> Result<u32, Refusal> {
    match text.parse() {
        Ok(0) => refuse(text, "must be at least 1", "give a whole number such as 64"),
        Ok(count) => Ok(count),
        Err(_) => refuse(
            text,
            "not a whole number from 1 to 4294967295",
            "give a whole number such as 64",
        ),
    }
}

/// Optimizer steps of a small training.
pub(super) fn steps(text: &str) -> Result<u32, Refusal> {
    match text.parse() {
        Ok(steps @ 10..=100_000) => Ok(steps),
        _ => refuse(
            text,
            "not a whole number from 10 to 100000",
            "50 take half a minute on a CPU, and show enough",
        ),
    }
}

/// Milliseconds between two readings.
pub(super) fn milliseconds(text: &str) -> Result<Duration, Refusal> {
    match text.parse() {
        Ok(number @ 10..=60_000) => Ok(Duration::from_millis(number)),
        _ => refuse(
            text,
            "not a whole number from 10 to 60000",
            "NVML's own numbers change a few times a second; 100 is the default",
        ),
    }
}

/// What random numbers are drawn from, as PyTorch takes it.
pub(super) fn seed(text: &str) -> Result<u64, Refusal> {
    match text.parse() {
        Ok(seed @ 0..=0x7fff_ffff) => Ok(seed),
        _ => refuse(text, "not a whole number from 0 to 2147483647", "any will do, such as 1"),
    }
}

/// Tokens in one sample, of one length or several.
pub(super) fn lengths(text: &str) -> Result<Lengths, Refusal> {
    text.parse().or_else(|reason: String| {
        refuse(
            text,
            &reason,
            "write it as 512, 256,512,1024, 256..4096 (doubling) or 256..2048:256 (in steps)",
        )
    })
}

/// A number of samples, which may be large: `1281167`, `1_281_167`, `1.3M`.
pub(super) fn samples(text: &str) -> Result<u64, Refusal> {
    let plain = text.replace('_', "");
    let (number, unit) = match plain.strip_suffix(['k', 'K', 'M', 'G']) {
        Some(number) if plain.ends_with('M') => (number, 1e6),
        Some(number) if plain.ends_with('G') => (number, 1e9),
        Some(number) => (number, 1e3),
        None => (plain.as_str(), 1.0),
    };
    let samples = number.parse::<f64>().map_or(f64::NAN, |number| number * unit);
    // Up to where a float counts each one.
    let whole = (samples - samples.round()).abs() < 1e-3;
    match (1.0..=9e15).contains(&samples) && whole {
        true => Ok(samples.round() as u64),
        false => {
            refuse(text, "not a whole number of samples", "give a number such as 1281167 or 1.3M")
        }
    }
}

/// A number of GPUs in one machine.
pub(super) fn gpus(text: &str) -> Result<u32, Refusal> {
    const MOST: u32 = Description::MAX_DEVICES as u32;
    match text.parse() {
        Ok(count @ 1..=MOST) => Ok(count),
        _ => refuse(text, "not a whole number from 1 to 16", "a virtual machine has up to 16 GPUs"),
    }
}

/// A number of bytes.
pub(super) fn size(text: &str) -> Result<Bytes, Refusal> {
    text.parse().or_else(|_| refuse(text, "not a size", "write it as 4GiB, 600MiB or plain bytes"))
}

/// Memory of a GPU. A bare `4` means 4 GiB to whoever types it, and 4 bytes to us.
pub(super) fn memory(text: &str) -> Result<Bytes, Refusal> {
    match size(text)? {
        Bytes::ZERO => refuse(text, "no memory at all", "write it as 4GiB or 3800MiB"),
        bytes if bytes < Bytes::mib(1) => {
            refuse(text, "less than any GPU has", "write it with its unit, as 4GiB or 3800MiB")
        }
        bytes => Ok(bytes),
    }
}

/// A percentage or a number of bytes.
pub(super) fn share(text: &str) -> Result<Share, Refusal> {
    text.parse().or_else(|_| {
        refuse(text, "neither a percentage nor a size", "write it as 5% (0 to 100) or 200MiB")
    })
}

/// A value of PyTorch's variable for its allocator; what it may hold is for PyTorch to say.
pub(super) fn alloc_conf(text: &str) -> Result<String, Refusal> {
    match text.trim() {
        conf if conf.contains(':') && !conf.contains(char::is_control) => Ok(conf.to_owned()),
        _ => refuse(text, "no setting of the allocator", "write it as max_split_size_mb:128"),
    }
}

/// A precision.
pub(super) fn precision(text: &str) -> Result<Precision, Refusal> {
    named(text, "no precision", "one of fp32, tf32, bf16, fp16")
}

/// A way to checkpoint.
pub(super) fn checkpoint(text: &str) -> Result<Checkpoint, Refusal> {
    const KNOWN: &str = "one of none, full, selective, every-2, every-3 …, blocks-0-4+8";
    match text {
        "selective" => Ok(Checkpoint::Selective),
        _ => named(text, "no checkpointing", KNOWN).map(Checkpoint::As),
    }
}

/// Something that a command lets vramfit set.
pub(super) fn variable(text: &str) -> Result<Variable, Refusal> {
    Variable::named(text).map_or_else(
        || {
            refuse(
                text,
                "nothing that can be varied",
                "one of micro_batch, accumulation, precision, fp16, bf16, checkpoint, seq, steps",
            )
        },
        Ok,
    )
}

/// An optimizer.
pub(super) fn optimizer(text: &str) -> Result<Optimizer, Refusal> {
    named(text, "no optimizer", "one of sgd, sgd-momentum, adam, adamw")
}

fn named<T: FromStr>(text: &str, reason: &str, hint: &'static str) -> Result<T, Refusal> {
    text.parse().or_else(|_| refuse(text, reason, hint))
}

fn refuse<T>(value: &str, reason: &str, hint: &'static str) -> Result<T, Refusal> {
    Err(Refusal { value: value.to_owned(), reason: reason.to_owned(), hint })
}

/// Turns a value refused here into an error of ours; what else clap says stays clap's own.
///
/// # Errors
/// When `error` is about a value refused here.
pub(super) fn explain(error: clap::Error) -> Result<clap::Error, Error> {
    let Some(refusal) =
        std::error::Error::source(&error).and_then(|it| it.downcast_ref::<Refusal>())
    else {
        return Ok(error);
    };
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(usage)) => usage.split(' ').next().unwrap_or(usage).to_owned(),
        _ => String::new(),
    };
    let Refusal { value, reason, hint } = refusal;
    Err(Error::bad_value(flag, value, reason).hint(*hint))
}
