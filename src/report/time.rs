//! Where a program's time on a virtual GPU went, for a person: modelled, not measured.

use std::collections::BTreeMap;

use vramfit_vgpu_schema::{Report, Time};

use crate::units::duration;

/// Kernels that a person is shown; the file has 200.
const MOST_SHOWN: usize = 5;
/// Characters of a kernel's name that a person is shown.
const MOST_NAME: usize = 64;

/// One line a device that was used, and the costliest kernels. `who` names the process.
pub(super) fn lines(report: &Report, who: &str, gpus: usize) -> Vec<String> {
    let used = report.time.iter().enumerate().filter(|(_, time)| time.total > 0.0);
    let mut lines: Vec<_> = used
        .map(|(ordinal, time)| {
            let on = match (gpus, report.devices.get(ordinal)) {
                (2.., Some(gpu)) => format!(" on GPU {gpu}"),
                _ => String::new(),
            };
            format!("{who}: {} by the cost model{on} = {}", seconds(time.total), split(time))
        })
        .collect();
    lines.extend(costliest(report));
    lines
}

/// What a device's time went to, in seconds.
pub(super) fn parts(time: &Time) -> [(f64, &'static str); 5] {
    let Time { total, busy, compute, memory, launch, transfer } = *time;
    [
        (compute, "arithmetic"),
        (memory, "memory"),
        (launch, "launches"),
        (transfer, "transfers"),
        ((total - busy).max(0.0), "waiting for the host"),
    ]
}

fn split(time: &Time) -> String {
    let parts = parts(time);
    let shown = parts.iter().filter(|(part, _)| *part > 0.0);
    shown.map(|(part, name)| format!("{name} {}", seconds(*part))).collect::<Vec<_>>().join(" + ")
}

fn costliest(report: &Report) -> Option<String> {
    let by_name = kernels(report);
    let shown = by_name.iter().take(MOST_SHOWN);
    let shown: Vec<_> =
        shown.map(|(name, share)| format!("{} {share:.0} %", short(name))).collect();
    (!shown.is_empty()).then(|| format!("  costliest: {}", shown.join(", ")))
}

/// Kernels and the hundredths of the device's work that each takes, the costliest first.
pub(super) fn kernels(report: &Report) -> Vec<(&str, f64)> {
    let all: f64 =
        report.time.iter().map(|it| it.compute + it.memory + it.launch + it.transfer).sum();
    let mut by_name = BTreeMap::<&str, f64>::new();
    for work in &report.work {
        *by_name.entry(&work.name).or_default() += work.seconds;
    }
    let mut by_name: Vec<_> = by_name.into_iter().filter(|(_, seconds)| *seconds > 0.0).collect();
    by_name.sort_by(|a, b| b.1.total_cmp(&a.1));
    by_name.into_iter().map(|(name, seconds)| (name, 100.0 * seconds / all)).collect()
}

/// A kernel's name without its type, its arguments and its namespaces' beginning.
pub(super) fn short(name: &str) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name);
    let name = name.strip_prefix("at::native::").unwrap_or(name);
    match name.char_indices().nth(MOST_NAME) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

pub(super) fn seconds(seconds: f64) -> String {
    duration(seconds, 3)
}

#[cfg(test)]
mod tests {
    use vramfit_vgpu_cost::Work;
    use vramfit_vgpu_schema::PricedWork;

    use super::*;

    #[test]
    fn the_split_adds_up_and_the_costliest_kernels_are_named() {
        let work = |name: &str, seconds| PricedWork {
            name: name.to_owned(),
            work: Work::Unknown,
            count: 3,
            seconds,
        };
        let report = Report {
            devices: vec![0, 1],
            time: vec![
                Time { total: 2.0, busy: 1.5, compute: 1.2, memory: 0.3, ..Time::default() },
                Time::default(),
            ],
            work: vec![
                work("gemm", 0.9),
                work("void at::native::add(int)", 0.3),
                work("gemm", 0.3),
            ],
            ..Report::default()
        };
        assert_eq!(
            lines(&report, "rank 1", 2),
            [
                "rank 1: 2.00 s by the cost model on GPU 0 = arithmetic 1.20 s + memory 300 ms + \
                 waiting for the host 500 ms",
                "  costliest: gemm 80 %, add(int) 20 %",
            ]
        );
        assert_eq!(lines(&Report::default(), "the process", 1), [""; 0]);
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(short(&"x".repeat(65)).chars().count(), MOST_NAME + 1);
        assert_eq!(short(&"x".repeat(64)), "x".repeat(64));
    }
}
