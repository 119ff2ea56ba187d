//! Planning for what a framework trains, as a command and as a function, with each PyTorch.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::environments::{self, Environment};

const GPU: &str = "rtx-3050-laptop-4gb";

/// `vramfit` in a folder with copies of `programs/`.
fn vramfit(environment: &Environment, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frameworks/programs");
    for entry in std::fs::read_dir(programs).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    Command::new(env!("CARGO_BIN_EXE_vramfit"))
        .args([&arguments[..1], &["--gpu", GPU], &arguments[1..]].concat())
        .current_dir(folder.path())
        .env("VRAMFIT_PYTHON", &environment.python)
        .env("HOME", folder.path())
        .env("HF_HUB_OFFLINE", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("OMP_NUM_THREADS", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn plan(environment: &Environment, arguments: &[&str]) -> Value {
    // The largest that fits, which another way to plan finds too: which is the fastest rests on times.
    let ask = ["plan", "--json", "--objective", "micro-batch"];
    let output = vramfit(environment, &[&ask[..], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {arguments:?}: {said}", environment.name);
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let notes = plan["notes"].as_array().unwrap();
    let wrong = |note: &&Value| {
        matches!(note["note"].as_str(), Some("internal-error" | "not-implemented" | "point-failed"))
    };
    assert_eq!(notes.iter().find(wrong), None, "{}", environment.name);
    plan
}

/// The recommended micro-batch and the next one, which does not fit.
#[track_caller]
fn sizes(plan: &Value) -> (u64, u64) {
    let choice = &plan["recommendation"];
    let next = choice["next"]["micro_batch"].as_u64();
    (choice["micro_batch"].as_u64().unwrap(), next.expect("the target is larger than what fits"))
}

#[test]
fn a_trainer_script_gets_the_same_plan_as_a_command_and_as_a_function_and_holds_to_it() {
    let environment = environments::main();
    let python = environment.python.to_str().unwrap();
    let target = ["--target-batch", "1024", "--precision", "bf16"];
    let words = ["hf_trainer.py", "--batch-size", "{micro_batch}", "--accum", "{accumulation}"];
    let command = [&["--", python][..], &words, &["{bf16:--bf16}"]].concat();
    let of_command = plan(&environment, &[&target[..], &command].concat());
    let flags = ["--checkpoint", "none", "--workload", "hf_workload.py:workload"];
    let of_function = plan(&environment, &[&target[..], &flags].concat());
    let (largest, next) = sizes(&of_command);
    let (of_function, _) = sizes(&of_function);
    assert!([largest / 2, largest, largest * 2].contains(&of_function), "{of_function}");

    for (size, fits) in [(largest, true), (next, false)] {
        let size = size.to_string();
        let script = ["run", "--", python, words[0], "--bf16", "--accum", "2", "--batch-size"];
        let output = vramfit(&environment, &[&script[..], &[&size]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), fits, "{size}: {said}");
        assert_eq!(said.contains("vramfit: the process: out of memory for"), !fits, "{said}");
    }
}

#[test]
fn each_pytorch_plans_for_a_function_and_for_a_command_and_both_agree() {
    for environment in environments::all() {
        let python = environment.python.to_str().unwrap();
        let target = ["--target-batch", "65536"];
        let function = ["--precision", "fp32", "--checkpoint", "none", "--workload"];
        let of_function =
            plan(&environment, &[&target[..], &function, &["perceptron.py:workload"]].concat());
        let command = ["--", python, "perceptron.py", "{micro_batch}"];
        let of_command = plan(&environment, &[&target[..], &command].concat());
        let (name, version) = (&environment.name, &of_function["versions"]["torch"]);
        assert_eq!(version, &of_command["versions"]["torch"], "{name}");
        if let Some(stated) = name.strip_prefix("torch-") {
            assert!(version.as_str().unwrap().starts_with(stated), "{name}: {version}");
        }
        let (one, other) = (sizes(&of_function).0, sizes(&of_command).0);
        assert!([one / 2, one, one * 2].contains(&other), "{name}: {one} and {other}");
    }
}
