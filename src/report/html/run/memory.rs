//! What each process held of a device at its peak.

use maud::{Markup, html};
use vramfit_vgpu_schema::{ProcessPeak, Report};

use super::super::page::figure;
use super::super::plot::Described;
use super::super::stack::{Part, bar, keys, pieces, table};
use super::MOST;
use crate::report::run::{RunDocument, name};
use crate::units::Bytes;

/// None where no process used a GPU.
pub(super) fn of(document: &RunDocument<'_>) -> Option<Markup> {
    let used = || {
        document.processes.iter().flat_map(|report| {
            let peaks = report.process_peak.iter().enumerate();
            peaks.filter(|(_, peak)| peak.total_bytes > 0).map(move |it| (report, it))
        })
    };
    let count = used().count();
    (count > 0).then(|| {
        html! {
            @for (index, (report, (ordinal, peak))) in used().take(MOST).enumerate() {
                @if count > 1 { h3 { (title(report, ordinal, document)) } }
                (of_process(index, report, ordinal, peak, document))
            }
            @if count > MOST { p .note { "Of " (count) " the first " (MOST) " are shown." } }
        }
    })
}

/// Whose memory, on which GPU.
pub(super) fn title(report: &Report, ordinal: usize, document: &RunDocument<'_>) -> String {
    let who = name(report, document);
    match (document.gpus, report.devices.get(ordinal)) {
        (2.., Some(gpu)) => format!("{who} on GPU {gpu}"),
        _ => who,
    }
}

fn of_process(
    index: usize,
    report: &Report,
    ordinal: usize,
    peak: &ProcessPeak,
    document: &RunDocument<'_>,
) -> Markup {
    let parts = parts(report, ordinal, peak, document.budget);
    let whole = document.budget.max(Bytes(peak.total_bytes));
    let said: Vec<_> = parts.iter().map(|(name, bytes)| format!("{name} {bytes}")).collect();
    let id = format!("memory-{index}");
    let described = Described {
        id: &id,
        title: "Memory of the process at its peak",
        description: format!("Of a budget of {}: {}.", document.budget, said.join(", ")),
    };
    let pieces = pieces(&parts, whole);
    let words = html! {
        (Bytes(peak.total_bytes)) " of " (document.budget) " that one process can have. Each part is the \
         most that it ever was."
    };
    let numbers = table("Memory of the process at its peak", &parts, whole, "of the budget");
    figure(&bar(&described, &pieces), &keys(&pieces), &words, &numbers)
}

/// Context, PyTorch's allocator, and what is left for libraries, or for the program's own allocations.
fn parts(report: &Report, ordinal: usize, peak: &ProcessPeak, budget: Bytes) -> Vec<Part> {
    let rest = peak.total_bytes - peak.context_bytes.min(peak.total_bytes);
    let allocators = report.python.iter().flat_map(|python| &python.allocators);
    let mut parts = vec![("context", Bytes(peak.context_bytes))];
    match allocators.into_iter().find(|it| it.device as usize == ordinal) {
        Some(allocator) => {
            let reserved = allocator.reserved_peak_bytes.min(rest);
            let tensors = allocator.allocated_peak_bytes.min(reserved);
            parts.push(("tensors", Bytes(tensors)));
            parts.push(("cached", Bytes(reserved - tensors)));
            parts.push(("libraries", Bytes(rest - reserved)));
        }
        None => parts.push(("allocations", Bytes(rest))),
    }
    parts.push(("free", budget.saturating_sub(Bytes(peak.total_bytes))));
    parts.retain(|part| part.1 > Bytes::ZERO);
    parts
}
