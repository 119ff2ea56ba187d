//! `vramfit run`.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use super::args::RunArgs;
use super::choose_gpu;
use super::output::Output;
use crate::device::{RunReports, VirtualGpu, read_run_reports};
use crate::error::{Error, ErrorKind};
use crate::probe::Interrupt;
use crate::profile::Catalog;
use crate::units::Bytes;

pub(super) fn run(args: &RunArgs, catalog: &Catalog, output: &Output) -> Result<ExitCode, Error> {
    let setup = choose_gpu::setup(&args.device);
    let gpu = choose_gpu::open_virtual(&args.device.gpu, catalog, setup)?;
    // The terminal sends Ctrl-C to the command as well; this program waits for how it takes it.
    let _waiting = Interrupt::install();
    // clap sees to it that there is one.
    let [program, arguments @ ..] = args.command.as_slice() else {
        return Ok(ExitCode::SUCCESS);
    };
    let status = Command::new(program).args(arguments).envs(gpu.environment()).status().map_err(
        |source| ErrorKind::ProgramStart {
            program: program.to_string_lossy().into_owned(),
            source,
        },
    )?;
    let seen = read_run_reports(gpu.folder());
    output.say(&banner(&gpu, &seen));
    if let Some(path) = &args.report {
        write(&seen, path)?;
    }
    Ok(exit_code(status))
}

/// What must not be forgotten of a run on a virtual GPU.
fn banner(gpu: &VirtualGpu, seen: &RunReports) -> String {
    let budget = gpu.budget().budget;
    let mut lines = vec![format!(
        "vramfit: ran on {}. Nothing was computed: results and saved weights are void.",
        gpu.product()
    )];
    let peak = seen.reports.iter().flat_map(|report| report.device_peak_bytes.first()).max();
    match peak {
        Some(peak) => {
            let peak = Bytes(*peak);
            lines.push(format!("vramfit: peak {peak} of {budget}"));
        }
        None => lines.push("vramfit: the command did not use the GPU".to_owned()),
    }
    if !seen.not_implemented.is_empty() {
        let names = seen.not_implemented.join(", ");
        lines.push(format!("vramfit: called, but not implemented: {names}"));
    }
    if seen.read_backs > 0 {
        lines.push(format!(
            "vramfit: {} values came back that no kernel had computed",
            seen.read_backs
        ));
    }
    lines.extend(
        seen.internal_errors
            .iter()
            .map(|error| format!("vramfit: a failure inside the virtual GPU: {error}")),
    );
    lines.join("\n")
}

fn write(seen: &RunReports, path: &Path) -> Result<(), Error> {
    serde_json::to_string_pretty(&seen.reports)
        .map_err(io::Error::from)
        .and_then(|text| fs::write(path, text + "\n"))
        .map_err(|source| ErrorKind::Unwritable { path: path.to_path_buf(), source }.into())
}

/// The command's own status; of one that ended by a signal, 128 and the signal, as shells do.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
