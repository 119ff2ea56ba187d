use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::fake::json;
use crate::harness::Test;

/// ResNet-50 as torchvision has it, under a name of its own.
const RESNET: &str = r#"
name = "a-resnet"
description = "ResNet-50"
source = "torchvision"
parameters = 25557032
[architecture.resnet]
block = "bottleneck"
stages = [3, 4, 6, 3]
classes = 1000
image = 224
"#;

/// The real worker, which only the release build has; without it in a debug build there is nothing
/// to test.
fn worker() -> Option<PathBuf> {
    let given = std::env::var_os("VRAMFIT_WORKER").map(PathBuf::from);
    let built = || Path::new(env!("CARGO_BIN_EXE_vramfit")).with_file_name("vramfit-worker");
    let worker = given.unwrap_or_else(built);
    assert!(
        worker.exists() || cfg!(debug_assertions),
        "`make test` builds the worker, which is not at {}",
        worker.display()
    );
    worker.exists().then_some(worker)
}

fn training(worker: &Path, arguments: &[&str]) -> Test {
    let test = Test::new(arguments)
        .file("own/models/a-resnet.toml", RESNET)
        .env("PATH", &std::env::var("PATH").unwrap())
        .env("VRAMFIT_WORKER", worker.to_str().unwrap());
    match std::env::var("VRAMFIT_VGPU_LIBRARY") {
        Ok(library) => test.env("VRAMFIT_VGPU_LIBRARY", &library),
        Err(_) => test,
    }
}

/// For the largest that fits, which is exact: which is the fastest rests on times.
const PLAN: [&str; 12] = [
    "plan",
    "--json",
    "--model",
    "a-resnet",
    "--target-batch",
    "64",
    "--checkpoint",
    "none",
    "--precision",
    "fp32",
    "--objective",
    "micro-batch",
];

#[test]
fn what_a_plan_recommends_passes_the_check_and_much_more_does_not() {
    let Some(worker) = worker() else { return };
    let gpu = ["--gpu", "rtx-3050-laptop-4gb"];
    let plan = training(&worker, &[&PLAN[..], &gpu].concat()).run();
    assert_eq!((plan.status, plan.stderr.as_str()), (Some(0), ""));
    let check =
        training(&worker, &["check", "--plan", "plan.json"]).file("plan.json", &plan.stdout).run();
    assert_eq!(check.status, Some(0), "{check:?}");
    let arguments = ["check", "--json", "--model", "a-resnet", "--micro-batch", "512"];
    let check = training(&worker, &[&arguments[..], &gpu].concat()).run();
    assert_eq!(check.status, Some(1), "{check:?}");
    let recommended = &json(&plan)["recommendation"]["micro_batch"];
    assert_eq!(&json(&check)["would_fit"][0]["micro-batch"], recommended);
}

#[test]
fn some_blocks_are_enough_where_none_are_not_and_save_what_all_would_compute_twice() {
    let Some(worker) = worker() else { return };
    let gpu = ["--precision", "bf16", "--gpu", "rtx-3050-laptop-4gb"];
    let arguments = [&PLAN[..6], &PLAN[10..], &gpu].concat();
    let plan = json(&training(&worker, &arguments).run());
    let others = plan["alternatives"].as_array().unwrap();
    let choices: Vec<_> = std::iter::once(&plan["recommendation"]).chain(others).collect();
    let with = |name: &str| choices.iter().find(|it| it["checkpointing"] == name).unwrap();
    let in_part = choices.iter().find(|it| it["checkpointing"]["blocks"].is_array()).unwrap();
    let size = |choice: &Value| choice["micro_batch"].as_u64().unwrap();
    let peak = |choice: &Value| choice["memory"]["device_peak"].as_u64().unwrap();
    assert!(size(with("none")) < size(in_part), "{in_part}");
    assert_eq!(size(with("full")), size(in_part), "{in_part}");
    // It uses the room that full checkpointing leaves.
    assert!(peak(with("full")) < peak(in_part), "{in_part}");
    assert!(peak(in_part) <= plan["budget"]["budget"].as_u64().unwrap(), "{in_part}");
    let chosen = in_part["checkpointing"]["blocks"].as_array().unwrap().len();
    assert!((1..8).contains(&chosen), "{in_part}");
    assert_eq!(plan["surveys"][0]["blocks"].as_array().unwrap().len(), 16);
}

#[test]
fn more_memory_gives_larger_micro_batches_each_proven_by_its_successor() {
    let Some(worker) = worker() else { return };
    let mut before = 0;
    for (gpu, target) in [("2GiB", "96"), ("4GiB", "96"), ("12GiB", "960")] {
        let arguments =
            [&PLAN[..5], &[target], &PLAN[6..], &["--gpu", "rtx-3050-laptop-4gb", "--vram", gpu]]
                .concat();
        let plan = json(&training(&worker, &arguments).run());
        let choice = &plan["recommendation"];
        let micro_batch = choice["micro_batch"].as_u64().unwrap();
        assert!(micro_batch > before, "{gpu}: {choice}");
        assert_eq!(target.parse::<u64>().unwrap() % micro_batch, 0, "{gpu}: {choice}");
        assert!(choice["next"]["micro_batch"].as_u64().unwrap() > micro_batch, "{gpu}: {choice}");
        before = micro_batch;
    }
}

#[test]
fn memory_seen_from_outside_is_the_context_and_the_allocators_segments() {
    let Some(worker) = worker() else { return };
    let plan = training(&worker, &[&PLAN[..], &["--gpu", "t4"]].concat()).run();
    let plan = json(&plan);
    let memory = &plan["recommendation"]["memory"];
    let bytes = |part: &str| memory[part].as_u64().unwrap();
    let context = plan["notes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|note| note["note"] == "context-of-profile")
        .and_then(|note| note["context"].as_u64());
    // Accounted for in pages of 2 MiB.
    assert!(context.unwrap().abs_diff(bytes("context")) < 2 << 20, "{memory}");
    assert_eq!(bytes("device_peak"), bytes("context") + bytes("reserved_peak"));
    let unwanted = ["process-unnamed", "others-grew", "not-implemented", "internal-error"];
    let notes = plan["notes"].as_array().unwrap();
    let unwanted: Vec<_> =
        notes.iter().filter(|note| unwanted.contains(&note["note"].as_str().unwrap())).collect();
    assert!(unwanted.is_empty(), "{unwanted:?}");
}

#[test]
fn a_plan_for_a_card_in_the_machine_searches_on_its_twin_and_verifies_on_the_card() {
    let Some(worker) = worker() else { return };
    // A virtual card stands in for the machine's: what the inner plan finds through NVML is real
    // to it.
    let vramfit = env!("CARGO_BIN_EXE_vramfit");
    let outer = ["run", "--gpu", "rtx-4060-laptop", "--reserve", "1GiB", "--", vramfit];
    let run = training(&worker, &[&outer[..], &PLAN].concat()).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let plan = json(&run);
    assert!(plan["device"]["name"].as_str().unwrap().starts_with("GPU-"), "{plan}");
    assert!(plan["budget"]["held_by_others"].as_u64().unwrap() >= 1 << 30, "{plan}");
    let kinds: Vec<&Value> =
        plan["measurements"].as_array().unwrap().iter().map(|m| &m["evidence"]["kind"]).collect();
    assert!(kinds.iter().all(|kind| *kind == "virtual"), "{kinds:?}");
    let evidence = plan["recommendation"]["evidence"].as_u64().unwrap();
    assert_eq!(usize::try_from(evidence).unwrap(), kinds.len() - 1, "the last try is on the card");
    let next = &plan["recommendation"]["next"];
    let on_twin: Vec<_> = plan["notes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|note| note["note"] == "next-on-twin")
        .map(|note| &note["points"][0]["micro_batch"])
        .collect();
    assert_eq!(on_twin, [&next["micro_batch"]], "{plan}");
}

#[test]
fn each_point_of_a_rehearsed_gpu_check_is_the_same_on_both_sides_to_the_byte() {
    let Some(worker) = worker() else { return };
    let vramfit = env!("CARGO_BIN_EXE_vramfit");
    let arguments = ["run", "--gpu", "rtx-3090", "--", vramfit, "gpu-check", "--json"];
    let run = training(&worker, &arguments).run();
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let document = json(&run);
    assert_eq!(document["rehearsal"], true);
    let results = document["results"].as_array().unwrap();
    let compared: Vec<_> = results.iter().filter(|it| it["errors"].is_object()).collect();
    assert!(compared.len() >= 24, "{}", document["summary"]);
    for result in compared {
        for part in ["allocated", "reserved", "context", "device"] {
            assert_eq!(result["errors"][part]["bytes"], 0, "{part}: {result}");
        }
        let context = &result["card"]["outcome"]["ran"]["memory"]["context"];
        assert_eq!(&result["card"]["observation"]["context_at_start"], context, "{result}");
    }
    let usable = &document["card"]["budget"]["usable"];
    assert_eq!(&document["card"]["cuda_total"], usable, "{}", document["card"]);
}

#[test]
fn a_worker_does_not_outlive_the_program_even_when_it_hangs() {
    let Some(worker) = worker() else { return };
    let arguments = [&PLAN[..], &["--gpu", "rtx-4090", "--record", "points.jsonl"]].concat();
    let test = training(&worker, &arguments)
        .file("worker.sh", "#!/bin/sh\necho $$ > pid\nexec \"$REAL_WORKER\"\n")
        .executable("worker.sh")
        .env("REAL_WORKER", worker.to_str().unwrap())
        .env("VRAMFIT_WORKER", "./worker.sh");
    let folder = test.path().to_path_buf();
    let killer = std::thread::spawn(move || {
        for _ in 0..2000 {
            // Once the first point is in, the worker is beyond its start.
            if std::fs::metadata(folder.join("points.jsonl")).is_ok_and(|m| m.len() > 0) {
                let pid = std::fs::read_to_string(folder.join("pid")).unwrap().trim().to_owned();
                signal("-STOP", &pid);
                let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
                let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
                signal("-KILL", parent.trim());
                return pid;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("no point was measured");
    });
    let run = test.run();
    let pid = killer.join().unwrap();
    assert_eq!((run.status, run.stdout.as_str()), (None, ""), "{run:?}");
    for _ in 0..250 {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    signal("-KILL", &pid);
    panic!("worker {pid} was left");
}

fn signal(signal: &str, pid: &str) {
    let status = std::process::Command::new("kill").args([signal, pid]).status();
    assert!(status.unwrap().success(), "kill {signal} {pid}");
}

#[test]
fn killing_a_worker_does_not_end_the_plan() {
    let Some(worker) = worker() else { return };
    let arguments = [&PLAN[..], &["--gpu", "rtx-4090", "--record", "points.jsonl"]].concat();
    let wrapper = "#!/bin/sh\necho $$ >> pids\nexec \"$REAL_WORKER\"\n";
    let test = training(&worker, &arguments)
        .file("worker.sh", wrapper)
        .executable("worker.sh")
        .env("REAL_WORKER", worker.to_str().unwrap())
        .env("VRAMFIT_WORKER", "./worker.sh");
    let folder = test.path().to_path_buf();
    let killer = std::thread::spawn(move || {
        for _ in 0..1000 {
            // Once the first point is in, the worker is at the second.
            let measured =
                std::fs::metadata(folder.join("points.jsonl")).is_ok_and(|m| m.len() > 0);
            if let (true, Ok(pids)) = (measured, std::fs::read_to_string(folder.join("pids"))) {
                let pid = pids.lines().next().unwrap().to_owned();
                return std::process::Command::new("kill").args(["-9", &pid]).status().is_ok();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    });
    let run = test.run();
    assert!(killer.join().unwrap());
    assert_eq!(run.status, Some(0), "{run:?}");
    assert_eq!(json(&run)["incomplete"], false);
    assert_eq!(json(&run)["recommendation"]["micro_batch"], 64);
}

#[test]
fn the_same_plan_measures_the_same_bytes_again() {
    let Some(worker) = worker() else { return };
    // Points of very different size follow each other: none may see the memory of the one before.
    let arguments = [&PLAN[..6], &PLAN[10..]].concat();
    let memories = || {
        let plan = json(&training(&worker, &arguments).run());
        let measurements = plan["measurements"].as_array().unwrap().clone();
        measurements
            .iter()
            .map(|measured| {
                (measured["point"].clone(), measured["outcome"]["ran"]["memory"].clone())
            })
            .collect::<Vec<(Value, Value)>>()
    };
    let first = memories();
    assert!(first.len() > 8);
    for (point, memory) in first.iter().filter(|(_, memory)| !memory.is_null()) {
        let bytes = |part: &str| memory[part].as_u64().unwrap();
        assert_eq!(
            bytes("device_peak"),
            bytes("context") + bytes("reserved_peak"),
            "the worker holds nothing else on the device: {point}"
        );
    }
    assert_eq!(first, memories());
}

/// The acceptance of several lengths, with one setting.
#[test]
fn a_shorter_context_buys_a_larger_micro_batch_and_the_model_has_no_more_than_its_positions() {
    let Some(worker) = worker() else { return };
    let arguments = [
        &["plan", "--json", "--model", "gpt2-small", "--seq", "256,512,1024,2048"][..],
        &["--target-batch", "64", "--vram", "6GiB", "--gpu", "rtx-3050-laptop-4gb"],
        &["--precision", "bf16", "--checkpoint", "none"],
    ]
    .concat();
    let plan = json(&training(&worker, &arguments).run());
    let contexts = &plan["contexts"];
    let rows = contexts["lengths"].as_array().unwrap();
    let largest: Vec<_> =
        rows.iter().filter_map(|row| row["choice"]["micro_batch"].as_u64()).collect();
    assert_eq!(largest.len(), 3, "{contexts}");
    assert!(largest.is_sorted_by(|shorter, longer| shorter > longer), "{largest:?}");
    assert_eq!(rows[3]["answer"], "beyond-positions", "{contexts}");
    assert_eq!(plan["workload"]["sequence"], 1024);
    let longest = &contexts["longest"][0];
    assert_eq!((&longest["tokens"], &longest["next"]), (&1024.into(), &Value::Null));
    assert!(longest["evidence"].is_u64(), "{longest}");
}
