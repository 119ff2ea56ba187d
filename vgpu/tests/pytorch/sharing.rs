//! CUDA tensors that processes share.

use std::process::Stdio;

use serde_json::{Value, json};

use super::environments::{self, Environment};
use super::machine::{MIB, Machine, laptop};

/// Context of `laptop` in each of the two processes.
const CONTEXTS: u64 = 2 * 98 * MIB;

/// What `programs/sharing.py` says under a setting of the allocator.
#[track_caller]
fn shared(environment: &Environment, setting: &str) -> Value {
    let machine = Machine::new(vec![laptop()]);
    let child = machine
        .program_in(environment, "sharing")
        .env("PYTORCH_CUDA_ALLOC_CONF", setting)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (output, report) = machine.finish(&format!("{}: sharing", environment.name), child);
    assert_eq!(report.not_implemented, Vec::<String>::new());
    let answer: Value = serde_json::from_str(&output).unwrap();
    let of_child = machine.report(u32::try_from(answer["pid"].as_u64().unwrap()).unwrap());
    assert_eq!(of_child.not_implemented, Vec::<String>::new());
    assert_eq!(of_child.process_peak[0].total_bytes, CONTEXTS / 2, "the owner is charged");
    answer
}

#[track_caller]
fn arrives(answer: &Value, reserved: u64) {
    assert_eq!(answer["small"], json!([1, 2, 3]));
    assert_eq!(answer["middle"], json!([4, 5, 6]));
    assert_eq!(answer["written"], json!([7, 8, 9]), "both see what one writes");
    assert_eq!(answer["query"], true);
    assert_eq!(answer["reserved"], 0);
    assert_eq!(answer["free"], 3762 * MIB - CONTEXTS - reserved, "charged once");
    assert_eq!(answer["exit"], 0);
    assert_eq!(answer["kept"], 0);
}

#[test]
fn on_each_pytorch_a_tensor_in_a_queue_arrives_with_its_small_values_and_is_charged_once() {
    for environment in environments::all() {
        // A segment of 2 MiB for the small one, one of 30 MiB for the large.
        arrives(&shared(&environment, "backend:native"), 32 * MIB);
    }
}

#[test]
fn a_tensor_of_an_expandable_segment_arrives_as_well() {
    // A page of 2 MiB, and two of 20.
    arrives(&shared(&environments::main(), "expandable_segments:True"), 42 * MIB);
}
