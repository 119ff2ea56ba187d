use std::fs;

use serde_json::Value;

use crate::fake::fake;

const BANNER: &str = "vramfit: ran on NVIDIA GeForce RTX 3050 Laptop GPU (virtual). Nothing was \
                      computed: results and saved weights are void.\n";

#[test]
fn the_commands_own_status_is_kept() {
    let run = fake(&["run", "--", "sh", "-c", "echo hello; exit 7"], &[]).run();
    assert_eq!((run.status, run.stdout.as_str()), (Some(7), "hello\n"));
    assert_eq!(run.stderr, format!("{BANNER}vramfit: the command did not use the GPU\n"));
}

#[test]
fn a_command_that_ends_by_a_signal_ends_as_in_a_shell() {
    let run = fake(&["run", "--", "sh", "-c", "kill -SEGV $$"], &[]).run();
    assert_eq!(run.status, Some(128 + 11), "{run:?}");
}

#[test]
fn the_command_finds_the_virtual_gpu_in_its_environment() {
    let script = "cat $VRAMFIT_VGPU/device.json; test -e $VRAMFIT_VGPU/libcuda.so.1";
    let run = fake(&["run", "--vram", "2GiB", "--", "sh", "-c", script], &[]).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let description: Value = serde_json::from_str(&run.stdout).unwrap();
    let device = &description["devices"][0];
    assert_eq!(device["total_memory_bytes"], 2_u64 << 30);
    assert!(device["name"].as_str().unwrap().ends_with(" (virtual)"));
}

#[test]
fn a_command_that_is_not_there_is_named() {
    fake(&["run", "--", "no-such-program"], &[])
        .stderr("error: cannot start `no-such-program`: No such file or directory (os error 2)\n")
        .status(3);
}

#[test]
fn the_report_is_written_where_it_is_asked_for() {
    let run = fake(&["run", "--report", "report.json", "--", "true"], &[]).run();
    let report = fs::read_to_string(run.folder.path().join("report.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&report).unwrap(), Value::Array(Vec::new()));
}
