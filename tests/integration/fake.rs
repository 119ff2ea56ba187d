//! Running `vramfit` with a fake worker: a script that says what a test wants to hear.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Run, Test};

/// A model that the fake worker knows nothing of.
const MODEL: &str = r#"
name = "tiny"
description = "A small perceptron"
source = "here"
parameters = 11
[architecture.mlp]
inputs = 2
hidden = [2]
outputs = 1
activation = "relu"
"#;

/// One with sequences.
const TALKER: &str = r#"
name = "talker"
description = "A small language model"
source = "here"
parameters = 11
[architecture.decoder]
vocabulary = 10
context = 4096
hidden = 8
layers = 1
heads = 1
kv_heads = 1
feed_forward = 8
style = "llama"
tied_embeddings = true
"#;

/// A run with the fake worker on the virtual 4 GB card; `FAKE_…` variables are its script.
pub(crate) fn fake(arguments: &[&str], script: &[(&str, &str)]) -> Test {
    let worker = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/fake.py");
    let mut flags = Vec::new();
    let trains = matches!(arguments[0], "plan" | "check") && !arguments.contains(&"--plan");
    if trains && !arguments.contains(&"--model") {
        flags.extend(["--model", "tiny"]);
    }
    if !arguments.contains(&"--gpu") {
        flags.extend(["--gpu", "rtx-3050-laptop-4gb"]);
    }
    // Before the flags of the test: what follows `--` is not ours.
    let all = [&arguments[..1], &flags, &arguments[1..]].concat();
    let test = Test::new(&all)
        .file("own/models/tiny.toml", MODEL)
        .file("own/models/talker.toml", TALKER)
        .env("PATH", &std::env::var("PATH").unwrap())
        .env("VRAMFIT_WORKER", worker.to_str().unwrap())
        .env("FAKE_PIDS", "pids")
        .env("FAKE_VERSION", env!("CARGO_PKG_VERSION"));
    let test = with_virtual_gpu(test);
    script.iter().fold(test, |test, (name, value)| test.env(name, value))
}

/// A test that finds the virtual GPU.
pub(crate) fn with_virtual_gpu(test: Test) -> Test {
    match virtual_gpu() {
        Some(library) => test.env("VRAMFIT_VGPU_LIBRARY", library.to_str().unwrap()),
        None => test,
    }
}

/// The virtual GPU as `cargo build` leaves it.
fn virtual_gpu() -> Option<PathBuf> {
    let given = std::env::var_os("VRAMFIT_VGPU_LIBRARY").map(PathBuf::from);
    let built = || Path::new(env!("CARGO_BIN_EXE_vramfit")).with_file_name("libvramfit_vgpu.so");
    Some(given.unwrap_or_else(built)).filter(|path| path.exists())
}

/// Standard output as JSON.
pub(crate) fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

/// Asserts that each process that the fake workers noted is gone.
#[track_caller]
pub(crate) fn assert_no_child_left(run: &Run) {
    let pids = std::fs::read_to_string(run.folder.path().join("pids")).unwrap_or_default();
    assert!(!pids.is_empty(), "no worker was started: {run:?}");
    let deadline = Instant::now() + Duration::from_secs(5);
    for pid in pids.lines() {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        // The group's leader is waited for by `vramfit`, its children by init, a moment later.
        while is_alive(&folder) {
            assert!(Instant::now() < deadline, "process {pid} is left: {run:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn is_alive(folder: &Path) -> bool {
    std::fs::read_to_string(folder.join("stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}
