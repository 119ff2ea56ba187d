//! `vramfit watch`.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus as ProcessStatus};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::args::WatchArgs;
use super::choose_gpu::{self, Chosen};
use super::output::Output;
use super::run::{exit_code, prepare_snapshots, ranks, run_document, tell_snapshots};
use super::{two_files, waiting};
use crate::destination::Destination;
use crate::device::{
    Gpu, Platform, PythonSetup, RealGpus, Snapshots, VirtualGpu, read_run_reports,
};
use crate::error::{Error, ErrorKind, ExitStatus};
use crate::profile::Catalog;
use crate::report::{WatchDocument, run_summary, watch_lines, watch_page};
use crate::watch::{
    self, Hooks, Meter, RECORDING_SCHEMA, RecordFile, Replayed, Seen, Setup, Told, Watched,
    Watching, read_recording,
};

pub(super) fn run(args: &WatchArgs, catalog: &Catalog, output: &Output) -> Result<ExitCode, Error> {
    two_files::told_apart(&[
        ("--replay", &args.replay),
        ("--record", &args.record),
        ("--findings", &args.findings),
        ("--report", &args.report),
        ("--snapshot", &args.snapshot),
    ])?;
    match &args.replay {
        Some(path) => replay(path, args, output).map(ExitCode::from),
        None => live(args, catalog, output),
    }
}

/// Looks at a recording; whether something is found is the answer.
fn replay(path: &Path, args: &WatchArgs, output: &Output) -> Result<ExitStatus, Error> {
    let findings = args.findings.as_deref().map(Destination::open).transpose()?;
    let page = args.report.as_deref().map(Destination::open).transpose()?;
    let Replayed { recording, cut_off } = read_recording(path)?;
    if cut_off {
        output.say(&format!("vramfit: `{}` is cut off in its last line", path.display()));
    }
    let found = watch::find(&recording);
    let document = WatchDocument::new(&recording, &found);
    // Each is tried, whichever fails.
    let written = findings.map_or(Ok(()), |file| output.json_to(&document, &file));
    let shown = page.map_or(Ok(()), |file| file.write(&watch_page(&recording, &found)));
    match args.json {
        true => output.json(&document)?,
        false => output.data(&watch_lines(&document).join("\n"))?,
    }
    written?;
    shown?;
    Ok(match document.findings.is_empty() {
        true => ExitStatus::Done,
        false => ExitStatus::DoesNotFit,
    })
}

fn live(args: &WatchArgs, catalog: &Catalog, output: &Output) -> Result<ExitCode, Error> {
    let place = Place::choose(args, catalog, output)?;
    let findings = args.findings.as_deref().map(Destination::open).transpose()?;
    let page = args.report.as_deref().map(Destination::open).transpose()?;
    let snapshots = args.snapshot.as_deref().map(|it| prepare_snapshots(it, output)).transpose()?;
    let meter = place.meter();
    let all_virtual = meter.gpus().iter().all(|gpu| gpu.virtual_gpu);
    let hooks = Hooks::lay_out(args.stacks || all_virtual)?;
    let mut command = command(args, &place, &hooks)?;
    command.envs(snapshots.as_ref().map(Snapshots::environment));
    let watched = Watched {
        schema: RECORDING_SCHEMA,
        vramfit: env!("CARGO_PKG_VERSION").to_owned(),
        started: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs()),
        command: args.command.iter().map(|it| it.to_string_lossy().into_owned()).collect(),
        gpus: meter.gpus().to_vec(),
        may_spill: place.virtual_gpu().is_none() && Platform::here().is_windows(),
    };
    let record = args.record.as_deref().map(RecordFile::create).transpose()?;
    let setup = Setup { watched, meter, hooks, record, interval: args.interval };
    let watching = Watching::begin(setup, |told| tell(&told))?;
    let begun = Instant::now();
    let status = waiting::status(&mut command, |pid| watching.started(pid)).map_err(|source| {
        let program = args.command.first().map(|it| it.to_string_lossy().into_owned());
        Error::new(ErrorKind::ProgramStart { program: program.unwrap_or_default(), source })
    })?;
    let seen = watching.end(status);
    if let Some(gpu) = place.virtual_gpu() {
        tell_run(args, gpu, status, begun, output);
    }
    if let Some(snapshots) = snapshots {
        tell_snapshots(snapshots, output);
    }
    match seen {
        Some(seen) => tell_seen(&seen, findings.as_ref(), page.as_ref(), output),
        None => output.say("vramfit: watching has failed, and tells nothing"),
    }
    Ok(exit_code(status))
}

/// On what the program runs.
enum Place {
    /// One GPU, which it is put on.
    One(Gpu),
    /// The GPUs of this machine, of which it takes what it likes.
    Machine(RealGpus),
}

impl Place {
    fn choose(args: &WatchArgs, catalog: &Catalog, output: &Output) -> Result<Self, Error> {
        let device = &args.device;
        let setup = choose_gpu::setup(device);
        if device.gpu == "auto" {
            if let Some(flag) = of_a_virtual_gpu(args) {
                return Err(Error::new(ErrorKind::FlagOfVirtualGpu { flag }));
            }
            let machine = RealGpus::find()?;
            return machine.map(Self::Machine).ok_or_else(|| ErrorKind::NothingToWatch.into());
        }
        let chosen = choose_gpu::choose(device, catalog, output)?;
        if let (Chosen::Real(_), Some(flag)) = (&chosen, of_a_virtual_gpu(args)) {
            return Err(Error::new(ErrorKind::FlagOfVirtualGpu { flag }));
        }
        let count = args.gpus.or_else(|| ranks(&args.command)).unwrap_or(1);
        let count = if matches!(chosen, Chosen::Real(_)) { 1 } else { count };
        chosen.open(setup, count).map(Self::One)
    }

    fn virtual_gpu(&self) -> Option<&VirtualGpu> {
        match self {
            Self::One(Gpu::Virtual(gpu)) => Some(gpu),
            _ => None,
        }
    }

    fn meter(&self) -> Meter {
        match self {
            Self::One(gpu @ Gpu::Real(_)) => {
                Meter::new(gpu.nvml().clone(), &[gpu.uuid().to_owned()])
            }
            Self::One(gpu @ Gpu::Virtual(_)) => Meter::of_all(gpu.nvml().clone()),
            Self::Machine(gpus) => {
                let visible = env::var("CUDA_VISIBLE_DEVICES").ok();
                let cards = gpus.list();
                let uuids = cards.into_iter().map(|(_, uuid, _)| uuid);
                let named = |uuid: &String| {
                    visible.as_ref().is_none_or(|list| {
                        // By index, CUDA's order need not be NVML's: all are watched then.
                        let by_uuid: Vec<_> =
                            list.split(',').filter(|it| it.starts_with("GPU-")).collect();
                        by_uuid.is_empty() || by_uuid.iter().any(|it| uuid.starts_with(it))
                    })
                };
                Meter::new(gpus.nvml().clone(), &uuids.filter(named).collect::<Vec<_>>())
            }
        }
    }
}

/// A flag that was given and makes sense for a virtual GPU alone.
fn of_a_virtual_gpu(args: &WatchArgs) -> Option<&'static str> {
    let device = &args.device;
    let given = [
        (device.vram.is_some(), "--vram"),
        (device.platform.is_some(), "--platform"),
        (device.reserve.is_some(), "--reserve"),
        (device.margin.is_some(), "--margin"),
        (args.gpus.is_some(), "--gpus"),
    ];
    given.into_iter().find_map(|(given, flag)| given.then_some(flag))
}

fn command(args: &WatchArgs, place: &Place, hooks: &Hooks) -> Result<Command, Error> {
    // clap sees to it that there is one.
    let empty = OsString::new();
    let (program, arguments) = args.command.split_first().unwrap_or((&empty, &[]));
    let mut command = Command::new(program);
    command.args(arguments).envs(hooks.environment());
    match place {
        Place::One(Gpu::Virtual(gpu)) => {
            command.envs(gpu.environment());
            command.envs(gpu.python_environment(PythonSetup::default()));
        }
        Place::One(gpu) => drop(command.envs(gpu.environment()).envs(hooks.python()?)),
        Place::Machine(_) => drop(command.envs(hooks.python()?)),
    }
    Ok(command)
}

/// While the program runs: a line of its own each, for the program writes there as well.
fn tell(told: &Told<'_>) {
    match told {
        Told::Found(finding) => Output.say(&format!("vramfit: {}", finding.headline())),
        Told::RecordLost(error) => {
            Output.error(error);
            Output.say("hint: the recording ends there; the program goes on, and is watched");
        }
    }
}

/// What `vramfit run` says.
fn tell_run(
    args: &WatchArgs,
    gpu: &VirtualGpu,
    status: ProcessStatus,
    begun: Instant,
    output: &Output,
) {
    let seen = read_run_reports(gpu.folder());
    let document = run_document(&args.command, gpu, &seen, status, begun);
    for line in run_summary(&document, &seen, false) {
        output.say(&format!("vramfit: {line}"));
    }
}

fn tell_seen(seen: &Seen, file: Option<&Destination>, page: Option<&Destination>, output: &Output) {
    let Some(findings) = &seen.findings else {
        return output.say("vramfit: looking for what goes wrong has failed; a recording is whole");
    };
    let document = WatchDocument::new(&seen.recording, findings);
    for line in watch_lines(&document) {
        output.say(&format!("vramfit: {line}"));
    }
    // Whoever runs this in place of the program goes by the program's status, whatever else fails.
    let written = file.map(|file| output.json_to(&document, file));
    let shown = page.map(|file| file.write(&watch_page(&seen.recording, findings)));
    for error in written.into_iter().chain(shown).filter_map(Result::err) {
        output.error(&error);
    }
}
