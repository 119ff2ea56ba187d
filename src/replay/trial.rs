//! All settings of a trace, several at a time.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

use super::answer::{Answer, OutOfMemory};
use super::child::{Files, Played};
use super::settings::Setting;
use super::{Card, Player};
use crate::error::Error;
use crate::snapshot::{Begin, History, Script};

/// A setting, and what came of it.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The setting.
    pub setting: Setting,
    /// What the allocator held without want of memory; else why the setting cannot be replayed.
    pub needs: Result<Answer, Refused>,
    /// Whether it runs on the card; `None` without one.
    pub fit: Option<Fit>,
}

/// Why a setting cannot be replayed.
#[derive(Clone, Debug)]
pub struct Refused {
    /// In words.
    pub reason: String,
    /// PyTorch does not know it.
    pub bad_setting: bool,
}

/// Whether a trace runs on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It does.
    Fits,
    /// The allocator has to empty its cache so many times: it runs, but slower, and on the edge.
    ByFlushing(u64),
    /// It has no memory for a request.
    DoesNotFit(OutOfMemory),
}

/// Replays a trace with each setting.
///
/// # Errors
/// When a child fails, or the user asked to stop.
pub fn trials(
    history: &History<'_>,
    settings: Vec<Setting>,
    card: &Card,
    limited: bool,
    player: &Player,
) -> Result<Vec<Trial>, Error> {
    let prepared = |begin| {
        let script = history.script(begin);
        Files::of(&script).map(|files| (script, files))
    };
    let (recorded, afresh) = (prepared(Begin::AsRecorded)?, prepared(Begin::Afresh)?);
    let try_one = |setting: &Setting| {
        let (script, files) = match setting.begin {
            Begin::AsRecorded => &recorded,
            Begin::Afresh => &afresh,
        };
        trial(setting, script, files, card, limited, player)
    };
    let count = settings.len();
    let next = Mutex::new(settings.into_iter().enumerate());
    let done: Mutex<Vec<_>> = Mutex::new(Vec::with_capacity(count));
    let workers = thread::available_parallelism().map_or(1, usize::from).min(count);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some((index, setting)) =
                        next.lock().unwrap_or_else(PoisonError::into_inner).next()
                    else {
                        break;
                    };
                    let result = try_one(&setting);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

fn trial(
    setting: &Setting,
    script: &Script,
    files: &Files,
    card: &Card,
    limited: bool,
    player: &Player,
) -> Result<Trial, Error> {
    let boundless = card.boundless();
    let first = player.play(if limited { card } else { &boundless }, setting, script, files)?;
    let answer = match first {
        Played::Through(answer) => answer,
        Played::Refused { reason, bad_setting } => {
            let needs = Err(Refused { reason, bad_setting });
            return Ok(Trial { setting: setting.clone(), needs, fit: None });
        }
    };
    let fit = match (answer.out_of_memory, answer.retries) {
        (Some(failed), _) => Fit::DoesNotFit(failed),
        (None, 0) => Fit::Fits,
        (None, retries) => Fit::ByFlushing(retries),
    };
    let needs = match fit {
        Fit::Fits => Ok(answer),
        // Its peaks are those of a want of memory. How much it needs without one is asked anew, and
        // without the limit that a process sets itself.
        _ => {
            let free = Setting { memory_fraction: None, ..setting.clone() };
            match player.play(&boundless, &free, script, files)? {
                Played::Through(answer) => Ok(answer),
                Played::Refused { reason, bad_setting } => Err(Refused { reason, bad_setting }),
            }
        }
    };
    Ok(Trial { setting: setting.clone(), needs, fit: limited.then_some(fit) })
}
