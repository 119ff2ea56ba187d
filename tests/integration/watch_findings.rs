//! What detectors find in scripted recordings, and that they find nothing in healthy ones.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use vramfit::units::Bytes;
use vramfit::watch::{
    Entry, Event, Fault, Finding, Gpu, KeptAt, Numbers, Pass, Reading, Recording, Slowdown, Step,
    Trap, Watched, find,
};

use crate::recordings::{self, Moment, Noise, PID, Run, desktop, laptop};

const MIB: u64 = 1 << 20;

/// Finds this fault and no other.
#[track_caller]
fn only(recording: &Recording, fault: Fault) -> Finding {
    let found = find(recording);
    let faults: Vec<_> = found.iter().map(|finding| finding.fault).collect();
    assert_eq!(faults, [fault], "{found:#?}");
    let finding = found.into_iter().next().unwrap();
    assert!((0.0..=1.0).contains(&finding.confidence), "{finding:?}");
    assert!(finding.from <= finding.until, "{finding:?}");
    assert!(!finding.evidence().is_empty() && !finding.remedies().is_empty(), "{finding:?}");
    finding
}

#[track_caller]
fn nothing(recording: &Recording) {
    let found = find(recording);
    let told: Vec<_> = found.iter().map(|it| (it.headline(), it.evidence())).collect();
    assert!(found.is_empty(), "{told:#?}");
}

/// More is held of the GPU in this step.
fn hold(moment: &mut Moment, more: u64) {
    moment.step.allocated.0 += more;
    moment.step.allocated_peak.0 += more;
}

#[test]
fn a_leak_tells_when_memory_runs_out() {
    let recording = Run::new(laptop()).steps(100, |step, it, _| hold(it, step * 2 * MIB)).end();
    let leak = only(&recording, Fault::Leak);
    assert!(leak.confidence > 0.9, "{leak:?}");
    assert_eq!(leak.pid, Some(PID));
    // 4096 MiB, less 300 held before, the last peak of 2048 + 200, and 200 beside the allocator.
    let headline = leak.headline();
    assert!(headline.starts_with("memory grows by 2 MiB a step and runs out in "), "{headline}");
    let Numbers::Leak(numbers) = &leak.numbers else { panic!("{leak:?}") };
    let left = numbers.steps_left.unwrap();
    assert!((left - 674.0).abs() < 10.0, "{left}");
    assert!((numbers.seconds_left.unwrap() / left - 0.5).abs() < 0.02, "{numbers:?}");
}

#[test]
fn a_leak_that_has_ended_the_program_says_so() {
    let mut run = Run::new(laptop()).steps(9, |step, it, _| hold(it, step * 200 * MIB));
    run.event(Event::OutOfMemory { pid: PID, requested: Bytes::mib(512) });
    let leak = only(&run.end(), Fault::Leak);
    assert!(leak.headline().ends_with(" until it ran out"), "{}", leak.headline());
    assert!(leak.evidence().contains(&"then 512 MiB were asked for in vain".to_owned()));
}

#[test]
fn a_sum_of_losses_is_seen_though_the_gpu_holds_no_more() {
    let run = Run::new(laptop()).steps(60, |step, it, _| it.step.graphs = Some(step));
    let leak = only(&run.end(), Fault::Leak);
    assert_eq!(
        leak.headline(),
        "graphs are kept, up to 60 in 60 steps: they fill the host's memory, not the GPU's"
    );
    assert!(leak.remedies()[0].contains("loss.item()"), "{:?}", leak.remedies());
}

#[test]
fn a_sum_of_losses_that_begins_anew_each_epoch_is_seen() {
    let run = Run::new(laptop()).steps(90, |step, it, _| it.step.graphs = Some(1 + step % 25));
    let leak = only(&run.end(), Fault::Leak);
    assert!(leak.headline().starts_with("graphs are kept, up to 25 in 90 steps"), "{leak:?}");
}

#[test]
fn a_leak_is_seen_though_the_end_of_the_program_frees_it() {
    let held = |step| if step == 60 { 0 } else { step * 2 * MIB };
    only(&Run::new(laptop()).steps(60, |step, it, _| hold(it, held(step))).end(), Fault::Leak);
}

#[test]
fn the_smallest_leak_is_told_as_small() {
    let exact = |step: u64, it: &mut Moment, _: &mut Noise| {
        it.step.graphs = Some(step);
        it.step.allocated = Bytes(Bytes::gib(1).0 + 512 * step);
        it.step.allocated_peak = Bytes(Bytes::gib(2).0 + 512 * step);
    };
    let leak = only(&Run::new(laptop()).steps(60, exact).end(), Fault::Leak);
    let headline = leak.headline();
    assert!(
        headline.ends_with("with 512 B a step: little on the GPU, more on the host"),
        "{headline}"
    );
}

#[test]
fn what_grows_is_named_with_its_line_and_its_trap() {
    let mut run = Run::new(laptop()).steps(20, |step, it, _| hold(it, step * MIB));
    let kept = |module: Option<&str>, operator: &str, line: u32, blocks: u64| KeptAt {
        place: format!("train.py:{line} in main"),
        operator: operator.to_owned(),
        module: module.map(str::to_owned),
        bytes: Bytes(blocks * MIB),
        blocks,
    };
    let told = |run: &mut Run, places: Vec<KeptAt>, step| {
        run.event(Event::Kept { pid: PID, step, places });
    };
    told(&mut run, vec![kept(Some("Linear"), "linear", 42, 20)], 20);
    let mut run = run.steps(60, |step, it, _| hold(it, step * MIB));
    told(&mut run, vec![kept(Some("Linear"), "linear", 42, 80), kept(None, "to", 7, 1)], 80);
    let leak = only(&run.end(), Fault::Leak);
    let Numbers::Leak(numbers) = &leak.numbers else { panic!("{leak:?}") };
    assert_eq!(numbers.trap, Some(Trap::KeptTensors));
    let line = "more: 60 blocks of `linear` in Linear, 60 MiB, made at train.py:42 in main";
    assert!(leak.evidence().iter().any(|it| it == line), "{:?}", leak.evidence());
    assert!(leak.remedies()[0].contains("of train.py:42 in main"), "{:?}", leak.remedies());
}

#[test]
fn of_several_ranks_the_worst_is_told_and_the_others_named() {
    let grow = |mib: u64| move |step, it: &mut Moment, _: &mut Noise| hold(it, step * mib * MIB);
    let first = Run::new(desktop()).rank(0).steps(50, grow(1));
    let second = Run::new(desktop()).rank(1).steps(50, grow(4)).end();
    let mut recording = first.end();
    recording.entries.extend(second.entries);
    recording.entries.sort_by(|a, b| a.at.total_cmp(&b.at));
    let leak = only(&recording, Fault::Leak);
    assert_eq!(leak.pid, Some(PID + 1));
    assert!(leak.headline().starts_with("memory grows by 4 MiB"), "{}", leak.headline());
    assert!(
        leak.evidence().contains(&"on rank 1 most; also on rank 0".to_owned()),
        "{:?}",
        leak.evidence()
    );
}

#[test]
fn a_leak_is_seen_in_readings_where_nothing_else_is_known() {
    let grow = |index: u64, it: &mut Reading, _: &mut Noise| {
        it.used.0 += index * 5 * MIB;
        it.process = it.process.map(|held| Bytes(held.0 + index * 5 * MIB));
    };
    let leak = only(&Run::new(desktop()).readings(200, grow).end(), Fault::Leak);
    assert!(leak.headline().starts_with("memory grows by 600 MiB a minute"), "{}", leak.headline());
    assert!(leak.confidence < 0.7, "{leak:?}");
}

#[test]
fn evaluation_with_a_graph_is_told_with_what_it_costs() {
    let graph = |_: u64, pass: &mut Pass| {
        pass.has_graph = true;
        pass.allocated.0 += 700 * MIB;
        pass.allocated_peak.0 += 900 * MIB;
    };
    let run = Run::new(laptop()).steps(20, |_, _, _| {}).passes(10, graph);
    let run = run.steps(20, |_, _, _| {}).passes(10, graph).end();
    let finding = only(&run, Fault::EvaluationWithGraph);
    assert!(finding.confidence > 0.9, "{finding:?}");
    assert_eq!(
        finding.headline(),
        "evaluation of `Net` keeps graphs that nothing runs backward: 701 MiB more than after a step"
    );
}

#[test]
fn evaluation_whose_results_are_kept_with_their_graphs_is_told_to_grow() {
    let graph = |index: u64, pass: &mut Pass| {
        pass.has_graph = true;
        pass.allocated.0 += index * 50 * MIB;
        pass.allocated_peak.0 += index * 50 * MIB;
    };
    let mut run = Run::new(laptop()).steps(20, |_, _, _| {}).passes(30, graph);
    run.event(Event::OutOfMemory { pid: PID, requested: Bytes::mib(50) });
    let finding = only(&run.end(), Fault::EvaluationWithGraph);
    let evidence = finding.evidence().join("\n");
    assert!(evidence.contains("50 MiB more with each pass"), "{evidence}");
    assert!(evidence.contains("ran out of memory there"), "{evidence}");
}

#[test]
fn a_spill_is_told_from_full_memory_and_the_bus() {
    let finding = only(&recordings::spill(), Fault::Spill);
    assert!(finding.confidence > 0.95, "{finding:?}");
    let headline = finding.headline();
    assert!(headline.starts_with("GPU 0 spills into host memory: steps take 5."), "{headline}");
    assert!(finding.from > 20.0, "{finding:?}");
}

#[test]
fn a_spill_from_the_beginning_is_told_from_what_is_sent_to_the_host() {
    let run = Run::new(laptop()).on_windows().steps(60, |step, it, noise| {
        it.reading.used = Bytes::mib(4020);
        // NVML is asked for traffic now and then.
        let sent = noise.between(1e9, 3e9) as u64;
        (it.reading.sent, it.reading.received) =
            if step % 10 == 0 { (Some(sent), Some(sent)) } else { (None, None) };
    });
    let finding = only(&run.end(), Fault::Spill);
    assert!(finding.confidence < 0.7, "{finding:?}");
}

#[test]
fn full_memory_is_no_spill_where_the_driver_cannot() {
    let mut recording = recordings::spill();
    recording.watched.may_spill = false;
    nothing(&recording);
}

#[test]
fn full_memory_is_no_spill_where_nothing_crosses_the_bus() {
    let run = Run::new(laptop()).on_windows().steps(100, |step, it, _| {
        if step > 40 {
            it.step.seconds = Some(1.5);
            it.reading.used = Bytes::mib(4020);
        }
    });
    nothing(&run.end());
}

#[test]
fn an_allocator_that_flushes_again_and_again_thrashes() {
    let run = Run::new(laptop()).steps(100, |step, it, _| {
        if step % 3 == 0 {
            it.step.retries = 2;
            it.step.seconds = Some(0.8);
        }
    });
    let finding = only(&run.end(), Fault::Thrash);
    let words = "a step with one takes 800 ms, one without 500 ms";
    assert!(finding.evidence().iter().any(|it| it == words), "{:?}", finding.evidence());
}

#[test]
fn a_hot_laptop_is_told_how_to_cool() {
    let finding = only(&recordings::throttle(), Fault::Throttle);
    assert!(finding.headline().contains("held back by heat, by the driver in 40 %"), "{finding:?}");
    assert!(finding.remedies()[0].contains("let air in"), "{:?}", finding.remedies());
}

#[test]
fn a_weak_power_supply_is_told_on_a_laptop_and_on_a_desktop() {
    let brake = |step: u64, it: &mut Moment, _: &mut Noise| {
        if step.is_multiple_of(2) {
            it.reading.clock = Some(700);
            it.reading.slowdowns = vec![Slowdown::PowerBrake, Slowdown::Hardware];
        }
    };
    for (gpu, remedy) in [(laptop(), "plug in"), (desktop(), "check the power supply")] {
        let finding = only(&Run::new(gpu).steps(100, brake).end(), Fault::Throttle);
        assert!(finding.remedies()[0].starts_with(remedy), "{:?}", finding.remedies());
    }
}

#[test]
fn a_laptop_on_its_battery_is_held_back_by_its_power_limit() {
    let capped = |_: u64, it: &mut Moment, noise: &mut Noise| {
        it.reading.clock = Some(noise.between(600.0, 800.0) as u32);
        it.reading.slowdowns = vec![Slowdown::PowerCap];
    };
    let finding = only(&Run::new(laptop()).steps(60, capped).end(), Fault::Throttle);
    assert!(finding.remedies()[0].starts_with("plug in"), "{:?}", finding.remedies());
}

#[test]
fn a_loader_that_takes_long_starves_the_gpu() {
    let slow = |_: u64, it: &mut Moment, noise: &mut Noise| {
        it.step.loader_seconds = Some(noise.between(0.25, 0.35));
        it.reading.utilisation = Some(noise.between(20.0, 60.0) as u32);
    };
    let finding = only(&Run::new(laptop()).steps(60, slow).end(), Fault::Starvation);
    assert!(finding.headline().starts_with("the GPU waits for the loader: 5"), "{finding:?}");
    assert!(finding.remedies()[0].contains("num_workers"), "{:?}", finding.remedies());
}

#[test]
fn waiting_at_the_start_of_each_epoch_is_told_apart() {
    let slow = |step: u64, it: &mut Moment, _: &mut Noise| {
        it.reading.utilisation = Some(60);
        if step.is_multiple_of(12) {
            it.step.loader_seconds = Some(5.0);
            it.step.seconds = Some(5.5);
        }
    };
    let finding = only(&Run::new(laptop()).steps(240, slow).end(), Fault::Starvation);
    assert!(finding.remedies()[0].contains("persistent_workers"), "{:?}", finding.remedies());
}

#[test]
fn a_gpu_that_idles_in_a_rhythm_may_be_starved() {
    let idle = |index: u64, it: &mut Reading, _: &mut Noise| {
        if !index.is_multiple_of(4) {
            it.utilisation = Some(3);
        }
    };
    let finding = only(&Run::new(desktop()).readings(120, idle).end(), Fault::Starvation);
    assert!(finding.confidence <= 0.5, "{finding:?}");
    assert!(finding.evidence().contains(&"a gap each 2.0 s".to_owned()), "{finding:?}");
}

/// Runs in which nothing is wrong, by what they do.
fn healthy() -> Vec<(&'static str, Recording)> {
    let runs = |seed: u64| Run::new(laptop()).seed(seed);
    vec![
        ("plain", runs(1).steps(200, |_, _, _| {}).end()),
        (
            "batches of any length",
            runs(2)
                .steps(200, |_, it, noise| {
                    let length = noise.between(0.1, 1.0);
                    it.step.allocated.0 += (length * 60.0) as u64 * MIB;
                    it.step.allocated_peak.0 += (length * 800.0) as u64 * MIB;
                    it.step.seconds = it.step.seconds.map(|seconds| seconds * length);
                })
                .end(),
        ),
        (
            "sequences that get longer",
            runs(3)
                .steps(200, |step, it, _| {
                    it.step.allocated.0 += step * MIB / 4;
                    it.step.allocated_peak.0 += step * 4 * MIB;
                })
                .end(),
        ),
        (
            "state that is made late",
            runs(4).steps(200, |step, it, _| hold(it, if step > 30 { 500 * MIB } else { 0 })).end(),
        ),
        (
            "a replay buffer that is full after a while",
            runs(5).steps(200, |step, it, _| hold(it, step.min(110) * 4 * MIB)).end(),
        ),
        (
            "garbage that is collected",
            runs(6).steps(200, |step, it, _| hold(it, step % 23 * 20 * MIB)).end(),
        ),
        (
            "evaluation now and then",
            runs(7)
                .steps(50, |_, _, _| {})
                .passes(20, |_, _| {})
                .steps(50, |step, it, _| hold(it, if step < 52 { 30 * MIB } else { 0 }))
                .passes(20, |_, _| {})
                .end(),
        ),
        (
            "a teacher whose passes have graphs",
            (0..60)
                .fold(runs(8), |run, _| {
                    let run = run.steps(1, |_, _, _| {});
                    run.passes(4, |_, pass| pass.has_graph = true)
                })
                .end(),
        ),
        (
            "adversarial examples",
            runs(9).passes(40, |_, pass| (pass.has_graph, pass.trained) = (true, true)).end(),
        ),
        (
            "detached losses in a list",
            runs(10)
                .steps(200, |step, it, _| {
                    it.step.allocated = Bytes(Bytes::gib(1).0 + 512 * step);
                    it.step.allocated_peak = Bytes(Bytes::gib(2).0 + 512 * step);
                })
                .end(),
        ),
        (
            "flushes in warm-up",
            runs(11).steps(200, |step, it, _| it.step.retries = u64::from(step < 15)).end(),
        ),
        (
            "full memory that does not hurt",
            runs(12)
                .on_windows()
                .steps(200, |step, it, _| {
                    if step > 50 {
                        it.reading.used = Bytes::mib(4050);
                    }
                })
                .end(),
        ),
        (
            "all power that it may draw",
            Run::new(desktop())
                .steps(200, |_, it, noise| {
                    it.reading.slowdowns = vec![Slowdown::PowerCap];
                    it.reading.clock = Some(noise.between(1350.0, 1650.0) as u32);
                })
                .end(),
        ),
        (
            "kept at its target temperature",
            runs(13)
                .steps(200, |step, it, noise| {
                    if step > 100 {
                        it.reading.slowdowns = vec![Slowdown::Heat];
                        it.reading.clock = Some(noise.between(1720.0, 1800.0) as u32);
                    }
                })
                .end(),
        ),
        (
            "slow while idle",
            runs(14)
                .steps(50, |_, _, _| {})
                .readings(200, |_, it, _| {
                    it.utilisation = Some(0);
                    it.clock = Some(210);
                    it.slowdowns = vec![Slowdown::Heat];
                })
                .end(),
        ),
        (
            "a first epoch that begins slowly",
            runs(15)
                .steps(200, |step, it, _| {
                    if step < 4 {
                        it.step.loader_seconds = Some(20.0);
                        it.step.seconds = Some(21.0);
                    }
                })
                .end(),
        ),
        (
            "a loader behind which the GPU has enough to do",
            runs(16).steps(200, |_, it, _| it.step.loader_seconds = Some(0.3)).end(),
        ),
    ]
}

#[test]
fn nothing_is_found_in_healthy_runs() {
    for (what, recording) in healthy() {
        println!("{what}");
        nothing(&recording);
    }
}

#[test]
fn nothing_is_found_where_little_is_known() {
    nothing(&Recording::default());
    for (what, recording) in healthy() {
        println!("{what}");
        let without = |drop: fn(&Event) -> bool| {
            let entries = recording.entries.iter().filter(|it| !drop(&it.event)).cloned().collect();
            Recording { watched: recording.watched.clone(), entries }
        };
        // Of this one only readings tell that it is healthy.
        if what != "a loader behind which the GPU has enough to do" {
            nothing(&without(|event| matches!(event, Event::Reading(_))));
        }
        nothing(&without(|event| matches!(event, Event::Step(_))));
    }
}

#[test]
fn what_is_found_stays_found_when_other_gpus_are_shuffled() {
    let gpu = Gpu { index: 1, ..desktop() };
    let recording = recordings::throttle();
    let expected = find(&recording);
    let mut noise = Noise::new(3);
    let mut other = recording.clone();
    other.watched.gpus.push(gpu);
    for entry in &recording.entries {
        let used = Bytes(noise.between(1e9, 9e9) as u64);
        let reading = Reading { gpu: 1, used, ..Reading::default() };
        other.entries.push(Entry { at: entry.at, event: Event::Reading(reading) });
    }
    other.entries.sort_by(|a, b| a.at.total_cmp(&b.at));
    assert_eq!(find(&other), expected);
}

/// `tests/watch`: recordings that are replayed by the program. `VRAMFIT_WRITE_RECORDINGS=1` writes them
/// anew.
#[test]
fn stored_recordings_are_those_that_are_scripted() {
    for (name, recording) in [("spill", recordings::spill()), ("throttle", recordings::throttle())]
    {
        let Recording { watched, entries } = recording;
        let first = Entry { at: 0.0, event: Event::Watched(watched) };
        let lines: String = std::iter::once(first)
            .chain(entries)
            .map(|entry| serde_json::to_string(&entry).unwrap() + "\n")
            .collect();
        let path = stored(name);
        if std::env::var_os("VRAMFIT_WRITE_RECORDINGS").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &lines).unwrap();
        }
        let is_stored = fs::read_to_string(&path).unwrap() == lines;
        assert!(is_stored, "{}: write it with VRAMFIT_WRITE_RECORDINGS=1", path.display());
    }
}

pub(crate) fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watch").join(format!("{name}.jsonl"))
}

fn arbitrary_event() -> impl Strategy<Value = Event> {
    let bytes = || prop_oneof![any::<u64>(), 0..8 * MIB * 1024].prop_map(Bytes);
    let seconds = || prop::option::of(prop_oneof![any::<f64>(), 0.0..10.0f64]);
    let pid = || 0..3u32;
    let step = (pid(), any::<u8>(), seconds(), seconds(), bytes(), bytes(), bytes(), any::<u64>())
        .prop_flat_map(
            |(pid, step, seconds, loader_seconds, allocated, peak, reserved, retries)| {
                let graphs = prop::option::of(any::<u64>());
                graphs.prop_map(move |graphs| {
                    Event::Step(Step {
                        pid,
                        step: u64::from(step),
                        seconds,
                        loader_seconds,
                        allocated,
                        allocated_peak: peak,
                        reserved,
                        retries,
                        collected: None,
                        graphs,
                        retains_graph: false,
                    })
                })
            },
        );
    let pass = (pid(), any::<u8>(), any::<bool>(), bytes(), bytes()).prop_map(
        |(pid, step, has_graph, allocated, allocated_peak)| {
            let model = "Net".to_owned();
            let step = u64::from(step);
            let trained = false;
            Event::Pass(Pass { pid, step, model, has_graph, allocated, allocated_peak, trained })
        },
    );
    let number = || prop::option::of(any::<u32>());
    let reading = (0..2u32, bytes(), number(), number(), any::<bool>(), number()).prop_map(
        |(gpu, used, utilisation, clock, hot, power)| {
            let slowdowns = if hot { vec![Slowdown::Heat] } else { Vec::new() };
            Event::Reading(Reading {
                gpu,
                used,
                utilisation,
                clock,
                power,
                slowdowns,
                received: clock.map(u64::from),
                sent: power.map(u64::from),
                ..Reading::default()
            })
        },
    );
    let kept =
        (pid(), any::<u64>(), bytes(), any::<u64>()).prop_map(|(pid, step, bytes, blocks)| {
            let place = KeptAt { bytes, blocks, ..KeptAt::default() };
            Event::Kept { pid, step, places: vec![place] }
        });
    let torch = (pid(), prop::option::of(any::<u32>())).prop_map(|(pid, rank)| Event::Torch {
        pid,
        rank,
        version: String::new(),
    });
    let failed =
        (pid(), bytes()).prop_map(|(pid, requested)| Event::OutOfMemory { pid, requested });
    prop_oneof![8 => step, 4 => pass, 8 => reading, 1 => kept, 1 => torch, 1 => failed]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_recorded_is_judged(
        entries in prop::collection::vec((prop_oneof![any::<f64>(), 0.0..100.0f64], arbitrary_event()), 0..120),
        total in any::<u64>(),
        held in any::<u64>(),
        may_spill in any::<bool>(),
    ) {
        let gpu = |index| Gpu { index, total: Bytes(total), held: Bytes(held), ..laptop() };
        let watched = Watched { gpus: vec![gpu(0), gpu(1)], may_spill, ..Watched::default() };
        let entries = entries.into_iter().map(|(at, event)| Entry { at, event }).collect();
        for finding in find(&Recording { watched, entries }) {
            prop_assert!((0.0..=1.0).contains(&finding.confidence), "{finding:?}");
            prop_assert!(!finding.headline().is_empty() && !finding.evidence().is_empty());
            prop_assert!(!finding.remedies().is_empty());
        }
    }

    #[test]
    fn noise_is_no_fault(seed in any::<u64>(), amount in 0.0..600.0f64, steps in 12..150u64) {
        let run = Run::new(laptop()).seed(seed).steps(steps, |_, it, noise| {
            hold(it, noise.between(0.0, amount * MIB as f64) as u64);
        });
        let found = find(&run.end());
        prop_assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn a_slope_above_the_noise_is_always_a_leak(
        seed in any::<u64>(),
        slope in 1.0..40.0f64,
        steps in 40..150u64,
    ) {
        let run = Run::new(desktop()).seed(seed).steps(steps, |step, it, noise| {
            let noise = noise.between(0.0, 4.0 * slope);
            hold(it, ((slope * step as f64 + noise) * MIB as f64) as u64);
        });
        let found = find(&run.end());
        prop_assert_eq!(found.len(), 1, "{:#?}", found);
        let Numbers::Leak(leak) = &found[0].numbers else { panic!("{found:?}") };
        prop_assert!((leak.slope / (slope * MIB as f64) - 1.0).abs() < 0.2, "{leak:?}");
        prop_assert!(leak.slopes.0 <= leak.slope && leak.slope <= leak.slopes.1, "{leak:?}");
    }
}
