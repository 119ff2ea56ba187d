//! From flags to what they mean: the questions that need a profile to answer.

use std::env;
use std::fs::{self, File};
use std::io;

use super::args::WorkloadArgs;
use super::choose_gpu::Chosen;
use super::values::FunctionName;
use crate::error::{Error, ErrorKind};
use crate::probe::python;
use crate::profile::Catalog;
use crate::profile::gpu::ComputeCapability;
use crate::profile::model::ModelProfile;
use crate::workload::{
    Command, Function, Lengths, OptimizerImplementation, Precision, Subject, Variable, Workload,
};

/// Sequence in tokens where none is asked for and the model takes longer ones.
const DEFAULT_SEQUENCE: u32 = 1024;

/// What is to be trained; of several lengths asked for, at the shortest.
pub(super) fn workload(
    args: &WorkloadArgs,
    lengths: Option<&Lengths>,
    catalog: &Catalog,
) -> Result<Workload, Error> {
    let asked = lengths.map(Lengths::shortest);
    let (subject, sequence, optimizer) = match &args.workload {
        None if !args.command.is_empty() => {
            (Subject::Command(command(args, lengths)?), asked, args.optimizer)
        }
        Some(named) => {
            let function = function(named)?;
            // What it does without a flag is for it to say.
            (Subject::Function(function), asked, args.optimizer)
        }
        None => {
            let (model, sequence) = built_in(&args.model, asked, catalog)?;
            (Subject::BuiltIn(model), sequence, Some(args.optimizer.unwrap_or_default()))
        }
    };
    let workload = Workload {
        subject,
        sequence,
        optimizer,
        optimizer_implementation: OptimizerImplementation::default(),
        gradient_clipping: None,
    };
    workload.check_sequence()?;
    Ok(workload)
}

/// The user's command, which is run where we are run.
fn command(args: &WorkloadArgs, lengths: Option<&Lengths>) -> Result<Command, Error> {
    let words = args.command.iter().map(|word| {
        let text = word.to_str().ok_or_else(|| word.to_string_lossy().into_owned());
        text.map(str::to_owned)
    });
    let words: Result<Vec<_>, String> = words.collect();
    let words = words.map_err(|word| ErrorKind::NotUtf8 { word })?;
    let folder = env::current_dir().map_err(|_| Error::new(ErrorKind::NoWorkingDirectory))?;
    let command = Command::new(words, folder, args.vary.clone())?;
    match (lengths, command.varies(Variable::Seq)) {
        (None, true) => Err(Error::new(ErrorKind::SequenceUnsaid { command: command.name() })),
        (Some(lengths), false) => Err(without_placeholder("--seq", lengths.to_string())
            .hint("write `{seq}` where the command takes it")),
        _ => Ok(command),
    }
}

/// What a flag asks for, and the command has no place for.
pub(super) fn without_placeholder(flag: &str, value: String) -> Error {
    Error::bad_value(flag, value, "the command has no placeholder that sets it")
}

/// The user's function, whose file is there.
pub(super) fn function(named: &FunctionName) -> Result<Function, Error> {
    let unreadable = |source| {
        Error::new(ErrorKind::Unreadable { path: named.file.clone().into(), source })
            .hint("`--workload` takes a Python file and a function: train.py:workload")
    };
    let file = std::path::absolute(&named.file).map_err(unreadable)?;
    File::open(&file).and_then(|file| file.metadata()).map_err(unreadable).and_then(|found| {
        match found.is_file() {
            true => Ok(()),
            false => Err(unreadable(io::ErrorKind::IsADirectory.into())),
        }
    })?;
    Ok(Function { file, name: named.name.clone(), python: python() })
}

/// Whether what a plan was made for can still be trained.
pub(super) fn still_there(workload: &Workload) -> Result<(), Error> {
    let (path, found) = match &workload.subject {
        Subject::BuiltIn(_) => return Ok(()),
        Subject::Function(function) => (&function.file, File::open(&function.file).map(drop)),
        Subject::Command(command) => (&command.folder, fs::read_dir(&command.folder).map(drop)),
    };
    found.map_err(|source| ErrorKind::Unreadable { path: path.clone(), source }.into())
}

fn built_in(
    name: &str,
    asked: Option<u32>,
    catalog: &Catalog,
) -> Result<(ModelProfile, Option<u32>), Error> {
    let model = catalog.model(name)?;
    let longest = model.architecture.max_sequence();
    let sequence = asked.or_else(|| longest.map(|longest| longest.min(DEFAULT_SEQUENCE)));
    Ok((model, sequence))
}

/// Whether the card computes in this precision, rather than emulating it.
pub(super) fn has(capability: ComputeCapability, precision: Precision) -> bool {
    match precision {
        Precision::Fp32 | Precision::Fp16 | Precision::AsIs => true,
        Precision::Tf32 => capability.has_tf32(),
        Precision::Bf16 => capability.has_bf16(),
    }
}

/// Refuses a precision that the card would have to emulate.
pub(super) fn in_hardware(precision: Precision, gpu: &Chosen) -> Result<(), Error> {
    let capability = gpu.compute_capability();
    if has(capability, precision) {
        return Ok(());
    }
    Err(ErrorKind::NoHardware {
        precision: precision.name(),
        gpu: gpu.name().to_owned(),
        capability: capability.to_string(),
    }
    .into())
}
