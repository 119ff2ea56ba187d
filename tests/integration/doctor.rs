//! This machine has no say in what is tested here: NVML is a virtual GPU's, or none.

use std::fs;
use std::path::Path;

use serde_json::Value;
use vramfit::doctor::Diagnosis;

use crate::fake::{json, with_virtual_gpu};
use crate::harness::{Run, Test};

fn schema_file() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema/doctor.schema.json")
}

/// `VRAMFIT_WRITE_SCHEMA=1 cargo test` writes it anew.
#[test]
fn the_published_schema_is_that_of_the_code() {
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(Diagnosis)).unwrap() + "\n";
    if std::env::var_os("VRAMFIT_WRITE_SCHEMA").is_some() {
        fs::write(schema_file(), &schema).unwrap();
    }
    assert_eq!(fs::read_to_string(schema_file()).unwrap_or_default(), schema);
}

#[test]
fn without_a_gpu_it_says_that_virtual_ones_can_be_used() {
    let run = bare(&["doctor"]);
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let plainly = "No NVIDIA driver and no NVIDIA GPU here. Virtual GPUs can be used, so everything \
                   can be planned.\n";
    assert!(run.stdout.starts_with(plainly), "{}", run.stdout);
    assert!(run.stdout.contains("; opens CUDA on a virtual GPU"), "{}", run.stdout);
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 100), "{}", run.stdout);
}

#[test]
fn who_needs_a_gpu_is_told_by_the_status() {
    let run = bare(&["doctor", "--require-gpu", "--json"]);
    assert_eq!(run.status, Some(1), "{run:?}");
    let diagnosis = json(&run);
    assert_eq!(diagnosis["well"], false);
    assert_eq!(diagnosis["problems"][0]["code"], "no-gpu");
    assert_eq!(diagnosis["problems"][0]["severity"], "prevents");
}

#[test]
fn a_gpu_is_described_as_nvml_and_pytorch_see_it() {
    let run = on_virtual_gpu(&["--json"], &[]);
    assert_eq!(run.status, Some(0), "{run:?}");
    let diagnosis = json(&run);
    assert_satisfies_the_schema(&diagnosis);
    assert_eq!((&diagnosis["doctor_version"], &diagnosis["well"]), (&1.into(), &true.into()));
    let machine = &diagnosis["machine"];
    assert_eq!(machine["driver"]["nvml"]["state"], "answers");
    let gpu = &machine["gpus"][0];
    assert_eq!(gpu["profiles"], serde_json::json!(["rtx-4060-laptop"]));
    assert_eq!(gpu["compute_capability"], "8.9");
    assert_eq!(gpu["memory"]["total"], 8188_u64 << 20);
    assert_eq!(gpu["display"]["active"], false);
    let opened = &machine["python"]["torch"]["opened"];
    assert_eq!((&opened["failure"], &opened["on_virtual_gpu"]), (&Value::Null, &false.into()));
    assert_eq!(opened["devices"][0]["name"], gpu["product"]);
    let codes: Vec<_> =
        diagnosis["problems"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert!(codes.contains(&&"virtual-gpu".into()), "{codes:?}");
}

#[test]
fn a_python_without_pytorch_is_a_problem_where_there_is_a_gpu() {
    let python = "#!/bin/sh\necho '{\"python\": \"3.12.8\"}'\n";
    let run = on_virtual_gpu(&[], &[("bin/python", python)]);
    assert_eq!(run.status, Some(1), "{run:?}");
    let problem = "Problems\n  - the Python that vramfit runs, ";
    assert!(run.stdout.contains(problem), "{}", run.stdout);
    assert!(run.stdout.contains("\n    > name the Python that you train with"), "{}", run.stdout);
}

#[test]
fn flags_that_it_does_not_have_are_bad_input() {
    let run = Test::new(&["doctor", "--fix"]).run();
    assert_eq!(run.status, Some(2), "{run:?}");
}

fn assert_satisfies_the_schema(diagnosis: &Value) {
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema_file()).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(diagnosis)
        .map(|error| format!("{error}: {}", error.instance_path))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert!(!validator.is_valid(&serde_json::json!({ "doctor_version": 1 })));
}

/// Where the driver's NVML is not to be found, whatever the machine has.
fn bare(arguments: &[&str]) -> Run {
    let test = with_virtual_gpu(Test::new(arguments)).file("hidden/libnvidia-ml.so.1", "nothing");
    let hidden = test.path().join("hidden");
    let python = std::env::var("VRAMFIT_PYTHON").expect(NO_PYTHON);
    test.env("LD_LIBRARY_PATH", hidden.to_str().unwrap())
        .env("PATH", &std::env::var("PATH").unwrap())
        .env("VRAMFIT_PYTHON", &python)
        .run()
}

/// Inside `vramfit run`, with a `bin/python` of its own if one is given.
fn on_virtual_gpu(flags: &[&str], files: &[(&str, &str)]) -> Run {
    let doctor = ["run", "--gpu", "rtx-4060-laptop", "--", env!("CARGO_BIN_EXE_vramfit"), "doctor"];
    let mut test = with_virtual_gpu(Test::new(&[&doctor[..], flags].concat()))
        .env("PATH", &std::env::var("PATH").unwrap());
    let mut python = std::env::var("VRAMFIT_PYTHON").expect(NO_PYTHON);
    for (path, text) in files {
        test = test.file(path, text).executable(path);
        python = test.path().join(path).to_str().unwrap().to_owned();
    }
    test.env("VRAMFIT_PYTHON", &python).run()
}

const NO_PYTHON: &str = "VRAMFIT_PYTHON names no Python with PyTorch; run `make setup`";
