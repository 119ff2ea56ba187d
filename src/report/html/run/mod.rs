//! The page of a run on a virtual GPU.

mod memory;
mod peak;
mod time;
mod timeline;

use maud::{Markup, html};

use super::page::{Page, command, figures, list, section};
use crate::device::RunReports;
use crate::report::run::{self, RunDocument};
use crate::snapshot::Peak;
use crate::units::Bytes;
use crate::workload::quoted;

/// The highest use of one device by one process, and where it came from: by the record of PyTorch's
/// allocator.
#[derive(Clone, Debug)]
pub struct RecordedPeak {
    /// Of a distributed run.
    pub rank: Option<u32>,
    /// The process.
    pub pid: u32,
    /// Ordinal of the device in the process.
    pub device: u32,
    /// The peak.
    pub peak: Peak,
}

/// Processes and devices that a page shows; beyond them it says how many there were.
const MOST: usize = 8;

/// A run as a page. `peaks` are of those processes that were recorded, `unrecorded` says why others are
/// not, and `made_by` is the shell's line that made it.
pub fn page(
    document: &RunDocument<'_>,
    seen: &RunReports,
    peaks: &[RecordedPeak],
    unrecorded: &[String],
    made_by: &str,
) -> String {
    let mut sections = Vec::new();
    sections.extend(wrong(document).map(|it| section("What went wrong", &it)));
    sections.extend(memory::of(document).map(|it| section("Memory", &it)));
    sections.extend(timeline::of(document).map(|it| section("Memory over the run", &it)));
    for (index, recorded) in peaks.iter().take(MOST).enumerate() {
        let of = match peaks.len() {
            1 => String::new(),
            _ => format!(", {}", who(recorded, document)),
        };
        let step = format!("The step with the peak{of}");
        sections.push(section(&step, &peak::step(index, &recorded.peak)));
        let kept = format!("In use at the peak{of}");
        sections.push(section(&kept, &peak::kept(&recorded.peak)));
    }
    sections.extend(time::of(document).map(|it| section("Where the time goes", &it)));
    let notes = notes(document, seen, peaks, unrecorded);
    if !notes.is_empty() {
        sections.push(section("Notes", &list(notes)));
    }
    sections.push(section("Evidence", &evidence(document, made_by)));
    let headline = headline(document);
    Page { kind: "run", headline: &headline, lead: lead(document), sections }.render()
}

fn headline(document: &RunDocument<'_>) -> String {
    let number = match document.gpus {
        1 => String::new(),
        count => format!("{count} × "),
    };
    let out_of_memory = document
        .processes
        .iter()
        .filter_map(|report| report.python.as_ref()?.ended_by.as_ref())
        .any(|ended| ended.out_of_memory);
    let end = match (document.exit_status, document.signal) {
        _ if out_of_memory => "Ran out of memory".to_owned(),
        (Some(0), _) => "Ran to its end".to_owned(),
        (Some(status), _) => format!("Ended with status {status}"),
        (None, Some(signal)) => format!("Ended by signal {signal}"),
        (None, None) => "Ended".to_owned(),
    };
    format!("{end} on {number}{}", document.gpu)
}

fn lead(document: &RunDocument<'_>) -> Markup {
    let peak = peak(document);
    let mut read_first = Vec::new();
    if let Some(peak) = peak {
        read_first.push(("Peak", peak.to_string(), format!("of {} budget", document.budget)));
    }
    let allocated = document
        .processes
        .iter()
        .filter_map(|report| report.python.as_ref())
        .flat_map(|python| &python.allocators)
        .map(|allocator| Bytes(allocator.allocated_peak_bytes))
        .max();
    if let Some(allocated) = allocated {
        read_first.push(("Tensors", allocated.to_string(), "at most, in one process".to_owned()));
    }
    let total = |report: &vramfit_vgpu_schema::Report| {
        report.time.iter().map(|time| time.total).fold(0.0, f64::max)
    };
    let seconds = document.processes.iter().map(total).fold(0.0, f64::max);
    if seconds > 0.0 {
        let how = "by the cost model".to_owned();
        read_first.push(("Time on the GPU", crate::report::time::seconds(seconds), how));
    }
    html! {
        (command(&quoted(&document.command)))
        @if !read_first.is_empty() { (figures(&read_first)) }
    }
}

/// Of the device that was used most.
fn peak(document: &RunDocument<'_>) -> Option<Bytes> {
    let peaks = document.processes.iter().flat_map(|report| &report.device_peak_bytes);
    peaks.copied().max().map(Bytes)
}

fn wrong(document: &RunDocument<'_>) -> Option<Markup> {
    let mut lines: Vec<_> =
        document.processes.iter().flat_map(|report| run::failures(report, document)).collect();
    let failed = document.exit_status != Some(0);
    if document.processes.is_empty() {
        lines.push(run::no_report(document));
    } else if lines.is_empty() && failed {
        lines.push(match (document.exit_status, document.signal) {
            (Some(status), _) => format!("the command ended with status {status}"),
            (None, Some(signal)) => format!("the command was ended by signal {signal}"),
            (None, None) => "the command ended without a status".to_owned(),
        });
    }
    (!lines.is_empty()).then(|| list(lines))
}

fn notes(
    document: &RunDocument<'_>,
    seen: &RunReports,
    peaks: &[RecordedPeak],
    unrecorded: &[String],
) -> Vec<String> {
    let mut notes = vec!["nothing was computed: results and saved weights are void".to_owned()];
    notes.extend(run::unknown(seen));
    notes.extend(run::without_shadow(document.processes, seen));
    if !seen.not_implemented.is_empty() {
        notes.push(format!("called, but not implemented: {}", seen.not_implemented.join(", ")));
    }
    notes.extend(seen.estimates.iter().map(|basis| format!("estimated: {basis}")));
    notes.extend(
        seen.internal_errors.iter().map(|it| format!("a failure inside the virtual GPU: {it}")),
    );
    if !peaks.is_empty() && document.processes.iter().any(|it| !it.time.is_empty()) {
        notes.push(
            "the allocator was recorded for this page, which slows the program: without, less time is \
             spent waiting for the host"
                .to_owned(),
        );
    }
    if peaks.len() > MOST {
        notes.push(format!("of {} recorded devices {MOST} are shown", peaks.len()));
    }
    notes.extend(unrecorded.iter().cloned());
    notes
}

fn evidence(document: &RunDocument<'_>, made_by: &str) -> Markup {
    let mut torch: Vec<_> = document
        .processes
        .iter()
        .filter_map(|report| Some(report.python.as_ref()?.torch.as_str()))
        .filter(|version| !version.is_empty())
        .collect();
    torch.sort_unstable();
    torch.dedup();
    let torch = match torch.as_slice() {
        [] => String::new(),
        known => format!(" with PyTorch {}", known.join(" and ")),
    };
    html! {
        p {
            "Run on a virtual GPU" (torch) ": memory is what was asked of it, no kernel was executed, and \
             times are modelled. vramfit " (env!("CARGO_PKG_VERSION")) "."
        }
        p .note { "Made by" }
        (command(made_by))
    }
}

/// Of whom a record is.
fn who(recorded: &RecordedPeak, document: &RunDocument<'_>) -> String {
    let process = match recorded.rank {
        Some(rank) => format!("rank {rank}"),
        None => format!("process {}", recorded.pid),
    };
    let report = document.processes.iter().find(|report| report.pid == recorded.pid);
    let gpu = report.and_then(|it| it.devices.get(recorded.device as usize));
    match (document.gpus, gpu) {
        (2.., Some(gpu)) => format!("{process} on GPU {gpu}"),
        _ => process,
    }
}
