//! The run report, written when the process ends.

use std::io::Write;
use std::path::Path;

use vramfit_vgpu_schema::{KernelCount, ProcessPeak, Report, SCHEMA, folder};

use crate::demangle::demangled;
use crate::device::Machine;
use crate::{activity, clock, cudnn, device, entry, kernel, memory, processes, python, timeline};

/// Kernels, products, plans and works listed; the totals count all.
const MOST_LISTED: usize = 200;

/// Has the report written when this process ends by itself.
pub(crate) fn at_exit() {
    extern "C" fn write_report() {
        entry::guard(
            "report",
            || (),
            || {
                if !device::forked() {
                    processes::leave();
                    write_now();
                }
            },
        );
    }
    // SAFETY: the handler takes no argument and does not unwind.
    unsafe { libc::atexit(write_report) };
}

/// Writes the report of this process as it is now, if it used the virtual GPU.
pub(crate) fn write_now() {
    // A forked child has its parent's records.
    if device::forked() {
        return;
    }
    if let Some(machine) = device::machine()
        && let Some(report) = collect(machine)
    {
        let path = machine.folder.join(folder::report(report.pid));
        if let Err(error) = write(&path, &report) {
            // The process is ending; there is no other way left to tell.
            let _ = writeln!(
                std::io::stderr(),
                "vramfit-vgpu: cannot write {}: {error}",
                path.display()
            );
        }
    }
}

/// What this process did; none if it did not use the virtual GPU.
fn collect(machine: &Machine) -> Option<Report> {
    let held: Vec<_> = (0..machine.visible().len())
        .map(|ordinal| {
            let held = memory::holdings(ordinal);
            let peak = ProcessPeak {
                total_bytes: held.peak,
                context_bytes: held.context.unwrap_or_default(),
            };
            (held.device_peak, peak)
        })
        .collect();
    let launches = activity::launches();
    let not_implemented = activity::not_implemented_names();
    let internal_errors = activity::internal_errors();
    if launches == 0
        && not_implemented.is_empty()
        && internal_errors.is_empty()
        && held.iter().all(|(_, peak)| peak.total_bytes == 0)
    {
        return None;
    }
    let mut kernels: Vec<KernelCount> = kernel::launches()
        .into_iter()
        .map(|(name, launches)| KernelCount { name: name.to_owned(), launches })
        .collect();
    kernels.sort_by(|a, b| (b.launches, &a.name).cmp(&(a.launches, &b.name)));
    kernels.truncate(MOST_LISTED);
    let mut gemms = activity::gemms();
    gemms.truncate(MOST_LISTED);
    let mut convolutions = activity::convolutions();
    convolutions.truncate(MOST_LISTED);
    let mut collectives = activity::collectives();
    collectives.truncate(MOST_LISTED);
    let mut work = clock::works();
    if std::env::var_os(folder::ALL_WORK_VARIABLE).is_none_or(|it| it != "1") {
        work.truncate(MOST_LISTED);
    }
    for it in &mut work {
        it.name = demangled(&it.name);
    }
    Some(Report {
        schema: SCHEMA,
        pid: std::process::id(),
        command: command(),
        devices: machine.visible().iter().map(|index| *index as u32).collect(),
        device_peak_bytes: held.iter().map(|(device_peak, _)| *device_peak).collect(),
        process_peak: held.into_iter().map(|(_, peak)| peak).collect(),
        loaded_code: (0..machine.visible().len()).map(kernel::loaded_code).collect(),
        timeline: timeline::points(),
        launches,
        kernels,
        fills_computed: activity::fills(),
        gemms,
        convolutions,
        time: clock::times(),
        work,
        copies: activity::copies(),
        read_backs: activity::read_backs(),
        cudnn: cudnn::source(),
        collectives,
        estimates: activity::estimates(),
        not_implemented,
        internal_errors,
        python: python::notes(),
    })
}

fn command() -> String {
    let arguments: Vec<_> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    arguments.join(" ")
}

/// Writes beside the target and renames, so that a reader never sees half a report.
fn write(path: &Path, report: &Report) -> std::io::Result<()> {
    let unfinished = path.with_extension("json.part");
    std::fs::write(&unfinished, serde_json::to_vec(report)?)?;
    std::fs::rename(unfinished, path)
}
