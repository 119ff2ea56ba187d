//! What a program did on a virtual GPU, for a person and for a file.

use serde::Serialize;
use vramfit_vgpu_schema::{EndedBy, OutOfMemory, Report};

use super::sparkline::sparkline;
use super::time;
use crate::device::RunReports;
use crate::units::Bytes;

/// Lines of a list that a person is shown; the file has them all.
const MOST_SHOWN: usize = 8;

/// A run, as `--report` writes it. Sizes are bytes.
#[derive(Debug, Serialize)]
pub struct RunDocument<'a> {
    /// Version of the document.
    pub schema: u32,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Product name of the virtual GPUs.
    pub gpu: &'a str,
    /// How many there were.
    pub gpus: usize,
    /// What one process could have of each, context included.
    pub budget: Bytes,
    /// The command's exit status; none if a signal ended it.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Real time that it took.
    pub seconds: f64,
    /// One report a process that used a GPU and ended by itself; ranks first, in order.
    pub processes: &'a [Report],
}

/// Version of [`RunDocument`].
pub const RUN_SCHEMA: u32 = 1;

/// What a person reads after a run, one fact a line.
pub fn summary(document: &RunDocument<'_>, seen: &RunReports, timeline: bool) -> Vec<String> {
    let mut lines = vec![headline(document)];
    if document.processes.is_empty() {
        lines.push(no_report(document));
    }
    lines.extend(peaks(document));
    for report in document.processes {
        lines.extend(process(report, document));
        lines.extend(time::lines(report, &name(report, document), document.gpus));
        if timeline {
            lines.extend(timelines(report));
        }
    }
    lines.extend(document.processes.iter().flat_map(|report| failures(report, document)));
    lines.extend(unknown(seen));
    lines.extend(without_shadow(document.processes, seen));
    if !seen.not_implemented.is_empty() {
        lines.push(format!("called, but not implemented: {}", seen.not_implemented.join(", ")));
    }
    lines.extend(estimates(seen));
    lines.extend(
        seen.internal_errors.iter().map(|it| format!("a failure inside the virtual GPU: {it}")),
    );
    lines
}

/// Why no process left a report. One that a signal ends leaves none.
pub(super) fn no_report(document: &RunDocument<'_>) -> String {
    // A shell's way of saying that a signal ended what it ran.
    let of_child =
        document.exit_status.and_then(|status| (129..=192).contains(&status).then(|| status - 128));
    match document.signal.or(of_child) {
        Some(signal) => format!("ended by signal {signal}, and no process left a report"),
        None => "the command did not use the GPU".to_owned(),
    }
}

/// What is estimated, by name; the basis of each is in the report.
fn estimates(seen: &RunReports) -> Option<String> {
    let name = |basis: &String| basis.split(": ").next().unwrap_or(basis).to_owned();
    let names: Vec<_> = seen.estimates.iter().map(name).collect();
    (!names.is_empty())
        .then(|| format!("estimated: {} (`--report FILE` says on what basis)", names.join("; ")))
}

fn headline(document: &RunDocument<'_>) -> String {
    let number = match document.gpus {
        1 => String::new(),
        count => format!("{count} x "),
    };
    format!(
        "ran on {number}{}. Nothing was computed: results and saved weights are void.",
        document.gpu
    )
}

/// The highest use of each GPU by all processes together.
fn peaks(document: &RunDocument<'_>) -> Vec<String> {
    let budget = document.budget;
    let peak = |gpu: usize| {
        let of = |report: &Report| {
            let index = report.devices.iter().position(|device| *device as usize == gpu)?;
            report.device_peak_bytes.get(index).copied()
        };
        document.processes.iter().filter_map(of).max().map(Bytes)
    };
    let seen = (0..document.gpus).filter_map(|gpu| Some((gpu, peak(gpu)?)));
    match document.gpus {
        1 => seen.map(|(_, peak)| format!("peak {peak} of {budget}")).collect(),
        _ => seen.map(|(gpu, peak)| format!("peak {peak} of {budget} on GPU {gpu}")).collect(),
    }
}

/// What one process held of each GPU at its peak, and what for.
fn process(report: &Report, document: &RunDocument<'_>) -> Vec<String> {
    let who = name(report, document);
    let used = report.process_peak.iter().enumerate().filter(|(_, peak)| peak.total_bytes > 0);
    used.map(|(ordinal, peak)| {
        let allocators = report.python.iter().flat_map(|python| &python.allocators);
        let mut parts = vec![format!("context {}", Bytes(peak.context_bytes))];
        let rest = peak.total_bytes - peak.context_bytes;
        match allocators.into_iter().find(|it| it.device as usize == ordinal) {
            Some(allocator) => {
                let reserved = allocator.reserved_peak_bytes.min(rest);
                parts.push(format!(
                    "PyTorch {} ({} of it in use at most)",
                    Bytes(reserved),
                    Bytes(allocator.allocated_peak_bytes)
                ));
                if rest > reserved {
                    parts.push(format!("libraries {}", Bytes(rest - reserved)));
                }
            }
            None => parts.push(format!("allocations {}", Bytes(rest))),
        }
        let on = match (document.gpus, report.devices.get(ordinal)) {
            (2.., Some(gpu)) => format!(" on GPU {gpu}"),
            _ => String::new(),
        };
        format!("{who}: {}{on} = {}", Bytes(peak.total_bytes), parts.join(" + "))
    })
    .collect()
}

fn timelines(report: &Report) -> Vec<String> {
    let devices = 0..report.process_peak.len() as u32;
    devices
        .filter_map(|device| sparkline(&report.timeline, device))
        .map(|line| format!("  over its run: {line}"))
        .collect()
}

/// Where it ran out of memory, and what ended it.
pub(super) fn failures(report: &Report, document: &RunDocument<'_>) -> Vec<String> {
    let Some(python) = &report.python else { return Vec::new() };
    let who = name(report, document);
    let mut lines = Vec::new();
    for event in python.out_of_memory.iter().take(MOST_SHOWN) {
        lines.push(format!("{who}: {}", out_of_memory(event)));
        lines.extend(event.places.iter().skip(1).map(|it| format!("  called from {it}")));
    }
    lines.extend(more(python.out_of_memory.len()));
    lines.extend(python.ended_by.as_ref().map(|it| format!("{who}: {}", ended(it))));
    lines
}

pub(super) fn out_of_memory(event: &OutOfMemory) -> String {
    let at = event.places.first().map_or("a line not known".to_owned(), ToString::to_string);
    let wanted = Bytes(event.requested_bytes);
    format!("out of memory for {wanted} at {at}{}", times(event.count))
}

pub(super) fn ended(by: &EndedBy) -> String {
    let at = by.place.as_ref().map_or_else(String::new, |it| format!(" at {it}"));
    let what = if by.out_of_memory { "ended for want of memory" } else { "ended by an error" };
    format!("{what}, {}{at}", by.exception)
}

/// Values and sizes that a real GPU would have known.
pub(super) fn unknown(seen: &RunReports) -> Vec<String> {
    let mut lines = Vec::new();
    if seen.read_backs > 0 {
        let values = match seen.read_backs {
            1 => "1 value".to_owned(),
            count => format!("{count} values"),
        };
        lines.push(format!(
            "{values} came back that nothing had computed: the program went on with stand-ins"
        ));
    }
    lines.extend(seen.unknown_reads.iter().take(MOST_SHOWN).map(|read| format!("  {read}")));
    lines.extend(more(seen.unknown_reads.len()));
    if !seen.sizes.is_empty() {
        lines.push(
            "sizes that depend on values nobody knows; the peak is that of the sizes taken:"
                .to_owned(),
        );
    }
    lines.extend(seen.sizes.iter().take(MOST_SHOWN).map(|size| format!("  {size}")));
    lines.extend(more(seen.sizes.len()));
    lines
}

/// Says why shadow execution was not at work, where that made a difference.
pub(super) fn without_shadow(processes: &[Report], seen: &RunReports) -> Option<String> {
    let python = processes.iter().filter_map(|report| report.python.as_ref());
    let reason = python.filter_map(|it| it.shadow.absent.as_deref()).next()?;
    (seen.read_backs > 0).then(|| format!("small tensors were not computed: {reason}"))
}

pub(super) fn name(report: &Report, document: &RunDocument<'_>) -> String {
    match report.python.as_ref().and_then(|python| python.rank) {
        Some(rank) => format!("rank {rank}"),
        None if document.processes.len() == 1 => "the process".to_owned(),
        None => format!("process {}", report.pid),
    }
}

fn times(count: u64) -> String {
    if count == 1 { String::new() } else { format!(", {count} times") }
}

fn more(all: usize) -> Option<String> {
    (all > MOST_SHOWN).then(|| format!("  and {} more; `--report FILE` has all", all - MOST_SHOWN))
}
