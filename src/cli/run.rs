//! `vramfit run`.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Instant;

use super::args::{RunArgs, UnknownSizes};
use super::output::Output;
use super::{choose_gpu, pages, two_files, waiting};
use crate::destination::Destination;
use crate::device::{PythonSetup, RunReports, Snapshots, VirtualGpu, read_run_reports};
use crate::error::{Error, ErrorKind};
use crate::profile::Catalog;
use crate::report::{RUN_SCHEMA, RunDocument, run_summary};
use crate::workload;

pub(super) fn run(args: &RunArgs, catalog: &Catalog, output: &Output) -> Result<ExitCode, Error> {
    two_files::told_apart(&[("--report", &args.report), ("--snapshot", &args.snapshot)])?;
    let setup = choose_gpu::setup(&args.device);
    let count = args.gpus.or_else(|| ranks(&args.command)).unwrap_or(1);
    let gpu = choose_gpu::open_virtual(&args.device.gpu, catalog, setup, count)?;
    let report = args.report.as_deref().map(Destination::open).transpose()?;
    let is_page = args.report.as_deref().is_some_and(pages::is_page);
    let snapshots = match args.snapshot.as_deref() {
        Some(path) => Some(prepare_snapshots(path, output)?),
        None if is_page => Some(Snapshots::passing()?),
        None => None,
    };
    let begun = Instant::now();
    let status = start(args, &gpu, snapshots.as_ref())?;
    let seen = read_run_reports(gpu.folder());
    let document = run_document(&args.command, &gpu, &seen, status, begun);
    for line in run_summary(&document, &seen, args.timeline) {
        output.say(&format!("vramfit: {line}"));
    }
    let written = report.map_or(Ok(()), |file| match is_page {
        true => file.write(&pages::of_run(&document, &seen, snapshots.as_ref())),
        false => output.json_to(&document, &file),
    });
    if let Some(snapshots) = snapshots.filter(|_| args.snapshot.is_some()) {
        tell_snapshots(snapshots, output);
    }
    // Whoever runs this in place of the command goes by the command's status, whatever else fails.
    if let Err(error) = written {
        output.error(&error);
    }
    Ok(exit_code(status))
}

/// What is known of a run that has ended.
pub(super) fn run_document<'a>(
    command: &[OsString],
    gpu: &'a VirtualGpu,
    seen: &'a RunReports,
    status: ExitStatus,
    begun: Instant,
) -> RunDocument<'a> {
    RunDocument {
        schema: RUN_SCHEMA,
        command: command.iter().map(|it| it.to_string_lossy().into_owned()).collect(),
        gpu: gpu.product(),
        gpus: gpu.count(),
        budget: gpu.budget().budget,
        exit_status: status.code(),
        signal: status.signal(),
        seconds: begun.elapsed().as_secs_f64(),
        processes: &seen.reports,
    }
}

/// Gets ready for snapshots, and says what they will replace.
pub(super) fn prepare_snapshots(path: &Path, output: &Output) -> Result<Snapshots, Error> {
    let snapshots = Snapshots::prepare(path)?;
    if path.exists() {
        output.say(&format!("vramfit: `{}` is there and will be replaced", path.display()));
    }
    Ok(snapshots)
}

/// Says where the snapshots are.
pub(super) fn tell_snapshots(snapshots: Snapshots, output: &Output) {
    match snapshots.collect() {
        Ok(files) if files.is_empty() => {
            output.say("vramfit: no snapshot: no Python process used the GPU through PyTorch");
        }
        Ok(files) => {
            for file in files {
                let path = file.path.display();
                let replaced =
                    if file.replaced { ", in place of the one that was there" } else { "" };
                output.say(&format!("vramfit: snapshot in `{path}`{replaced}"));
            }
        }
        Err(error) => output.error(&error),
    }
}

fn start(
    args: &RunArgs,
    gpu: &VirtualGpu,
    snapshots: Option<&Snapshots>,
) -> Result<ExitStatus, Error> {
    // clap sees to it that there is one.
    let Some((program, arguments)) = args.command.split_first() else {
        return Ok(ExitStatus::default());
    };
    let python = PythonSetup {
        shadow: !args.no_shadow,
        lowest_sizes: args.unknown_sizes == UnknownSizes::Lowest,
    };
    let mut command = Command::new(program);
    command.args(arguments).envs(gpu.environment()).envs(gpu.python_environment(python));
    command.envs(snapshots.map(Snapshots::environment));
    waiting::status(&mut command, |_| ()).map_err(|source| {
        let program = program.to_string_lossy().into_owned();
        ErrorKind::ProgramStart { program, source }.into()
    })
}

/// The GPUs that a launcher is asked to use.
pub(super) fn ranks(command: &[OsString]) -> Option<u32> {
    let words: Vec<_> = command.iter().map(|it| it.to_string_lossy()).collect();
    workload::ranks(&words)
}

/// The command's own status; of one that ended by a signal, 128 and the signal, as shells do.
pub(super) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
