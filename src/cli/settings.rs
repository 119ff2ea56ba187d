//! Which precisions and kinds of checkpointing are tried: what the flags ask for, the card has, and a
//! user's command lets us set.

use super::choose_gpu::Chosen;
use super::inputs;
use super::values::Checkpoint;
use crate::error::Error;
use crate::measurement::Setting;
use crate::profile::gpu::ComputeCapability;
use crate::solve;
use crate::workload::{Checkpointing, Precision, Subject};

/// The settings to search, those that change least first. Nothing asked for means all that make sense.
///
/// # Errors
/// When the card, or the command, does not have what is asked for.
pub(super) fn all(
    subject: &Subject,
    precisions: &[Precision],
    checkpoints: &[Checkpoint],
    gpu: &Chosen,
) -> Result<Vec<Setting>, Error> {
    for precision in precisions {
        inputs::in_hardware(*precision, gpu)?;
    }
    let capability = gpu.compute_capability();
    let open = offered_precisions(subject);
    check_all(precisions, &open, precision_refused)?;
    let precisions = open.into_iter().filter(|precision| match precisions {
        [] => inputs::has(capability, *precision),
        asked => asked.contains(precision),
    });
    let asked = checkpoints.iter().flat_map(|it| match it {
        Checkpoint::As(checkpointing) => vec![*checkpointing],
        // They lie between these.
        Checkpoint::Selective => vec![Checkpointing::None, Checkpointing::Full],
    });
    let checkpointings = match (checkpoints, offered_checkpointings(subject)) {
        ([], None) => vec![Checkpointing::None, Checkpointing::Full],
        ([], Some(offered)) => offered,
        (_, None) => asked.collect(),
        (checkpoints, Some(offered)) => {
            let offered: Vec<_> = offered.into_iter().map(Checkpoint::As).collect();
            check_all(checkpoints, &offered, checkpointing_refused)?;
            asked.collect()
        }
    };
    let mut settings: Vec<_> = precisions
        .flat_map(|precision| {
            checkpointings.iter().map(move |it| Setting { precision, checkpointing: *it })
        })
        .collect();
    settings
        .sort_by_key(|setting| (solve::recomputation(setting.checkpointing), setting.precision));
    settings.dedup();
    Ok(settings)
}

/// Precisions that are not searched, though nobody said so, since the card would have to emulate them.
pub(super) fn left_out(
    subject: &Subject,
    asked: &[Precision],
    capability: ComputeCapability,
) -> Vec<Precision> {
    let open = if asked.is_empty() { offered_precisions(subject) } else { Vec::new() };
    open.into_iter().filter(|precision| !inputs::has(capability, *precision)).collect()
}

/// The precisions in which blocks are to be chosen, of settings that are searched. By itself it is done
/// in the two that a careful person comes to first, one of 32 and one of 16 bits.
pub(super) fn selective(
    subject: &Subject,
    checkpoints: &[Checkpoint],
    settings: &[Setting],
) -> Vec<Precision> {
    let full = settings.iter().filter(|setting| setting.checkpointing == Checkpointing::Full);
    let mut precisions: Vec<_> = full.map(|setting| setting.precision).collect();
    if checkpoints.contains(&Checkpoint::Selective) {
        return precisions;
    }
    if !checkpoints.is_empty() || subject.command().is_some() {
        return Vec::new();
    }
    precisions.sort_unstable();
    precisions.dedup_by_key(|precision| precision.is_mixed());
    precisions
}

/// One setting; what is not said is the plainest, and so are blocks that are still to be chosen.
///
/// # Errors
/// When the command does not have what is asked for.
pub(super) fn one(
    subject: &Subject,
    precision: Option<Precision>,
    checkpoint: Option<Checkpoint>,
) -> Result<Setting, Error> {
    let open = offered_precisions(subject);
    check_all(precision.as_slice(), &open, precision_refused)?;
    let offered = offered_checkpointings(subject);
    if let Some(offered) = &offered {
        let offered: Vec<_> = offered.iter().copied().map(Checkpoint::As).collect();
        check_all(checkpoint.as_slice(), &offered, checkpointing_refused)?;
    }
    let checkpointing = match checkpoint {
        Some(Checkpoint::As(checkpointing)) => Some(checkpointing),
        Some(Checkpoint::Selective) | None => None,
    };
    let plainest = open.first().copied().unwrap_or(Precision::Fp32);
    let unchecked = offered.and_then(|offered| offered.first().copied());
    Ok(Setting {
        precision: precision.unwrap_or(plainest),
        checkpointing: checkpointing.or(unchecked).unwrap_or(Checkpointing::None),
    })
}

/// What can be set; of a command that leaves nothing, what it does by itself.
fn offered_precisions(subject: &Subject) -> Vec<Precision> {
    match subject.command() {
        None => Precision::ALL.to_vec(),
        Some(command) => command.precisions().unwrap_or_else(|| vec![Precision::AsIs]),
    }
}

/// What a command lets us set; `None` where it is no command, and everything can be.
fn offered_checkpointings(subject: &Subject) -> Option<Vec<Checkpointing>> {
    let command = subject.command()?;
    Some(command.checkpointings().unwrap_or_else(|| vec![Checkpointing::AsIs]))
}

fn check_all<T: PartialEq + ToString>(
    asked: &[T],
    offered: &[T],
    refused: fn(String) -> Error,
) -> Result<(), Error> {
    match asked.iter().find(|it| !offered.contains(it)) {
        Some(missing) => Err(refused(missing.to_string())),
        None => Ok(()),
    }
}

fn precision_refused(value: String) -> Error {
    inputs::without_placeholder("--precision", value)
        .hint("write `{precision}`, `{bf16}` or `{fp16}` where the command takes it")
}

fn checkpointing_refused(value: String) -> Error {
    inputs::without_placeholder("--checkpoint", value)
        .hint("write `{checkpoint}` where the command takes it; it is none or full")
}
