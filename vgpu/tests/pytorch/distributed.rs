//! Programs of two ranks, each on its own device of one virtual machine.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vramfit_vgpu_schema::{Device, Report};

use super::environments::{self, Environment};
use super::machine::{MIB, Machine, laptop};

/// NCCL's own buffers for collectives of one communicator, as estimated in `nccl/buffers.rs`.
pub(crate) const NCCL: u64 = 48 * MIB;
/// Parameters of `programs/ddp.py`: four times 1024 × 4096 weights twice, and both biases.
const PARAMETERS: u64 = 4 * (2 * 1024 * 4096 + 4096 + 1024);

pub(crate) fn two_cards() -> Machine {
    let card = |n: u32| Device { uuid: format!("GPU-0a0b0c0d-0001-0002-0003-{n:012}"), ..laptop() };
    Machine::new(vec![card(0), card(1)])
}

/// Runs a program of two ranks to its end; what they said, by rank.
#[track_caller]
pub(crate) fn run(
    machine: &Machine,
    environment: &Environment,
    name: &str,
    arguments: &[&str],
) -> Vec<Value> {
    let mut command = machine.ranks_in(environment, 2, name);
    let output =
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success(),
        "{} {name} {arguments:?}:\n{stdout}{stderr}",
        environment.name
    );
    // Frameworks write beside the program's own lines.
    let mut answers: Vec<Value> =
        stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    answers.sort_by_key(|answer| answer["rank"].as_u64());
    answers
}

pub(crate) fn peaks(answer: &Value) -> Vec<u64> {
    answer["peaks"].as_array().unwrap().iter().map(|peak| peak.as_u64().unwrap()).collect()
}

pub(crate) fn number(answer: &Value, name: &str) -> u64 {
    answer[name].as_u64().unwrap()
}

#[track_caller]
pub(crate) fn report_of(machine: &Machine, answer: &Value) -> Report {
    machine.report(u32::try_from(answer["pid"].as_u64().unwrap()).unwrap())
}

#[test]
fn with_each_pytorch_data_parallel_training_keeps_one_more_copy_of_the_gradients_on_each_card() {
    for environment in environments::all() {
        let name = &environment.name;
        let machine = two_cards();
        let child = machine
            .program_in(&environment, "ddp")
            .arg("alone")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (output, _) = machine.finish("ddp alone", child);
        let alone = *peaks(&serde_json::from_str(&output).unwrap()).last().unwrap();

        let answers = run(&machine, &environment, "ddp", &["ddp"]);
        assert_eq!(answers.len(), 2, "{name}");
        for (rank, answer) in answers.iter().enumerate() {
            assert_eq!(answer["device"], rank, "{name}");
            let peaks = peaks(answer);
            // The same from step to step: nothing that one step held is still there in the next.
            assert!(peaks[1..].iter().all(|peak| *peak == peaks[1]), "{name}: {peaks:?}");
            let buckets = peaks[1] - alone;
            // Each bucket is rounded up to a block.
            let expected = 4 * PARAMETERS;
            assert!(
                (expected..expected + MIB).contains(&buckets),
                "{name}: {buckets} of {expected}"
            );

            let report = report_of(&machine, answer);
            assert_eq!(report.not_implemented, Vec::<String>::new(), "{name}");
            let peak = &report.process_peak[rank];
            let reserved = answer["reserved"].as_u64().unwrap();
            assert_eq!(peak.total_bytes, peak.context_bytes + reserved + NCCL, "{name}");
            assert_eq!(report.process_peak[1 - rank].total_bytes, 0, "{name}: the other's card");
            assert!(report.estimates.iter().any(|it| it.contains("NCCL")), "{name}");
            let reduced = report.collectives.iter().filter(|it| it.call == "ncclAllReduce");
            assert_eq!(reduced.map(|it| it.bytes * it.count).sum::<u64>(), 5 * 4 * PARAMETERS);
        }
        assert_eq!(answers[0]["peaks"], answers[1]["peaks"], "{name}");
        let rooms = std::fs::read_dir(machine.folder()).unwrap().filter(|entry| {
            entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("nccl-")
        });
        assert_eq!(rooms.count(), 0, "{name}: the last rank takes the meeting place away");
    }
}

#[test]
fn sharded_training_keeps_half_of_everything_on_each_card() {
    let environment = environments::main();
    let answers = run(&two_cards(), &environment, "ddp", &["fsdp2"]);
    let peaks = peaks(&answers[0]);
    // Half of parameters, gradients and two states; and at least one whole block at work.
    let half = 4 * 4 * PARAMETERS / 2;
    assert!((half..half + 4 * PARAMETERS).contains(&peaks[4]), "{peaks:?} of {half}");
    assert_eq!(answers[0]["peaks"], answers[1]["peaks"]);
}

#[test]
fn with_each_pytorch_small_payloads_arrive_and_are_reduced() {
    for environment in environments::all() {
        let answers = run(&two_cards(), &environment, "exchange", &["all"]);
        let common = json!({
            "sum": [3.0, 1.0], "maximum": [1, 0], "average": [1.0, 0.5], "product": [6.0],
            "broadcast": [6.0], "gathered": [0.0, 10.0, 1.0, 11.0],
        });
        for (rank, answer) in answers.iter().enumerate() {
            for (name, expected) in common.as_object().unwrap() {
                assert_eq!(&answer[name], expected, "{} rank {rank} {name}", environment.name);
            }
            let rank_f64 = rank as f64;
            assert_eq!(answer["scattered"], json!([if rank == 0 { 3.0 } else { 21.0 }]));
            assert_eq!(answer["exchanged"], json!([rank_f64, 10.0 + rank_f64]));
            let received: Vec<f64> =
                (0..20).map(|n| 100.0 * (1.0 - rank_f64) + f64::from(n)).collect();
            assert_eq!(answer["received"], json!(received));
            assert_eq!(answer["alone"], json!([rank_f64 + 1.0]));
        }
    }
}

#[test]
fn a_dead_rank_does_not_hang_the_other() {
    let start = Instant::now();
    let answers = run(&two_cards(), &environments::main(), "exchange", &["die"]);
    let error = answers[0]["error"].as_str().unwrap();
    assert!(error.contains("rank 1 left or died"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
}

#[test]
fn ranks_that_disagree_are_told_so() {
    let answers = run(&two_cards(), &environments::main(), "exchange", &["disagree"]);
    assert_eq!(answers.len(), 2);
    for answer in answers {
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains("ranks disagree"), "{error}");
        assert!(error.contains("of 4 bytes") || error.contains("of 8 bytes"), "{error}");
    }
}
