//! The page of a watched run: what was found, and what it was found in.

mod device;
mod findings;
mod kept;
mod steps;

use maud::{Markup, html};

use super::page::{Page, command, figures, section};
use super::scale::Scale;
use crate::units::{Bytes, count, duration};
use crate::watch::{Event, Finding, Reading, Recording, Step, Watched};
use crate::workload::quoted;

/// Places of a curve, at most.
const PLACES: usize = 600;

/// A recording and what was found in it as a page.
pub fn page(recording: &Recording, findings: &[Finding]) -> String {
    let view = View::of(recording, findings);
    let mut sections = Vec::new();
    if !findings.is_empty() {
        sections.push(section("What was found", &findings::list(findings)));
    }
    for (index, gpu) in recording.watched.gpus.iter().enumerate() {
        let of = match recording.watched.gpus.len() {
            1 => String::new(),
            _ => format!(", GPU {}", gpu.index),
        };
        let memory = device::memory(index, gpu, &view);
        sections.extend(memory.map(|it| section(&format!("Memory of the GPU{of}"), &it)));
        let strips = device::strips(index, gpu, &view);
        sections.extend(strips.map(|it| section(&format!("Clock, heat and load{of}"), &it)));
    }
    sections.extend(steps::memory(&view).map(|it| section("Tensors", &it)));
    sections.extend(steps::times(&view).map(|it| section("Step times", &it)));
    sections.extend(kept::of(&view).map(|it| section("What is kept", &it)));
    sections.push(section("Evidence", &evidence(&view)));
    let headline = headline(&view);
    Page { kind: "watch", headline: &headline, lead: lead(&view), sections }.render()
}

/// A recording, and what several parts of the page need of it.
struct View<'a> {
    watched: &'a Watched,
    recording: &'a Recording,
    findings: &'a [Finding],
    /// Of time, in seconds since the program's start.
    time: Scale,
    /// When the last line was written.
    until: f64,
}

impl<'a> View<'a> {
    fn of(recording: &'a Recording, findings: &'a [Finding]) -> Self {
        let until = recording.entries.iter().map(|entry| entry.at).fold(0.0, f64::max);
        let time = Scale::between(0.0, until);
        Self { watched: &recording.watched, recording, findings, time, until }
    }

    /// The same while steps were made: to load and to build may take longer than all of them.
    fn while_stepping(&self) -> Self {
        let is_step = |event: &Event| matches!(event, Event::Step(_));
        let entries = self.recording.entries.iter();
        let at = entries.filter(|entry| is_step(&entry.event)).map(|entry| entry.at);
        let first = at.clone().fold(self.until, f64::min);
        Self { time: Scale::between(first, at.fold(first, f64::max)), ..*self }
    }

    fn readings(&self, gpu: u32) -> Vec<(f64, &'a Reading)> {
        let of = |entry: &'a crate::watch::Entry| match &entry.event {
            Event::Reading(reading) if reading.gpu == gpu => Some((entry.at, reading)),
            _ => None,
        };
        self.recording.entries.iter().filter_map(of).collect()
    }

    /// Of each process that made any, in the order of their first.
    fn steps(&self) -> Vec<(u32, Vec<(f64, &'a Step)>)> {
        let mut processes: Vec<(u32, Vec<(f64, &Step)>)> = Vec::new();
        for entry in &self.recording.entries {
            let Event::Step(step) = &entry.event else { continue };
            match processes.iter_mut().find(|known| known.0 == step.pid) {
                Some(known) => known.1.push((entry.at, step)),
                None => processes.push((step.pid, vec![(entry.at, step)])),
            }
        }
        processes
    }

    fn end(&self) -> Option<(Option<i32>, Option<i32>)> {
        self.recording.entries.iter().rev().find_map(|entry| match entry.event {
            Event::Ended { status, signal } => Some((status, signal)),
            _ => None,
        })
    }

    /// Where values in the order of time lie in a chart, as many as can be seen.
    fn places(&self, values: Vec<(f64, f64)>, y: Scale) -> Vec<(f64, f64)> {
        let place = |(at, value)| (self.time.place(at), y.place(value));
        thinned(values).into_iter().map(place).collect()
    }

    /// The times of what was found, behind a chart.
    fn ranges(&self) -> Markup {
        findings::ranges(self.findings, self.time)
    }
}

/// Of values in the order of time as many as can be seen, each the highest of its share.
fn thinned(values: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let share = values.len().div_ceil(PLACES).max(1);
    let highest = |chunk: &[(f64, f64)]| chunk.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    values.chunks(share).filter_map(highest).collect()
}

fn headline(view: &View<'_>) -> String {
    match view.findings {
        [] => match view.end() {
            None => "Nothing found so far".to_owned(),
            Some((Some(0), _)) => "Nothing found; ran to its end".to_owned(),
            Some((Some(status), _)) => format!("Nothing found; ended with status {status}"),
            Some((None, Some(signal))) => format!("Nothing found; ended by signal {signal}"),
            Some((None, None)) => "Nothing found".to_owned(),
        },
        [first, ..] => first.headline(),
    }
}

fn lead(view: &View<'_>) -> Markup {
    let mut read_first = Vec::new();
    let used = view.recording.entries.iter().filter_map(|entry| match &entry.event {
        Event::Reading(reading) => Some(reading.used),
        _ => None,
    });
    if let Some(most) = used.max() {
        let total: Option<Bytes> = view.watched.gpus.iter().map(|gpu| gpu.total).max();
        let of = total.map_or_else(String::new, |total| format!("of {total}, held by all"));
        read_first.push(("Peak", most.to_string(), of));
    }
    let steps = view.steps();
    if let Some(last) = steps.iter().filter_map(|(_, steps)| steps.last()).map(|it| it.1.step).max()
    {
        let median = steps::median(&steps);
        let of = median.map_or_else(String::new, |it| format!("{} at the median", duration(it, 3)));
        read_first.push(("Steps", count(last), of));
    }
    read_first.push(("Watched for", duration(view.until.max(0.001), 3), String::new()));
    if view.findings.len() > 1 {
        read_first.push(("Found", view.findings.len().to_string(), String::new()));
    }
    html! {
        (command(&quoted(&view.watched.command)))
        (figures(&read_first))
    }
}

fn evidence(view: &View<'_>) -> Markup {
    let mut torch: Vec<_> = view
        .recording
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Torch { version, .. } => Some(version.as_str()),
            _ => None,
        })
        .collect();
    torch.sort_unstable();
    torch.dedup();
    html! {
        @for gpu in &view.watched.gpus {
            p {
                "GPU " (gpu.index) ": " (gpu.name) ", " (gpu.total)
                @if gpu.virtual_gpu {
                    ", a virtual one: its memory is exact, and it has neither clocks nor temperatures"
                }
                "."
            }
        }
        p {
            (count(view.recording.entries.len() as u64)) " lines recorded"
            @if !torch.is_empty() { ", PyTorch " (torch.join(" and ")) }
            ", vramfit " (view.watched.vramfit) "."
        }
    }
}
