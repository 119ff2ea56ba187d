use serde_json::Value;

use crate::fake::{assert_no_child_left, fake, json};
use crate::harness::Run;

const PLAN: [&str; 8] =
    ["plan", "--json", "--target-batch", "64", "--precision", "fp32,bf16", "--checkpoint", "none"];

fn plan(script: &[(&str, &str)]) -> (Run, Value) {
    plan_within(&[], script)
}

fn plan_within(limit: &[&str], script: &[(&str, &str)]) -> (Run, Value) {
    let run = fake(&[&PLAN, limit].concat(), script).run();
    let plan = json(&run);
    (run, plan)
}

fn notes(plan: &Value) -> Vec<&str> {
    plan["notes"].as_array().unwrap().iter().map(|note| note["note"].as_str().unwrap()).collect()
}

/// A worker that fails at one point: the campaign goes on without it and says so.
#[track_caller]
fn goes_on_after(fault: &str, expected: &str) {
    goes_on_within(&[], fault, expected);
}

#[track_caller]
fn goes_on_within(limit: &[&str], fault: &str, expected: &str) {
    // fp32 at 100 MiB a sample fits up to 25 samples, bf16 at 50 MiB up to 50.
    let (run, plan) = plan_within(limit, &[("FAKE_FAULT", fault)]);
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""), "{fault}");
    assert_eq!(plan["recommendation"]["micro_batch"], 32, "{fault}");
    assert_eq!(plan["recommendation"]["precision"], "bf16", "{fault}");
    let failed: Vec<_> = plan["notes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|note| note["note"] == "point-failed")
        .map(|note| note["reason"].as_str().unwrap())
        .collect();
    assert!(!failed.is_empty(), "{plan}");
    assert!(failed.iter().all(|reason| reason.contains(expected)), "{failed:?}");
    assert_no_child_left(&run);
}

#[test]
fn a_point_that_crashes_its_worker_is_passed_over() {
    goes_on_after("segfault@2", "the worker was killed by signal 11 at micro-batch 2, ");
}

#[test]
fn a_point_that_is_killed_twice_is_passed_over() {
    goes_on_after("killed@2", "signal 9 at micro-batch 2");
}

#[test]
fn a_point_that_ends_its_worker_is_passed_over() {
    goes_on_after("exit@2", "the worker ended with status 7 at micro-batch 2");
}

#[test]
fn a_point_that_hangs_is_passed_over() {
    // Long enough for the workers that answer, on a machine that is busy.
    let limit = ["--timeout", "8"];
    goes_on_within(&limit, "hang@2", "the worker gave no answer within 8 s at micro-batch 2");
}

#[test]
fn a_point_answered_with_rubbish_is_passed_over() {
    goes_on_after("rubbish@2", "the worker answered `Hello, I am no worker`");
}

#[test]
fn a_reply_to_another_request_is_rubbish() {
    goes_on_after("other-id@2", "the worker answered `measured 1");
}

#[test]
fn a_worker_that_is_killed_once_is_tried_again() {
    let (run, plan) = plan(&[("FAKE_FAULT", "killed@2!once")]);
    assert_eq!(plan["recommendation"]["micro_batch"], 32);
    assert!(!notes(&plan).contains(&"point-failed"), "{plan}");
    assert_no_child_left(&run);
}

#[test]
fn what_was_measured_is_kept_when_the_worker_refuses_to_go_on() {
    let (run, plan) = plan(&[("FAKE_FAULT", "refuse@32")]);
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(plan["incomplete"], true);
    assert!(notes(&plan).contains(&"stopped-by"), "{plan}");
    assert!(plan["recommendation"]["micro_batch"].as_u64().unwrap() >= 2, "{plan}");
    assert_no_child_left(&run);
}

#[test]
fn ctrl_c_prints_the_best_plan_so_far() {
    let (run, plan) = plan(&[("FAKE_FAULT", "interrupt@32")]);
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(plan["incomplete"], true);
    assert_eq!(notes(&plan)[0], "incomplete");
    assert_eq!(plan["recommendation"]["precision"], "fp32");
    assert_no_child_left(&run);
}

#[test]
fn measurements_are_recorded_as_they_come() {
    let mut arguments = PLAN.to_vec();
    arguments.extend(["--record", "points.jsonl"]);
    let run = fake(&arguments, &[("FAKE_FAULT", "segfault@2")]).run();
    let recorded = std::fs::read_to_string(run.folder.path().join("points.jsonl")).unwrap();
    let recorded: Vec<Value> =
        recorded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(Value::from(recorded), json(&run)["measurements"]);
}

#[test]
fn each_recommended_micro_batch_was_run_and_its_successor_fails() {
    let (_, plan) = plan(&[]);
    let measurements = plan["measurements"].as_array().unwrap();
    let choices: Vec<_> = std::iter::once(&plan["recommendation"])
        .chain(plan["alternatives"].as_array().unwrap())
        .collect();
    let sizes: Vec<_> = choices.iter().map(|choice| choice["micro_batch"].as_u64()).collect();
    assert_eq!(sizes, [Some(32), Some(16)]);
    for choice in choices {
        let at = |index: &Value| &measurements[usize::try_from(index.as_u64().unwrap()).unwrap()];
        let run = at(&choice["evidence"]);
        assert_eq!(run["point"]["micro_batch"], choice["micro_batch"]);
        assert!(run["outcome"]["ran"].is_object(), "{run}");
        let next = at(&choice["next"]["evidence"]);
        assert_eq!(next["point"]["micro_batch"], 2 * choice["micro_batch"].as_u64().unwrap());
        assert!(next["outcome"]["out-of-memory"].is_object(), "{next}");
    }
}

#[test]
fn a_tight_point_is_not_a_fitting_one() {
    let (_, plan) = plan(&[("FAKE_TIGHT", "32")]);
    assert_eq!(plan["recommendation"]["micro_batch"], 16);
    let alternatives = plan["alternatives"].as_array().unwrap();
    let bf16 = std::iter::once(&plan["recommendation"])
        .chain(alternatives)
        .find(|choice| choice["precision"] == "bf16")
        .unwrap();
    assert_eq!(bf16["next"]["tight"], true);
    assert!(notes(&plan).contains(&"tight"), "{plan}");
}

#[test]
fn only_what_the_twin_alone_has_tried_is_said_to_be_tried_on_the_twin() {
    let plan_on_card = |sample: &str| {
        let vramfit = env!("CARGO_BIN_EXE_vramfit");
        let arguments = PLAN.map(|argument| argument.to_owned()).join(" ");
        let inner = format!("FAKE_CARD=$VRAMFIT_VGPU exec {vramfit} {arguments} --model tiny");
        let script = [("FAKE_CARD_SAMPLE", sample)];
        json(&fake(&["run", "--", "sh", "-c", &inner], &script).run())
    };
    let points = |plan: &Value| {
        let notes = plan["notes"].as_array().unwrap().iter();
        let points = notes.filter(|note| note["note"] == "next-on-twin");
        let points = points.flat_map(|note| note["points"].as_array().unwrap().clone());
        points.map(|point| point["micro_batch"].clone()).collect::<Vec<_>>()
    };
    // A true twin: 32 and 64 were tried nowhere else.
    assert_eq!(points(&plan_on_card("100")), [64, 32]);
    // With 180 MiB a sample instead of 100, the card itself has to be asked at fp32's 16 and bf16's
    // 32, of which the twin said that they fit.
    let plan = plan_on_card("180");
    let next = |choice: &Value| choice["next"]["micro_batch"].clone();
    assert_eq!(next(&plan["recommendation"]), 32, "{plan}");
    assert_eq!(next(&plan["alternatives"][0]), 16, "{plan}");
    assert_eq!(points(&plan), Vec::<Value>::new(), "{plan}");
}
