//! Which points to try for a whole plan: for each setting its largest micro-batch.

use super::Prober;
use super::search::{Peaks, Search, Seen};
use crate::error::{Error, ErrorKind};
use crate::measurement::{Measurement, Outcome, Point, Setting, Verdict};
use crate::survey::Survey;
use crate::units::Bytes;
use crate::workload::{Goal, Workload};

/// Points that may fail for themselves in a row, with nothing measured, before it is believed that
/// nothing can be.
const FAILURES_IN_A_ROW: usize = 4;

/// The tries that make up a plan.
#[derive(Clone, Copy, Debug)]
pub struct Campaign<'a> {
    /// What is trained.
    pub workload: &'a Workload,
    /// What the micro-batches add up to.
    pub goal: &'a Goal,
    /// The settings to search, the careful person's first: what an early end leaves is then a plan
    /// with the least risk.
    pub settings: &'a [Setting],
    /// What may be used.
    pub budget: Bytes,
}

/// What a campaign found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// All that was measured, in order.
    pub measurements: Vec<Measurement>,
    /// One entry for each setting that was begun.
    pub searches: Vec<Searched>,
    /// What blocks cost, where some of them were chosen.
    pub surveys: Vec<Survey>,
    /// The user stopped it.
    pub interrupted: bool,
    /// Why it ended before its end, when it was not the user.
    pub stopped_by: Option<String>,
}

/// What is known of one setting; indices point into [`Findings::measurements`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Searched {
    /// The setting.
    pub setting: Setting,
    /// The largest micro-batch that was tried and fits.
    pub largest: Option<usize>,
    /// The next admissible one, tried and found too large. None when there is no larger one.
    pub successor: Option<usize>,
    /// The search came to its end.
    pub complete: bool,
}

impl Findings {
    /// Tries `point` unless it was tried already; the index of its measurement.
    ///
    /// # Errors
    /// As [`Prober::probe`], and when too many points in a row failed for themselves.
    pub fn probe(
        &mut self,
        prober: &mut dyn Prober,
        workload: &Workload,
        point: Point,
    ) -> Result<usize, Error> {
        if let Some(index) = self.measurements.iter().position(|known| known.point == point) {
            return Ok(index);
        }
        self.measurements.push(prober.probe(workload, point)?);
        self.believe_in_success()?;
        Ok(self.measurements.len() - 1)
    }

    /// What a search found out about a setting, if it was begun.
    pub fn searched(&self, setting: Setting) -> Option<&Searched> {
        self.searches.iter().find(|searched| searched.setting == setting)
    }

    /// Keeps why nothing more is tried: the user's wish, or something that went wrong.
    pub fn end(&mut self, error: &Error) {
        match error.kind() {
            ErrorKind::Interrupted => self.interrupted = true,
            _ => self.stopped_by = Some(error.to_string()),
        }
    }

    /// Where in the user's own code the first point failed that failed there.
    pub fn traceback(&self) -> Option<&str> {
        self.measurements.iter().find_map(|known| known.outcome.traceback())
    }

    fn nothing_measured(&self, reason: String) -> Error {
        Error::new(ErrorKind::NothingMeasured { reason }).detail(self.traceback())
    }

    fn believe_in_success(&self) -> Result<(), Error> {
        let failures =
            self.measurements.iter().rev().map_while(|measurement| match &measurement.outcome {
                Outcome::Failed { message, .. } => Some(message),
                Outcome::Ran(_) | Outcome::OutOfMemory { .. } => None,
            });
        let failures: Vec<_> = failures.collect();
        let nothing_else = failures.len() == self.measurements.len();
        match failures.first() {
            Some(reason) if nothing_else && failures.len() >= FAILURES_IN_A_ROW => {
                Err(self.nothing_measured((*reason).clone()))
            }
            _ => Ok(()),
        }
    }
}

impl Campaign<'_> {
    /// Runs it; `progress` hears of each measurement.
    ///
    /// # Errors
    /// When nothing could be measured at all. Once something was, it is not lost: a prober that can
    /// go on no more, or the user's wish to stop, ends the campaign early.
    pub fn run(
        &self,
        prober: &mut dyn Prober,
        progress: &mut dyn FnMut(&Findings),
    ) -> Result<Findings, Error> {
        let mut findings = Findings::default();
        let sizes = self.goal.micro_batches();
        for setting in self.settings {
            let ended = self.search(*setting, &sizes, prober, &mut findings, progress);
            match ended {
                Ok(()) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted)
                        || findings.measurements.iter().any(|known| known.ran().is_some()) =>
                {
                    findings.end(&error);
                    return Ok(findings);
                }
                Err(error) => return Err(error),
            }
        }
        let last_failure =
            findings.measurements.iter().rev().find_map(|known| match &known.outcome {
                Outcome::Failed { message, .. } => Some(message.clone()),
                Outcome::Ran(_) | Outcome::OutOfMemory { .. } => None,
            });
        let all_failed = findings
            .measurements
            .iter()
            .all(|known| known.verdict(self.budget) == Verdict::Unknown);
        match last_failure {
            Some(reason) if all_failed => Err(findings.nothing_measured(reason)),
            _ => Ok(findings),
        }
    }

    fn search(
        &self,
        setting: Setting,
        sizes: &[u32],
        prober: &mut dyn Prober,
        findings: &mut Findings,
        progress: &mut dyn FnMut(&Findings),
    ) -> Result<(), Error> {
        let mut search = Search::new(sizes, self.budget);
        let entry = findings.searches.len();
        findings.searches.push(Searched {
            setting,
            largest: None,
            successor: None,
            complete: false,
        });
        while let Some(size) = search.next() {
            let point = Point::to_probe(setting, size, self.goal);
            let index = findings.probe(prober, self.workload, point)?;
            search.take_in(size, seen(&findings.measurements[index], self.budget));
            let find = |size: Option<u32>| {
                let point = Point::to_probe(setting, size?, self.goal);
                findings.measurements.iter().position(|known| known.point == point)
            };
            findings.searches[entry] = Searched {
                setting,
                largest: find(search.largest()),
                successor: find(search.successor()),
                complete: search.next().is_none(),
            };
            progress(findings);
        }
        Ok(())
    }
}

/// A measurement in the eyes of the search.
pub(super) fn seen(measurement: &Measurement, budget: Bytes) -> Seen {
    let peaks = measurement.ran().map(|ran| Peaks {
        device: ran.memory.device_peak,
        allocated: ran.memory.context + ran.memory.allocated_peak,
        gradients: ran.memory.gradients,
    });
    Seen { verdict: measurement.verdict(budget), peaks }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::measurement::{Evidence, EvidenceKind, Memory, Ran};
    use crate::profile::model::{Activation, Architecture, Mlp, ModelProfile};
    use crate::workload::{Checkpointing, Optimizer, OptimizerImplementation, Precision, Subject};

    pub(in crate::probe) fn workload() -> Workload {
        Workload {
            subject: Subject::BuiltIn(ModelProfile {
                name: "mlp".to_owned(),
                description: "for tests".to_owned(),
                source: "here".to_owned(),
                parameters: 1,
                architecture: Architecture::Mlp(Mlp {
                    inputs: 1,
                    hidden: vec![1],
                    outputs: 1,
                    activation: Activation::Relu,
                }),
            }),
            sequence: None,
            optimizer: Some(Optimizer::Adamw),
            optimizer_implementation: OptimizerImplementation::Foreach,
            gradient_clipping: None,
        }
    }

    /// A GPU of `budget` on which a setting costs so much fixed and so much a sample.
    pub(in crate::probe) struct Affine {
        pub(in crate::probe) budget: Bytes,
        pub(in crate::probe) cost: fn(&Workload, Setting) -> (u64, u64),
        pub(in crate::probe) probes: usize,
        pub(in crate::probe) stop_after: usize,
    }

    impl Affine {
        pub(in crate::probe) fn new(
            budget: Bytes,
            cost: fn(&Workload, Setting) -> (u64, u64),
        ) -> Self {
            Self { budget, cost, probes: 0, stop_after: usize::MAX }
        }
    }

    pub(in crate::probe) fn measured(point: Point, outcome: Outcome) -> Measurement {
        let evidence = Evidence::of(EvidenceKind::Virtual);
        Measurement { point, sequence: None, outcome, evidence, probe_seconds: 0.0 }
    }

    impl Prober for Affine {
        fn probe(&mut self, workload: &Workload, point: Point) -> Result<Measurement, Error> {
            if self.probes == self.stop_after {
                return Err(ErrorKind::Interrupted.into());
            }
            self.probes += 1;
            let (fixed, slope) = (self.cost)(workload, point.setting);
            let peak = Bytes(fixed + slope * u64::from(point.micro_batch));
            let outcome = match peak <= self.budget {
                true => Outcome::Ran(Ran {
                    memory: Memory {
                        allocated_peak: peak,
                        reserved_peak: peak,
                        device_peak: peak,
                        ..Memory::default()
                    },
                    allocator_retries: 0,
                    step_seconds: 0.1,
                    step_time: None,
                }),
                false => Outcome::OutOfMemory { message: "CUDA out of memory".to_owned() },
            };
            Ok(Measurement { sequence: workload.sequence, ..measured(point, outcome) })
        }
    }

    pub(in crate::probe) fn setting(precision: Precision, checkpointing: Checkpointing) -> Setting {
        Setting { precision, checkpointing }
    }

    fn cost(_: &Workload, setting: Setting) -> (u64, u64) {
        let sample = if setting.precision.is_mixed() { 60 } else { 100 };
        (1000, if setting.checkpointing == Checkpointing::None { sample } else { sample / 4 })
    }

    fn settings() -> [Setting; 3] {
        [
            setting(Precision::Fp32, Checkpointing::None),
            setting(Precision::Bf16, Checkpointing::None),
            setting(Precision::Bf16, Checkpointing::Full),
        ]
    }

    const GOAL: Goal = Goal { target_batch: 64, world_size: 1, ragged: false };

    fn sizes(findings: &Findings) -> Vec<(Option<u32>, Option<u32>)> {
        let size = |index: Option<usize>| index.map(|i| findings.measurements[i].point.micro_batch);
        findings.searches.iter().map(|it| (size(it.largest), size(it.successor))).collect()
    }

    #[test]
    fn each_setting_gets_its_largest_and_a_successor_that_fails() {
        let (workload, settings) = (workload(), settings());
        let campaign =
            Campaign { workload: &workload, goal: &GOAL, settings: &settings, budget: Bytes(2000) };
        let mut prober = Affine::new(Bytes(2000), cost);
        let findings = campaign.run(&mut prober, &mut |_| {}).unwrap();
        let expected = [(Some(8), Some(16)), (Some(16), Some(32)), (Some(64), None)];
        assert_eq!(sizes(&findings), expected);
        assert!(findings.searches.iter().all(|searched| searched.complete));
        assert_eq!(prober.probes, findings.measurements.len());
    }

    #[test]
    fn an_early_end_leaves_what_is_known() {
        let (workload, settings) = (workload(), settings());
        let campaign =
            Campaign { workload: &workload, goal: &GOAL, settings: &settings, budget: Bytes(2000) };
        let mut prober = Affine::new(Bytes(2000), cost);
        prober.stop_after = 3;
        let findings = campaign.run(&mut prober, &mut |_| {}).unwrap();
        assert!(findings.interrupted && !findings.searches[0].complete);
        assert_eq!(sizes(&findings), [(Some(8), None)]);
    }

    #[test]
    fn a_prober_that_measures_nothing_ends_the_campaign() {
        struct Broken;
        impl Prober for Broken {
            fn probe(&mut self, _: &Workload, point: Point) -> Result<Measurement, Error> {
                Ok(measured(point, Outcome::failed("the worker hung")))
            }
        }
        let (workload, settings) = (workload(), settings());
        let campaign =
            Campaign { workload: &workload, goal: &GOAL, settings: &settings, budget: Bytes(2000) };
        let error = campaign.run(&mut Broken, &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "nothing could be measured: the worker hung");
    }
}
