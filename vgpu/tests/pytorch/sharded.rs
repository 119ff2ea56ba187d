//! Training with parameters, gradients, states or layers spread over two ranks, each on a device of its
//! own.

use std::process::Stdio;

use serde_json::Value;

use super::distributed::{NCCL, number, peaks, report_of, run, two_cards};
use super::environments;
use super::machine::MIB;

/// Bytes of the parameters of `programs/sharded.py` and `zero_stages.py` in single precision: four times
/// 1024 × 4096 weights twice, and both biases.
const PARAMETERS: u64 = 4 * 4 * (2 * 1024 * 4096 + 4096 + 1024);
/// Of them the biases of the second layers, which tensor parallelism leaves whole.
const REPLICATED: u64 = 4 * 4 * 1024;

#[track_caller]
fn alone() -> Value {
    let machine = two_cards();
    let mut command = machine.program_in(&environments::main(), "sharded");
    let child = command.arg("alone").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    serde_json::from_str(&machine.finish("sharded alone", child).0).unwrap()
}

#[test]
fn what_is_sharded_is_held_in_parts_to_the_byte() {
    let alone = alone();
    // Parameters and both states; and the workspaces of cuBLAS, which each rank has too.
    let workspaces = number(&alone, "held") - 3 * PARAMETERS;
    assert!(workspaces < 20 * MIB, "{workspaces}");
    let half = 3 * PARAMETERS / 2;
    for (mode, held, nccl) in [
        ("fsdp2-bf16", half, NCCL),
        ("fsdp2-keep", half, NCCL),
        // The sharded gradient stays where the whole one was asked for last.
        ("fsdp1", half + PARAMETERS / 2, NCCL),
        // Half of the states, and the buckets of data parallelism.
        ("zero", 2 * PARAMETERS + PARAMETERS, NCCL),
        // The parameters are dealt out by send and receive at first.
        ("tensor", half + 3 * REPLICATED / 2, NCCL + 24 * MIB),
    ] {
        let machine = two_cards();
        let answers = run(&machine, &environments::main(), "sharded", &[mode]);
        assert_eq!(answers.len(), 2, "{mode}");
        for (rank, answer) in answers.iter().enumerate() {
            assert_eq!(number(answer, "held"), held + workspaces, "{mode} rank {rank}");
            let peaks = peaks(answer);
            assert!(peaks[1..].iter().all(|peak| *peak == peaks[1]), "{mode}: {peaks:?}");
            assert!(peaks[1] < number(&alone, "held") + 3 * PARAMETERS, "{mode}: {peaks:?}");
            let report = report_of(&machine, answer);
            assert_eq!(report.not_implemented, Vec::<String>::new(), "{mode}");
            let peak = &report.process_peak[rank];
            let of_pytorch = peak.total_bytes - peak.context_bytes - nccl;
            assert_eq!(of_pytorch, number(answer, "reserved"), "{mode} rank {rank}");
        }
    }
}

#[test]
fn lower_precision_and_resharding_lower_the_peak() {
    let peak = |mode| {
        let answers = run(&two_cards(), &environments::main(), "sharded", &[mode]);
        assert_eq!(answers[0]["peaks"], answers[1]["peaks"], "{mode}");
        peaks(&answers[0])[2]
    };
    let peaks = ["fsdp2-bf16", "fsdp2", "fsdp2-keep"].map(peak);
    assert!(peaks.is_sorted_by(|less, more| less < more), "{peaks:?}");
}

#[test]
fn symmetric_memory_is_on_the_ranks_own_card_and_mapped_by_its_peers() {
    let machine = two_cards();
    let answers = run(&machine, &environments::main(), "sharded", &["symmetric"]);
    assert_eq!(answers.len(), 2);
    for answer in answers {
        assert_eq!(answer["error"], Value::Null);
        let report = report_of(&machine, &answer);
        assert_eq!(report.not_implemented, Vec::<String>::new());
        // A block of 2 MiB and its signals, on one card; none on the peer's, nor a context there.
        let rank = answer["rank"].as_u64().unwrap() as usize;
        let beyond_context = |index: usize| {
            let peak = &report.process_peak[index];
            peak.total_bytes - peak.context_bytes
        };
        assert!(beyond_context(rank) >= 2 * MIB, "{:?}", report.process_peak);
        assert_eq!(report.process_peak[1 - rank].total_bytes, 0, "{:?}", report.process_peak);
    }
}

#[test]
fn deepspeed_holds_in_each_stage_what_it_says() {
    let parameters = PARAMETERS / 4;
    // Parameters in bf16, and half of a copy in fp32 and two states of it.
    let sharded = (2 + 12 / 2) * parameters;
    // Stage 3 keeps the bucket that it reduces gradients in: 500 million numbers of 2 bytes.
    let bucket = 2 * 500_000_000;
    for (mode, held) in
        [(&["1"][..], sharded), (&["3"], sharded + bucket), (&["2", "offload"], 2 * parameters)]
    {
        let machine = two_cards();
        let answers = run(&machine, &environments::main(), "zero_stages", mode);
        assert_eq!(answers.len(), 2, "{mode:?}");
        for answer in answers {
            let found = number(&answer, "held");
            assert!((held..held + 32 * MIB).contains(&found), "{mode:?}: {found} of {held}");
            let report = report_of(&machine, &answer);
            assert_eq!(report.not_implemented, Vec::<String>::new(), "{mode:?}");
        }
    }
}
