//! A watched run and what was found in it, for a person and for a program.

use schemars::JsonSchema;
use serde::Serialize;

use crate::units::{count, duration};
use crate::watch::{Finding, GpuSummary, ProcessSummary, Recording, Summary};

/// Version of [`WatchDocument`].
pub const WATCH_SCHEMA: u32 = 1;

/// A watched run, as `vramfit watch --replay FILE --json` and `--findings` write it. Sizes are bytes,
/// moments are seconds since the program was started.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WatchDocument {
    /// Version of the document.
    pub schema: u32,
    /// Version of the vramfit that looked.
    pub vramfit: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// When it was started, in seconds since 1970.
    pub started: u64,
    /// The run in short.
    pub summary: Summary,
    /// What was found, the surest first.
    pub findings: Vec<FoundFault>,
}

/// Something that costs memory or time, or will.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FoundFault {
    /// `leak`, `evaluation-with-graph`, `spill`, `thrash`, `throttle` or `starvation`.
    pub fault: String,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// When it was seen first.
    pub from: f64,
    /// And last.
    pub until: f64,
    /// The process, where it is of one.
    pub pid: Option<u32>,
    /// What is wrong, in one line.
    pub headline: String,
    /// The numbers that it rests on.
    pub evidence: Vec<String>,
    /// What to do, the first best first.
    pub remedies: Vec<String>,
}

impl WatchDocument {
    /// Of a run and what was found in it.
    pub fn new(recording: &Recording, findings: &[Finding]) -> Self {
        Self {
            schema: WATCH_SCHEMA,
            vramfit: env!("CARGO_PKG_VERSION").to_owned(),
            command: recording.watched.command.clone(),
            started: recording.watched.started,
            summary: Summary::of(recording),
            findings: findings.iter().map(FoundFault::of).collect(),
        }
    }
}

impl FoundFault {
    fn of(finding: &Finding) -> Self {
        // The name of a variant, so this cannot fail.
        let name = serde_json::to_value(finding.fault).unwrap_or_default();
        Self {
            fault: name.as_str().unwrap_or_default().to_owned(),
            confidence: finding.confidence,
            from: finding.from,
            until: finding.until,
            pid: finding.pid,
            headline: finding.headline(),
            evidence: finding.evidence(),
            remedies: finding.remedies(),
        }
    }
}

/// What a person reads, one fact a line.
pub fn lines(document: &WatchDocument) -> Vec<String> {
    let summary = &document.summary;
    let mut lines = vec![headline(summary)];
    lines.extend(summary.gpus.iter().map(gpu));
    let alone = summary.processes.len() == 1;
    lines.extend(summary.processes.iter().map(|it| process(it, alone)));
    if summary.out_of_memory > 0 {
        lines.push(format!("PyTorch found no memory {}", times(summary.out_of_memory)));
    }
    if document.findings.is_empty() {
        lines.push(nothing(summary));
    }
    lines.extend(document.findings.iter().flat_map(found));
    lines
}

/// In one line, while the program runs.
pub fn announcement(finding: &Finding) -> String {
    format!("{}{}", of_process(finding.pid), finding.headline())
}

fn headline(summary: &Summary) -> String {
    let took = duration(summary.seconds, 3);
    match (summary.ended, summary.signal) {
        (true, Some(signal)) => format!("watched for {took}, ended by signal {signal}"),
        (true, None) => format!("watched for {took}"),
        (false, _) => format!("watched for {took}; its end was not seen"),
    }
}

fn gpu(gpu: &GpuSummary) -> String {
    let mut parts = vec![format!("at most {} of {} in use", gpu.used_peak, gpu.total)];
    parts.extend(gpu.program_peak.map(|it| format!("{it} by the program")));
    parts.extend(gpu.utilisation.map(|it| format!("busy {it:.0} % of the time")));
    parts.extend(gpu.hottest.map(|it| format!("up to {it} °C")));
    match gpu.readings {
        0 => format!("GPU {} ({}): nothing could be read", gpu.index, gpu.name),
        _ => format!("GPU {} ({}): {}", gpu.index, gpu.name, parts.join(", ")),
    }
}

fn process(process: &ProcessSummary, alone: bool) -> String {
    let who = match process.rank {
        Some(rank) => format!("rank {rank}: "),
        None if alone => String::new(),
        None => format!("process {}: ", process.pid),
    };
    let steps = match process.steps {
        1 => "1 step".to_owned(),
        steps => format!("{} steps", count(steps)),
    };
    let each = process
        .step_seconds
        .map_or_else(String::new, |seconds| format!(", {} each (median)", duration(seconds, 3)));
    format!(
        "{who}{steps}{each}, tensors {} at most, PyTorch's allocator {}",
        process.allocated_peak, process.reserved_peak
    )
}

/// Where nothing was found, what that rests on.
fn nothing(summary: &Summary) -> String {
    match summary.processes.iter().map(|it| it.steps).sum() {
        0 => "nothing found; no optimizer step of PyTorch was seen".to_owned(),
        1 => "nothing found in 1 step".to_owned(),
        steps => format!("nothing found in {} steps", count(steps)),
    }
}

fn found(finding: &FoundFault) -> Vec<String> {
    let sure = (finding.confidence * 100.0).round();
    let mut lines =
        vec![format!("{}{} (confidence {sure} %)", of_process(finding.pid), finding.headline)];
    lines.extend(finding.evidence.iter().map(|it| format!("  {it}")));
    lines.extend(finding.remedies.iter().map(|it| format!("  > {it}")));
    lines
}

fn of_process(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!("process {pid}: "))
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn document(findings: Vec<FoundFault>) -> WatchDocument {
        let gpu = GpuSummary {
            name: "NVIDIA GeForce RTX 4060".to_owned(),
            total: Bytes::gib(8),
            used_peak: Bytes::mib(5120),
            program_peak: Some(Bytes::gib(4)),
            utilisation: Some(61.6),
            readings: 9,
            ..GpuSummary::default()
        };
        let process = ProcessSummary {
            steps: 12_000,
            step_seconds: Some(0.125),
            allocated_peak: Bytes::gib(2),
            reserved_peak: Bytes::gib(3),
            ..ProcessSummary::default()
        };
        let summary = Summary {
            seconds: 1500.0,
            ended: true,
            status: Some(0),
            gpus: vec![gpu],
            processes: vec![process],
            ..Summary::default()
        };
        WatchDocument {
            schema: WATCH_SCHEMA,
            vramfit: String::new(),
            command: Vec::new(),
            started: 0,
            summary,
            findings,
        }
    }

    #[test]
    fn a_run_is_told_in_a_few_lines() {
        let told = [
            "watched for 25.0 min",
            "GPU 0 (NVIDIA GeForce RTX 4060): at most 5.00 GiB of 8.00 GiB in use, 4.00 GiB by the \
             program, busy 62 % of the time",
            "12 000 steps, 125 ms each (median), tensors 2.00 GiB at most, PyTorch's allocator 3.00 \
             GiB",
            "nothing found in 12 000 steps",
        ];
        assert_eq!(lines(&document(Vec::new())), told);
    }

    #[test]
    fn what_is_found_comes_with_its_numbers_and_what_to_do() {
        let finding = FoundFault {
            fault: "leak".to_owned(),
            confidence: 0.95,
            from: 0.0,
            until: 1.0,
            pid: Some(7),
            headline: "it leaks".to_owned(),
            evidence: vec!["so much".to_owned()],
            remedies: vec!["stop".to_owned()],
        };
        let told = lines(&document(vec![finding]));
        let expected = ["process 7: it leaks (confidence 95 %)", "  so much", "  > stop"];
        assert_eq!(told[3..], expected);
    }
}
