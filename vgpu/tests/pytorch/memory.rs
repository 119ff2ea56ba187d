//! Capacity, contexts and what NVML says, in one process and across several.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::Value;

use super::machine::{MIB, Machine, laptop};

fn lines(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn cuda_and_nvml_agree_step_by_step() {
    let (output, report) = Machine::new(vec![laptop()]).run("memory", &[]);
    let [start, context, allocated, too_much, emptied] = &lines(&output)[..] else {
        panic!("{output}")
    };
    // NVML's version 1 counts the driver's reserve (4096 - 3762 MiB) as used.
    let reserve = 334 * MIB;
    assert_eq!(start["nvml"]["used"], reserve);
    assert_eq!(start["nvml"]["total"], 4096 * MIB);
    assert_eq!(start["nvml"]["by"], serde_json::json!({}));
    assert_eq!(context["total"], 3762 * MIB);
    assert_eq!(context["free"], (3762 - 98) * MIB);
    let process = report.pid.to_string();
    assert_eq!(context["nvml"]["by"][&process], 98 * MIB);
    // A tensor of 3 MiB comes from a segment of 20 MiB (kLargeBuffer).
    assert_eq!(allocated["reserved"], 20 * MIB);
    assert_eq!(allocated["nvml"]["by"][&process], (98 + 20) * MIB);
    assert_eq!(allocated["nvml"]["used"], reserve + (98 + 20) * MIB);
    let error = too_much["error"].as_str().unwrap();
    for part in [
        "Tried to allocate 64.00 GiB",
        "GPU 0 has a total capacity of 3.67 GiB of which 3.56 GiB is free",
        "this process has 118.00 MiB memory in use",
    ] {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
    assert_eq!(emptied["reserved"], 0);
    assert_eq!(emptied["nvml"]["by"][&process], 98 * MIB);
    assert_eq!(report.process_peak[0].total_bytes, (98 + 20) * MIB);
    assert_eq!(report.process_peak[0].context_bytes, 98 * MIB);
}

#[test]
fn held_memory_is_used_but_nobodys() {
    let mut device = laptop();
    device.held_memory_bytes = 600 * MIB;
    let (output, _) = Machine::new(vec![device]).run("memory", &[]);
    let lines = lines(&output);
    assert_eq!(lines[1]["free"], (3762 - 98 - 600) * MIB);
    assert_eq!(lines[1]["total"], 3762 * MIB);
    assert_eq!(lines[0]["nvml"]["used"], (334 + 600) * MIB);
    assert_eq!(lines[0]["nvml"]["by"], serde_json::json!({}));
}

#[test]
fn processes_share_one_card_and_see_each_other() {
    let machine = Machine::new(vec![laptop()]);
    let mut first = machine
        .program("memory")
        .arg("--hold")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = BufReader::new(first.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        seen.next().unwrap().unwrap(); // start, context, allocated: 118 MiB are held now
    }
    let (output, report) = machine.run("memory", &[]);
    let second = lines(&output);
    let holder = first.id().to_string();
    assert_eq!(second[0]["nvml"]["by"][&holder], 118 * MIB);
    assert_eq!(second[1]["free"], (3762 - 118 - 98) * MIB);
    assert_eq!(report.device_peak_bytes[0], 2 * 118 * MIB);
    first.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(first.wait().unwrap().success());
    let (output, _) = machine.run("memory", &[]);
    assert_eq!(lines(&output)[0]["nvml"]["by"], serde_json::json!({}), "the first has left");
}

#[test]
fn a_killed_process_gives_its_memory_back() {
    let machine = Machine::new(vec![laptop()]);
    let mut killed = machine
        .program("memory")
        .arg("--hold")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = BufReader::new(killed.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        seen.next().unwrap().unwrap();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let (output, _) = machine.run("memory", &[]);
    assert_eq!(lines(&output)[1]["free"], (3762 - 98) * MIB);
}

#[test]
fn a_forked_process_can_use_cuda_unless_its_parent_did() {
    let (output, _) = Machine::new(vec![laptop()]).run("fork", &[]);
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(answer["count"], 1, "{answer}");
    assert_eq!(answer["after_nvml"], 20 * MIB, "{answer}");
    assert_eq!(answer["after_cuda"], 3, "cudaErrorInitializationError");
    assert_ne!(answer["freed"], 0, "what a fork inherits is its parent's");
    let wrote = answer["wrote"].as_object().unwrap();
    assert!(wrote.len() == 12 && wrote.values().all(|status| status == 3), "{answer}");
    assert_ne!(answer["launched"], "launched");
    assert_eq!(answer["read"], "parent", "its memory is shared with its fork");
    assert_eq!(answer["lost"], 0, "{answer}");
    assert_eq!(answer["kernel_holds_memory"], true, "{answer}");
}
