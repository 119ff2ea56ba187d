//! What is remembered of a run, however long it is.

use std::collections::BTreeMap;

use super::recording::{Entry, Event, Pass, Reading, Recording, Step, Watched};

/// Entries that are remembered at most: some 40 MB.
const MOST: usize = 200_000;

/// A recording that is thinned out where it is old once there is too much of it. The same entries in
/// the same order leave the same, so that a recorded run is judged as the one that ran was.
pub(super) struct History {
    recording: Recording,
    most: usize,
}

impl History {
    pub(super) fn new(watched: Watched) -> Self {
        Self { recording: Recording { watched, entries: Vec::new() }, most: MOST }
    }

    pub(super) fn add(&mut self, entry: Entry) {
        self.recording.entries.push(entry);
        if self.recording.entries.len() > self.most {
            self.sort();
            let newer = self.recording.entries.split_off(self.most / 2);
            let older = std::mem::take(&mut self.recording.entries);
            self.recording.entries = thinned(older);
            self.recording.entries.extend(newer);
        }
    }

    /// All of it, in the order of time.
    pub(super) fn recording(&mut self) -> &Recording {
        self.sort();
        &self.recording
    }

    /// As [`Self::recording`], and nothing is left.
    pub(super) fn take(&mut self) -> Recording {
        self.sort();
        std::mem::take(&mut self.recording)
    }

    fn sort(&mut self) {
        // Nearly in order already, which this sort makes use of.
        self.recording.entries.sort_by(|a, b| a.at.total_cmp(&b.at));
    }
}

/// About half of what can be half: of four readings of a GPU those with the least and the most memory
/// stay, and two steps, or two passes of a model, become one.
fn thinned(entries: Vec<Entry>) -> Vec<Entry> {
    let mut kept = Vec::new();
    let mut readings: BTreeMap<u32, Vec<(f64, Reading)>> = BTreeMap::new();
    let mut steps: BTreeMap<u32, Entry> = BTreeMap::new();
    let mut passes: BTreeMap<(u32, String), Entry> = BTreeMap::new();
    for Entry { at, event } in entries {
        match event {
            Event::Reading(reading) => {
                let gathered = readings.entry(reading.gpu).or_default();
                gathered.push((at, reading));
                if gathered.len() == 4 {
                    kept.extend(extremes(std::mem::take(gathered)));
                }
            }
            Event::Step(step) => match steps.remove(&step.pid) {
                Some(Entry { event: Event::Step(before), .. }) => {
                    kept.push(Entry { at, event: Event::Step(both_steps(&before, step)) });
                }
                _ => drop(steps.insert(step.pid, Entry { at, event: Event::Step(step) })),
            },
            Event::Pass(pass) => match passes.remove(&(pass.pid, pass.model.clone())) {
                Some(Entry { event: Event::Pass(before), .. }) if alike(&before, &pass) => {
                    let allocated_peak = before.allocated_peak.max(pass.allocated_peak);
                    let event = Event::Pass(Pass { allocated_peak, ..pass });
                    kept.push(Entry { at, event });
                }
                other => {
                    kept.extend(other);
                    let key = (pass.pid, pass.model.clone());
                    passes.insert(key, Entry { at, event: Event::Pass(pass) });
                }
            },
            event => kept.push(Entry { at, event }),
        }
    }
    let left = readings.into_values().flatten();
    kept.extend(left.map(|(at, reading)| Entry { at, event: Event::Reading(reading) }));
    kept.extend(steps.into_values());
    kept.extend(passes.into_values());
    kept.sort_by(|a, b| a.at.total_cmp(&b.at));
    kept
}

fn extremes(readings: Vec<(f64, Reading)>) -> Vec<Entry> {
    let by_memory = |item: &(usize, &(f64, Reading))| item.1.1.used;
    let least = readings.iter().enumerate().min_by_key(by_memory).map(|(index, _)| index);
    let most = readings.iter().enumerate().max_by_key(by_memory).map(|(index, _)| index);
    let is_kept = |index: usize| Some(index) == least || Some(index) == most;
    let entry = |(at, reading)| Entry { at, event: Event::Reading(reading) };
    let kept = readings.into_iter().enumerate().filter(|(index, _)| is_kept(*index));
    kept.map(|(_, reading)| entry(reading)).collect()
}

/// One line of two that follow each other.
fn both_steps(before: &Step, step: Step) -> Step {
    let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
    Step {
        seconds: sum(before.seconds, step.seconds),
        loader_seconds: sum(before.loader_seconds, step.loader_seconds),
        allocated_peak: before.allocated_peak.max(step.allocated_peak),
        retries: before.retries + step.retries,
        ..step
    }
}

fn alike(one: &Pass, other: &Pass) -> bool {
    (one.has_graph, one.trained) == (other.has_graph, other.trained)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn history(most: usize, events: Vec<Event>) -> Recording {
        let mut history = History::new(Watched::default());
        history.most = most;
        for (index, event) in events.into_iter().enumerate() {
            history.add(Entry { at: index as f64, event });
        }
        history.take()
    }

    fn step(step: u64, peak: u64) -> Event {
        Event::Step(Step {
            step,
            seconds: Some(0.5),
            allocated: Bytes(step),
            allocated_peak: Bytes(peak),
            retries: 1,
            ..Step::default()
        })
    }

    #[test]
    fn old_steps_become_one_of_two_that_loses_neither_time_nor_peak_nor_retries() {
        let seen = history(8, (1..=9).map(|n| step(n, if n == 3 { 99 } else { n })).collect());
        let steps: Vec<_> = seen
            .entries
            .iter()
            .map(|it| match &it.event {
                Event::Step(it) => (it.step, it.seconds, it.allocated_peak.get(), it.retries),
                other => panic!("{other:?}"),
            })
            .collect();
        let one = |n| (n, Some(0.5), n, 1);
        let two = [(2, Some(1.0), 2, 2), (4, Some(1.0), 99, 2)];
        assert_eq!(steps, [&two[..], &[5, 6, 7, 8, 9].map(one)].concat());
    }

    #[test]
    fn old_readings_keep_the_least_and_the_most_memory() {
        let reading = |used| Event::Reading(Reading { used: Bytes(used), ..Reading::default() });
        let seen = history(8, [5, 1, 9, 5, 2, 2, 2, 2, 2].map(reading).to_vec());
        let used: Vec<_> = seen
            .entries
            .iter()
            .map(|it| match &it.event {
                Event::Reading(reading) => reading.used.get(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(used, [1, 9, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn a_pass_with_a_graph_is_not_lost_among_those_without() {
        let pass = |has_graph| Event::Pass(Pass { has_graph, ..Pass::default() });
        let passes = [false, false, false, true, false, false, false, false, false];
        let seen = history(8, passes.map(pass).to_vec());
        assert!(seen.entries.iter().any(|it| it.event == pass(true)), "{seen:?}");
    }

    #[test]
    fn however_much_comes_the_memory_stays_bounded() {
        let seen = history(100, (1..=10_000).map(|n| step(n, n)).collect());
        assert!(seen.entries.len() <= 101, "{}", seen.entries.len());
        let Some(Entry { event: Event::Step(last), .. }) = seen.entries.last() else { panic!() };
        assert_eq!(last.step, 10_000);
    }
}
