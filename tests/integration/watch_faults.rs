//! Programs with a planted fault, one each, and healthy ones, watched on a virtual GPU; spill and
//! throttle, which it has not, from recordings.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::fake::fake;
use crate::harness::{Run, Test};
use crate::watch_findings::stored;

/// Watches a program of `tests/watch`, which must end well.
#[track_caller]
fn watched(program: &str) -> Run {
    let python = std::env::var("VRAMFIT_PYTHON")
        .expect("VRAMFIT_PYTHON names no Python with PyTorch; run `make setup`");
    let flags = ["--findings", "findings.json", "--record", "run.jsonl"];
    let command = [&["watch"], &flags[..], &["--", &python, "program.py"]].concat();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watch").join(program);
    let run = fake(&command, &[]).copy(&path, "program.py").run();
    assert_eq!(run.status, Some(0), "{run:?}");
    run
}

fn findings(run: &Run) -> Vec<Value> {
    let text = fs::read_to_string(run.folder.path().join("findings.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    document["findings"].as_array().unwrap().clone()
}

/// Finds this fault and no other, and says so; the finding's text is handed out.
#[track_caller]
fn only(program: &str, fault: &str) -> String {
    let run = watched(&format!("faulty/{program}.py"));
    let found = findings(&run);
    let faults: Vec<_> = found.iter().map(|finding| finding["fault"].as_str().unwrap()).collect();
    assert_eq!(faults, [fault], "{found:#?}");
    let headline = found[0]["headline"].as_str().unwrap();
    assert!(run.stderr.contains(headline), "`{headline}` is not in {}", run.stderr);
    serde_json::to_string_pretty(&found[0]).unwrap()
}

#[track_caller]
fn nothing(program: &str) {
    let found = findings(&watched(&format!("healthy/{program}.py")));
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_running_loss_is_a_leak_of_the_host() {
    let text = only("running_loss", "leak");
    assert!(text.contains("graphs are kept, up to ") && text.contains("loss.item()"), "{text}");
}

#[test]
fn a_running_loss_of_each_epoch_is_one_too() {
    let text = only("running_loss_by_epoch", "leak");
    assert!(text.contains("graphs are kept, up to "), "{text}");
}

#[test]
fn evaluation_without_no_grad_is_found() {
    let text = only("evaluation_with_graph", "evaluation-with-graph");
    assert!(text.contains("evaluation of `Net` keeps graphs"), "{text}");
}

#[test]
fn a_slow_loader_is_found() {
    let text = only("starved_loader", "starvation");
    assert!(text.contains("num_workers"), "{text}");
}

#[test]
fn a_state_that_keeps_its_graph_is_found_with_its_lines() {
    let text = only("retained_graph", "leak");
    assert!(text.contains("memory grows by 512.0 KiB a step"), "{text}");
    assert!(text.contains("made at program.py:11") && text.contains("hidden.detach()"), "{text}");
}

#[test]
fn outputs_in_a_list_are_found_with_their_line() {
    let text = only("kept_outputs", "leak");
    assert!(text.contains(" in Linear, ") && text.contains("made at program.py:14"), "{text}");
}

#[test]
fn features_in_a_list_are_found_without_their_graphs() {
    let text = only("kept_features", "leak");
    assert!(text.contains("of `relu` in ReLU") && text.contains("made at program.py:13"), "{text}");
    assert!(text.contains("memory grows by 1 MiB a step and runs out in "), "{text}");
}

#[test]
fn spill_and_throttle_are_found_in_recordings() {
    for (name, headline) in [
        ("spill", "GPU 0 spills into host memory: steps take 5.3 times as long"),
        ("throttle", "GPU 0 is held back by heat, by the driver in 40 % of its time under load"),
    ] {
        let path = stored(name);
        let run = Test::new(&["watch", "--json", "--replay", path.to_str().unwrap()]).run();
        assert_eq!(run.status, Some(1), "{run:?}");
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        let found = document["findings"].as_array().unwrap();
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(found[0]["fault"], name);
        assert!(found[0]["headline"].as_str().unwrap().starts_with(headline), "{found:#?}");
    }
}

#[test]
fn nothing_is_found_in_a_plain_loop() {
    nothing("plain");
}

#[test]
fn nothing_is_found_in_evaluation_as_it_should_be() {
    nothing("evaluation");
}

#[test]
fn nothing_is_found_in_batches_of_any_length() {
    nothing("variable_lengths");
}

#[test]
fn nothing_is_found_in_scaled_and_accumulated_gradients() {
    nothing("scaled_accumulation");
}

#[test]
fn nothing_is_found_in_a_student_with_its_teacher() {
    nothing("teacher");
}

#[test]
fn nothing_is_found_in_networks_that_learn_by_turns() {
    nothing("gan");
}

#[test]
fn nothing_is_found_in_averages_and_checkpoints() {
    nothing("ema");
}

#[test]
fn nothing_is_found_in_a_buffer_that_is_full_after_a_while() {
    nothing("replay_buffer");
}

#[test]
fn nothing_is_found_in_adversarial_examples() {
    nothing("adversarial");
}

#[test]
fn nothing_is_found_in_a_trainer_of_hugging_face() {
    nothing("trainer");
}
