//! Worker processes beside a process that uses CUDA.

use std::process::Stdio;

use serde_json::{Value, json};

use super::environments;
use super::machine::{Machine, laptop};

#[test]
fn with_each_pytorch_loader_workers_run_and_forked_children_are_refused_as_by_cuda() {
    for environment in environments::all() {
        let machine = Machine::new(vec![laptop()]);
        let child = machine
            .program_in(&environment, "loader")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (output, report) = machine.finish(&environment.name, child);
        let answer: Value = serde_json::from_str(&output).unwrap();
        let name = &environment.name;
        // Indices 0 to 63, all of which came through workers and pinned memory.
        assert_eq!((&answer["fork"], &answer["spawn"]), (&json!(2016), &json!(2016)), "{name}");
        assert_eq!(answer["child_of_nvml_user"], "cuda:0", "{name}: NVML alone forbids nothing");
        // cudaErrorInitializationError is 3.
        assert_eq!(answer["child_of_cuda_user"], "3 0", "{name}");
        let refusal = answer["child_allocates"].as_str().unwrap();
        assert!(refusal.contains("Cannot re-initialize CUDA in forked subprocess"), "{refusal}");
        assert_eq!(answer["child_frees"], "3", "{name}");
        assert_eq!(answer["same_memory"], true, "{name}: a child freed what is its parent's");
        assert_eq!(report.not_implemented, Vec::<String>::new(), "{name}");
    }
}
