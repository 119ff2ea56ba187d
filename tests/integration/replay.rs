use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fake::with_virtual_gpu;
use crate::harness::{Run, Test};

const NO_PYTHON: &str = "VRAMFIT_PYTHON names no Python with PyTorch; run `make setup`";
const MIB: f64 = (1 << 20) as f64;

/// Trains, and dumps what its allocator did where a test wants it; prints its peak.
const PROGRAM: &str = r#"
import sys
import torch

memory = torch.cuda.memory
begin, entries, limit = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
if begin == 0:
    memory._record_memory_history(max_entries=entries)
model = torch.nn.Sequential(*(torch.nn.Linear(768, 768) for _ in range(6))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
side = torch.cuda.Stream()
try:
    for step, size in enumerate((512, 4096, 1024, limit)):
        if step == begin > 0:
            torch.cuda.reset_peak_memory_stats()
            memory._record_memory_history(max_entries=entries)
        batch = torch.randn(size, 768, device="cuda")
        batch.record_stream(side)
        with torch.cuda.stream(side):
            kept = torch.empty(size, 100, device="cuda")
        model(batch).relu().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        del batch
        if step == 1:
            torch.cuda.empty_cache()
except torch.OutOfMemoryError:
    pass
print(torch.cuda.max_memory_reserved())
memory._dump_snapshot("snapshot.pickle")
"#;

#[test]
fn published_snapshots_end_as_they_were_recorded_block_for_block() {
    // Peaks in MiB, from `tests/snapshots/README.md`.
    for (name, requested, reserved, segments) in [
        ("bcrafton__memory_snapshot", 3670.914, 4042.0, 96),
        ("silmont2000__mem_snapshot", 3098.625, 3606.0, 9),
        ("silmont2000__memory_forward_fp32_128", 531.047, 582.0, 29),
    ] {
        let snapshot = published(name);
        let document = json(&["replay", snapshot.to_str().unwrap(), "--json"]);
        let device = &document["devices"][0];
        let as_recorded = &device["settings"][0];
        let peaks = &as_recorded["peaks"];
        let mib = |bytes: &Value| (bytes.as_f64().unwrap() / MIB * 1000.0).round() / 1000.0;
        assert_eq!(
            (mib(&peaks["requested"]), mib(&peaks["reserved"])),
            (requested, reserved),
            "{name}"
        );
        assert_eq!(peaks["reserved"], device["recorded"]["reserved_peak"], "{name}");
        assert_is_exact(device, segments);
        assert_eq!(document["fits"], Value::Null, "no card was named");
    }
}

#[test]
fn a_program_of_ones_own_is_replayed_as_it_ran() {
    let ran = program(&["0", "100000", "2048"]);
    let document = replayed(&ran, &[]);
    let device = &document["devices"][0];
    assert_eq!(device["settings"][0]["peaks"]["reserved"], peak(&ran));
    assert_eq!(device["live_before"], 0);
    assert_eq!(device["notes"][0], "the program emptied the cache once, and so does the replay");
    assert_is_exact(device, device["recorded"]["segments_end"].as_u64().unwrap());
}

#[test]
fn a_trace_that_begins_in_the_midst_is_put_back_first() {
    // Recording was turned on late; a ring buffer forgot what was first.
    for arguments in [["2", "100000", "2048"], ["0", "150", "2048"]] {
        let ran = program(&arguments);
        let document = replayed(&ran, &[]);
        let device = &document["devices"][0];
        assert!(device["live_before"].as_u64().unwrap() > 0, "{arguments:?}");
        let as_recorded = &device["settings"][0];
        assert_eq!(as_recorded["begin"], "as-recorded");
        assert_eq!(as_recorded["peaks"]["reserved"], device["recorded"]["reserved_peak"]);
        if arguments[0] == "2" {
            assert_eq!(as_recorded["peaks"]["reserved"], peak(&ran));
        }
        assert_is_exact(device, device["recorded"]["segments_end"].as_u64().unwrap());
    }
}

#[test]
fn what_ran_out_of_memory_does_so_again_and_fits_a_larger_card() {
    let ran = program(&["0", "100000", "2000000"]);
    let test = replay(&ran, &["--gpu", "rtx-3050-laptop-4gb", "--json"]);
    let run = test.run();
    assert_eq!(run.status, Some(1), "{run:?}");
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let as_recorded = &document["devices"][0]["settings"][0];
    assert_eq!(
        (&document["fits"], &as_recorded["fit"]),
        (&Value::from(false), &Value::from("does-not-fit"))
    );
    let asked = as_recorded["out_of_memory"]["requested"].as_u64().unwrap();
    assert_eq!(asked, 2_000_000 * 768 * 4);
    let needs = as_recorded["device_peak"].as_u64().unwrap();
    assert!(needs > document["gpu"]["budget"].as_u64().unwrap());
    let run = replay(&ran, &["--gpu", "rtx-4090"]).run();
    assert_eq!(run.status, Some(0), "{run:?}");
}

#[test]
fn a_table_says_what_fits_and_what_would_help() {
    let snapshot = published("silmont2000__mem_snapshot");
    let command = ["replay", "snapshot.json.gz", "--gpu", "rtx-3050-laptop-4gb"];
    test(&command).copy(&snapshot, "snapshot.json.gz").stdout_snapshot("replay_table").status(1);
    // Whoever asks for a setting wants to know of that one.
    let asked = [&command[..], &["--alloc-conf", "max_split_size_mb:128", "--json"]].concat();
    let run = test(&asked).copy(&snapshot, "snapshot.json.gz").run();
    assert_eq!(run.status, Some(0), "{run:?}");
}

#[test]
fn a_setting_that_pytorch_does_not_know_is_refused() {
    let snapshot = published("silmont2000__mem_snapshot");
    test(&["replay", "snapshot.json.gz", "--alloc-conf", "no_such:1"])
        .copy(&snapshot, "snapshot.json.gz")
        .stderr(
            "error: `--alloc-conf no_such:1`: ValueError: Unrecognized key 'no_such' in CUDA \
             allocator config.\n\
             hint: it is what PYTORCH_CUDA_ALLOC_CONF would hold: max_split_size_mb:128\n",
        )
        .status(2);
    test(&["replay", "snapshot.json.gz", "--alloc-conf", "True"])
        .stderr(
            "error: `--alloc-conf True`: no setting of the allocator\n\
             hint: write it as max_split_size_mb:128\n",
        )
        .status(2);
}

#[test]
fn what_is_no_snapshot_is_refused_in_a_line() {
    let hint = "hint: call `torch.cuda.memory._record_memory_history()` before the training and \
                `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")` after it\n";
    for (text, reason) in [
        ("", "it is empty"),
        ("{\"segments\": []", "EOF while parsing an object at line 1 column 15"),
        ("{\"segments\": [], \"device_traces\": []}", "no event is recorded in it"),
        ("PK\u{3}\u{4}", "it is a zip archive, as `torch.save` writes"),
        ("hello", "it is neither a pickle (protocol 2 or later) nor JSON"),
    ] {
        let complaint = format!(
            "error: `snapshot.pickle` is not a memory snapshot that can be replayed: {reason}\n{hint}"
        );
        test(&["replay", "snapshot.pickle"])
            .file("snapshot.pickle", text)
            .stderr(&complaint)
            .status(2);
    }
    test(&["replay", "none.pickle"])
        .stderr("error: cannot read `none.pickle`: No such file or directory (os error 2)\n")
        .status(2);
}

#[test]
fn code_in_a_pickle_is_named_and_never_run() {
    // `os.system("touch run")`, as pickle's protocol 2 has it.
    let code = b"\x80\x02cposix\nsystem\nX\x09\0\0\0touch run\x85R.";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot.pickle");
    std::fs::write(&path, code).unwrap();
    let run = test(&["replay", "snapshot.pickle"]).copy(&path, "snapshot.pickle").run();
    assert_eq!(run.status, Some(2));
    assert!(
        run.stderr.contains("byte 2 would import or call something, `GLOBAL posix system`"),
        "{run:?}"
    );
    assert!(!run.folder.path().join("run").exists());
}

#[test]
fn a_device_that_did_nothing_is_refused() {
    let snapshot = published("silmont2000__mem_snapshot");
    test(&["replay", "snapshot.json.gz", "--device", "3"])
        .copy(&snapshot, "snapshot.json.gz")
        .stderr(
            "error: `--device 3`: no event of that device is in the snapshot\n\
             hint: there are events of `0`\n",
        )
        .status(2);
}

fn published(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    folder.join(format!("{name}.json.gz"))
}

fn test(arguments: &[&str]) -> Test {
    let test = Test::new(arguments)
        .env("PATH", &std::env::var("PATH").unwrap())
        .env("VRAMFIT_PYTHON", &std::env::var("VRAMFIT_PYTHON").expect(NO_PYTHON));
    with_virtual_gpu(test)
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&test(arguments).output()).unwrap()
}

/// A run of the program on a 4 GB card: the step it is recorded from, how many events are kept, and
/// how large the last batch is.
fn program(arguments: &[&str]) -> Run {
    let python = std::env::var("VRAMFIT_PYTHON").expect(NO_PYTHON);
    let command =
        ["run", "--gpu", "rtx-3050-laptop-4gb", "--no-shadow", "--", &python, "program.py"];
    let run = test(&[&command[..], arguments].concat()).file("program.py", PROGRAM).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    run
}

fn peak(run: &Run) -> u64 {
    run.stdout.trim().parse().unwrap()
}

fn replay(run: &Run, flags: &[&str]) -> Test {
    let snapshot = run.folder.path().join("snapshot.pickle");
    test(&[&["replay", snapshot.to_str().unwrap()], flags].concat())
}

fn replayed(run: &Run, flags: &[&str]) -> Value {
    serde_json::from_str(&replay(run, &[&["--json"], flags].concat()).output()).unwrap()
}

/// The replay with the recorded setting ended with the file's own segments, block for block.
fn assert_is_exact(device: &Value, segments: u64) {
    let likeness = &device["likeness"];
    for count in ["segments", "same_size", "same_blocks", "replayed_segments"] {
        assert_eq!(likeness[count], segments, "{count} in {likeness}");
    }
}
