//! All settings of a trace, several at a time.

use std::thread::{self, ScopedJoinHandle};

use super::answer::{Answer, OutOfMemory};
use super::child::{Job, Played};
use super::files::Files;
use super::settings::Setting;
use super::{Card, Player};
use crate::error::{Error, ErrorKind};
use crate::snapshot::{Begin, History};

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

/// Replays a trace with each setting: on the card and, where it has no memory for it, on a boundless
/// one, to learn how much it needs. Without a limit, on the boundless one alone.
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
    let recorded = Files::of(&history.script(Begin::AsRecorded))?;
    let afresh = Files::of(&history.script(Begin::Afresh))?;
    let job = |index: usize, memory_fraction| Job {
        conf: &settings[index].conf,
        memory_fraction,
        files: match settings[index].begin {
            Begin::AsRecorded => &recorded,
            Begin::Afresh => &afresh,
        },
    };
    let boundless = card.boundless(history);
    let jobs: Vec<_> =
        (0..settings.len()).map(|index| job(index, settings[index].memory_fraction)).collect();
    let first = play_all(player, if limited { card } else { &boundless }, &jobs)?;
    let mut trials: Vec<_> = settings
        .iter()
        .zip(first)
        .map(|(setting, played)| trial(setting, played, limited))
        .collect();
    let wanting: Vec<_> = (0..trials.len()).filter(|index| trials[*index].wants_memory()).collect();
    // Without the limit that a process sets itself.
    let jobs: Vec<_> = wanting.iter().map(|index| job(*index, None)).collect();
    for (index, played) in wanting.into_iter().zip(play_all(player, &boundless, &jobs)?) {
        trials[index].needs = needs(played);
    }
    for trial in &mut trials {
        trial.refuse_what_no_card_has(limited);
    }
    Ok(trials)
}

impl Trial {
    /// What was held when even the boundless card had no more says nothing of what is needed.
    fn refuse_what_no_card_has(&mut self, limited: bool) {
        let ran_on_card = limited && !self.wants_memory();
        if let Ok(Answer { out_of_memory: Some(OutOfMemory { requested, .. }), .. }) = &self.needs
            && !ran_on_card
        {
            let reason = format!("no card has room for the {requested} that it asks for at once");
            self.needs = Err(Refused { reason, bad_setting: false });
        }
    }

    /// What it held is that of a want of memory.
    fn wants_memory(&self) -> bool {
        self.needs.is_ok() && matches!(self.fit, Some(Fit::ByFlushing(_) | Fit::DoesNotFit(_)))
    }
}

fn trial(setting: &Setting, played: Played, limited: bool) -> Trial {
    let needs = needs(played);
    let fit = needs.as_ref().ok().filter(|_| limited).map(|answer| {
        match (answer.out_of_memory, answer.retries) {
            (Some(failed), _) => Fit::DoesNotFit(failed),
            (None, 0) => Fit::Fits,
            (None, retries) => Fit::ByFlushing(retries),
        }
    });
    Trial { setting: setting.clone(), needs, fit }
}

fn needs(played: Played) -> Result<Answer, Refused> {
    match played {
        Played::Through(answer) => Ok(answer),
        Played::Refused { reason, bad_setting } => Err(Refused { reason, bad_setting }),
    }
}

/// Several jobs at a time, by half as many children as there are processors: each imports PyTorch
/// once, for all its jobs, which takes longer than a job.
fn play_all(player: &Player, card: &Card, jobs: &[Job<'_>]) -> Result<Vec<Played>, Error> {
    let spare = thread::available_parallelism().map_or(1, usize::from).div_ceil(2);
    // Another allocator is chosen when PyTorch is loaded.
    let (alone, together): (Vec<usize>, Vec<usize>) =
        (0..jobs.len()).partition(|index| jobs[*index].conf.contains("backend"));
    let size = together.len().div_ceil(spare).max(1);
    let groups: Vec<&[usize]> = together.chunks(size).chain(alone.chunks(1)).collect();
    let mut played: Vec<Option<Played>> = jobs.iter().map(|_| None).collect();
    for some in groups.chunks(spare) {
        let play = |group: &[usize]| {
            let jobs: Vec<_> = group.iter().map(|index| jobs[*index]).collect();
            player.play(card, &jobs)
        };
        let results: Vec<_> = thread::scope(|scope| {
            let running: Vec<_> =
                some.iter().map(|group| scope.spawn(move || play(group))).collect();
            running.into_iter().map(ScopedJoinHandle::join).collect()
        });
        for (group, result) in some.iter().zip(results) {
            let result = result.unwrap_or_else(|_| Err(lost()))?;
            for (index, answer) in group.iter().zip(result) {
                played[*index] = Some(answer);
            }
        }
    }
    played.into_iter().map(|answer| answer.ok_or_else(lost)).collect()
}

fn lost() -> Error {
    ErrorKind::ReplayFailed { reason: "a thread ended without an answer".to_owned() }.into()
}
