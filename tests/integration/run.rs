use std::fs;

use serde_json::Value;

use crate::fake::{assert_no_child_left, fake};

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
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["exit_status"], &report["processes"]),
        (&0.into(), &Value::Array(Vec::new()))
    );
}

#[test]
fn a_signal_is_passed_on_and_nothing_is_left() {
    for (script, status) in [
        ("trap 'exit 9' TERM; kill -TERM $PPID; sleep 60 & wait", 9),
        ("kill -TERM $PPID; sleep 60", 128 + 15),
        ("kill -INT $PPID; sleep 60", 128 + 2),
        ("kill -HUP $PPID; sleep 60", 128 + 1),
    ] {
        let test = fake(&["run", "--", "sh", "-c", script], &[]).file("tmp/.keep", "");
        let folder = test.path().join("tmp");
        let run = test.env("TMPDIR", folder.to_str().unwrap()).run();
        assert_eq!(run.status, Some(status), "{script}: {run:?}");
        let left: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "{script}: {left:?}");
    }
}

#[test]
fn who_is_told_twice_and_goes_on_is_killed() {
    let script = "trap '' TERM; echo $$ > pids; kill -TERM $PPID; sleep 0.5; kill -TERM $PPID; \
                  while :; do sleep 1; done";
    let run = fake(&["run", "--", "sh", "-c", script], &[]).run();
    assert_eq!(run.status, Some(128 + 9), "{run:?}");
    assert_no_child_left(&run);
}

#[test]
fn a_report_that_cannot_be_written_does_not_take_the_commands_status() {
    let run = fake(&["run", "--report", "/dev/full", "--", "sh", "-c", "exit 7"], &[]).run();
    assert_eq!(run.status, Some(7));
    assert!(run.stderr.ends_with("No space left on device (os error 28)\n"), "{run:?}");
    fake(&["run", "--report", "no/report.json", "--", "touch", "started"], &[])
        .stderr("error: cannot write `no/report.json`: No such file or directory (os error 2)\n")
        .status(2);
}

#[test]
fn a_temporary_folder_that_the_linker_cannot_take_is_refused() {
    for name in ["with space", "with:colon"] {
        let test = fake(&["run", "--", "true"], &[]).file(&format!("{name}/.keep"), "");
        let folder = test.path().join(name).to_str().unwrap().to_owned();
        let complaint = format!(
            "error: the temporary folder `{folder}` has a space, a colon or the like in its path\n\
             hint: the dynamic linker would cut it there; set TMPDIR to another folder\n"
        );
        test.env("TMPDIR", &folder).stderr(&complaint).status(2);
    }
}

#[test]
fn a_library_that_is_no_virtual_gpu_is_named() {
    let test = fake(&["run", "--", "true"], &[]).file("libother.so", "something else");
    let library = test.path().join("libother.so").canonicalize().unwrap();
    let library = library.to_str().unwrap().to_owned();
    let complaint = format!(
        "error: `{library}` is not the virtual GPU's library\n\
         hint: `VRAMFIT_VGPU_LIBRARY` names it; unset, the one beside vramfit is taken\n"
    );
    test.env("VRAMFIT_VGPU_LIBRARY", &library).stderr(&complaint).status(3);
}
