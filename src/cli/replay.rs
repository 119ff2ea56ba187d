//! `vramfit replay`.

use super::args::ReplayArgs;
use super::choose_gpu::{self, Chosen};
use super::output::Output;
use super::twin;
use crate::device::{Setup, budget, twin_profile};
use crate::error::{Error, ErrorKind, ExitStatus};
use crate::probe::{Interrupt, python};
use crate::profile::Catalog;
use crate::profile::gpu::GpuProfile;
use crate::replay::{Card, Fit, Likeness, Player, Trial, settings, trials};
use crate::report::{
    REPLAY_SCHEMA, ReplayDocument, ReplayedDevice, ReplayedOn, ReplayedSetting, SmallestGpu,
    replay, replay_notes,
};
use crate::snapshot::{Begin, History, Snapshot, Trace};
use crate::units::Bytes;

/// Where only sizes are asked for, it is of this one, with as much memory as it takes. The allocator
/// does nothing by it but count.
const ANY: &str = "rtx-4090";

pub(super) fn run(
    args: &ReplayArgs,
    catalog: &Catalog,
    output: &Output,
) -> Result<ExitStatus, Error> {
    let snapshot = Snapshot::read(&args.snapshot)?;
    let traces = chosen(&snapshot, args)?;
    let replayer = Replayer {
        args,
        catalog,
        target: target(args, catalog, output)?,
        player: Player { python: python(), interrupt: Interrupt::install() },
        recorded: &snapshot.settings,
    };
    let mut document = replayer.document();
    let mut verdicts = Vec::new();
    for trace in traces {
        let (device, trials) = replayer.device(trace)?;
        known(&trials)?;
        document.torch = document.torch.or_else(|| torch(&trials));
        verdicts.push(verdict(&trials));
        document.devices.push(device);
    }
    let verdict = verdicts.into_iter().try_fold(true, |all, fits| fits.map(|fits| all && fits));
    if replayer.target.limited {
        document.fits = verdict.as_ref().ok().copied();
    }
    match args.json {
        true => output.json(&document)?,
        false => output.data(&replay(&document))?,
    }
    verdict?;
    Ok(match document.fits {
        Some(false) => ExitStatus::DoesNotFit,
        _ => ExitStatus::Done,
    })
}

fn chosen<'a>(snapshot: &'a Snapshot, args: &ReplayArgs) -> Result<Vec<&'a Trace>, Error> {
    let Some(index) = args.device_index else { return Ok(snapshot.devices.iter().collect()) };
    let found: Vec<_> = snapshot.devices.iter().filter(|trace| trace.device == index).collect();
    if found.is_empty() {
        let there: Vec<_> =
            snapshot.devices.iter().map(|trace| format!("`{}`", trace.device)).collect();
        let error = Error::bad_value(
            "--device",
            index.to_string(),
            "no event of that device is in the snapshot",
        );
        return Err(error.hint(format!("there are events of {}", there.join(", "))));
    }
    Ok(found)
}

/// The card, and whether its memory is a limit.
struct Target {
    card: Card,
    limited: bool,
}

fn target(args: &ReplayArgs, catalog: &Catalog, output: &Output) -> Result<Target, Error> {
    let setup = choose_gpu::setup(&args.device);
    let limited = |card| Target { card, limited: true };
    match choose_gpu::choose_if_any(&args.device, catalog, output)? {
        Some(Chosen::Virtual(profile)) => Card::new(*profile, setup).map(limited),
        Some(Chosen::Real(card)) => {
            let profile = twin_profile(&card, twin::profile_of(&card, catalog)?.as_ref());
            Ok(limited(Card::with_budget(profile, card.budget)))
        }
        None => {
            let card = Card::new(catalog.gpu(ANY)?, Setup::default())?;
            Ok(Target { card, limited: false })
        }
    }
}

struct Replayer<'a> {
    args: &'a ReplayArgs,
    catalog: &'a Catalog,
    target: Target,
    player: Player,
    recorded: &'a str,
}

impl Replayer<'_> {
    fn document(&self) -> ReplayDocument {
        let card = &self.target.card;
        let gpu = self.target.limited.then(|| ReplayedOn {
            name: card.profile().name.clone(),
            product: card.profile().product.clone(),
            budget: card.budget().budget,
            context: card.context(),
        });
        ReplayDocument {
            schema: REPLAY_SCHEMA,
            snapshot: self.args.snapshot.to_string_lossy().into_owned(),
            vramfit: env!("CARGO_PKG_VERSION"),
            torch: None,
            gpu,
            fits: None,
            devices: Vec::new(),
        }
    }

    fn device(&self, trace: &Trace) -> Result<(ReplayedDevice, Vec<Trial>), Error> {
        let history = trace.history();
        let Target { card, limited } = &self.target;
        let asked = &self.args.alloc_conf;
        let all = settings(self.recorded, history.is_whole(), asked, limited.then_some(card));
        let trials = trials(&history, all, card, *limited, &self.player)?;
        let recorded = trials.first().and_then(|trial| trial.needs.as_ref().ok());
        let likeness = recorded.map(|answer| Likeness::of(trace, answer));
        let needs = recorded.map(|answer| answer.peaks.reserved);
        let device = ReplayedDevice {
            device: trace.device,
            events: trace.events.len(),
            recorded: history.recorded(),
            live_before: history.live_before(),
            reserved_before: history.reserved_before(),
            likeness,
            settings: self.rows(&trials),
            smallest_gpu: needs.map(|needs| self.smallest(needs)).transpose()?.flatten(),
            notes: self.notes(&history, &trials),
        };
        Ok((device, trials))
    }

    fn rows(&self, trials: &[Trial]) -> Vec<ReplayedSetting> {
        let row = |trial: &Trial| {
            let peaks = trial.needs.as_ref().ok().map(|answer| answer.peaks);
            let recorded = trials.first().is_some_and(|it| it.setting.conf == trial.setting.conf);
            ReplayedSetting {
                conf: trial.setting.conf.clone(),
                recorded,
                asked: trial.setting.asked,
                begin: trial.setting.begin,
                memory_fraction: trial.setting.memory_fraction,
                peaks,
                device_peak: peaks.map(|peaks| peaks.reserved + self.target.card.context()),
                fit: trial.fit,
                flushes: match trial.fit {
                    Some(Fit::ByFlushing(times)) => times,
                    _ => 0,
                },
                out_of_memory: match trial.fit {
                    Some(Fit::DoesNotFit(failed)) => Some(failed),
                    _ => None,
                },
                refused: trial.needs.as_ref().err().map(|refused| refused.reason.clone()),
            }
        };
        trials.iter().map(row).collect()
    }

    /// The smallest card of the catalog whose budget holds this much beside its context.
    fn smallest(&self, needs: Bytes) -> Result<Option<SmallestGpu>, Error> {
        let setup = Setup { vram: None, ..choose_gpu::setup(&self.args.device) };
        let holds = self.catalog.gpus()?.into_iter().filter(|gpu| {
            budget(gpu, setup).is_ok_and(|it| needs + gpu.context.value <= it.budget)
        });
        let smallest = holds.min_by(|one, other| {
            let key = |gpu: &GpuProfile| gpu.total_memory.value;
            key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
        });
        Ok(smallest.map(|gpu| SmallestGpu {
            device_peak: needs + gpu.context.value,
            memory: gpu.total_memory.value,
            name: gpu.name,
        }))
    }

    fn notes(&self, history: &History<'_>, trials: &[Trial]) -> Vec<String> {
        let begin = trials.first().map_or(Begin::Afresh, |trial| trial.setting.begin);
        let fraction = trials
            .iter()
            .find_map(|trial| Some((trial.setting.conf.as_str(), trial.setting.memory_fraction?)));
        let context = self.target.limited.then(|| self.target.card.context());
        replay_notes(history, &history.script(begin), fraction, context)
    }
}

fn torch(trials: &[Trial]) -> Option<String> {
    trials.iter().find_map(|trial| Some(trial.needs.as_ref().ok()?.torch.clone()))
}

/// Whether it fits, with a setting that was asked for or, where none was, as recorded.
///
/// # Errors
/// When none of these can be replayed.
fn verdict(trials: &[Trial]) -> Result<bool, Error> {
    let asked = trials.iter().any(|trial| trial.setting.asked);
    let counted: Vec<_> = match asked {
        true => trials.iter().filter(|trial| trial.setting.asked).collect(),
        false => trials.iter().take(1).collect(),
    };
    // That it does not fit is an answer, whatever it would need.
    let unanswered = counted.iter().filter(|trial| trial.fit.is_none());
    let refusals: Vec<_> = unanswered.filter_map(|trial| trial.needs.as_ref().err()).collect();
    match refusals.first() {
        Some(refused) if refusals.len() == counted.len() => {
            Err(ErrorKind::ReplayFailed { reason: refused.reason.clone() }.into())
        }
        _ => Ok(counted.iter().any(|trial| trial.fit == Some(Fit::Fits))),
    }
}

/// Refuses a setting that was asked for and that PyTorch does not know.
fn known(trials: &[Trial]) -> Result<(), Error> {
    let refused = |trial: &Trial| {
        let refused = trial.needs.as_ref().err().filter(|refused| refused.bad_setting)?;
        trial.setting.asked.then(|| {
            Error::bad_value("--alloc-conf", &trial.setting.conf, &refused.reason)
                .hint("it is what PYTORCH_CUDA_ALLOC_CONF would hold: max_split_size_mb:128")
        })
    };
    trials.iter().find_map(refused).map_or(Ok(()), Err)
}
