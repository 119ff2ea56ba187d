use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::fake::{assert_no_child_left, fake, with_virtual_gpu};
use crate::harness::{Run, Test};

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
        .stderr(
            "error: cannot start `no-such-program`: No such file or directory (os error 2)\n\
             hint: it is looked for in PATH; one of this folder is called `./NAME`\n",
        )
        .status(2);
}

#[test]
fn the_report_is_written_where_it_is_asked_for() {
    let command = ["run", "--report", "report.json", "--", "sh", "-c", "exit 4"];
    let run = fake(&command, &[]).run();
    let report = document(&run);
    assert_eq!((&report["schema"], &report["exit_status"]), (&Value::from(1), &Value::from(4)));
    assert_eq!((&report["gpus"], &report["signal"]), (&Value::from(1), &Value::Null));
    assert_eq!(report["command"], serde_json::json!(["sh", "-c", "exit 4"]));
    assert_eq!(report["processes"], Value::Array(Vec::new()));
}

#[test]
fn a_machine_may_have_several_gpus() {
    let script = "echo $CUDA_VISIBLE_DEVICES >&2; cat $VRAMFIT_VGPU/device.json";
    let run = fake(&["run", "--gpus", "3", "--", "sh", "-c", script], &[]).run();
    assert!(run.stderr.starts_with("0,1,2\nvramfit: ran on 3 x NVIDIA GeForce"), "{run:?}");
    let description: Value = serde_json::from_str(&run.stdout).unwrap();
    let devices = description["devices"].as_array().unwrap();
    let uuids: BTreeSet<_> = devices.iter().map(|it| it["uuid"].as_str().unwrap()).collect();
    assert_eq!(uuids.len(), 3, "each has a name of its own");
}

#[test]
fn more_gpus_than_a_machine_has_room_for_are_refused() {
    fake(&["run", "--gpus", "17", "--", "true"], &[])
        .stderr(
            "error: `--gpus 17`: not a whole number from 1 to 16\n\
             hint: a virtual machine has up to 16 GPUs\n",
        )
        .status(2);
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

#[test]
fn python_children_are_told_whether_to_compute() {
    let script = "echo ${VRAMFIT_SHADOW-on} ${VRAMFIT_UNKNOWN_SIZES-highest}; \
                  test -e ${PYTHONPATH%%:*}/sitecustomize.py && echo ${PYTHONPATH#*:}";
    let said = |flags: &[&str]| {
        let command = [&["run"], flags, &["--", "sh", "-c", script]].concat();
        fake(&command, &[("PYTHONPATH", "/own")]).run().stdout
    };
    assert_eq!(said(&[]), "on highest\n/own\n");
    assert_eq!(said(&["--no-shadow", "--unknown-sizes", "lowest"]), "off lowest\n/own\n");
}

#[test]
fn what_a_process_held_is_shown_in_its_parts() {
    python(&[], "import torch\nx = torch.empty(3 << 20, dtype=torch.uint8, device='cuda')\n")
        .stderr(&format!(
            "{BANNER}vramfit: peak 137 MiB of 3.40 GiB\n\
             vramfit: the process: 137 MiB = context 117 MiB + PyTorch 20 MiB (3 MiB of it in use at \
             most)\n"
        ))
        .status(0);
}

#[test]
fn a_timeline_is_drawn_where_it_is_asked_for() {
    let run = python(&["--timeline"], "import torch\ntorch.empty(1, device='cuda')\n").run();
    let line =
        run.stderr.lines().find(|line| line.starts_with("vramfit:   over its run: ")).unwrap();
    assert!(line.ends_with("██ 119 MiB"), "{line}");
}

#[test]
fn running_out_of_memory_names_the_line_and_keeps_the_status() {
    let program = "import torch\n\ndef grow():\n    return torch.empty(8 << 30, device='cuda')\n\n\
                   print('before')\ngrow()\n";
    let run = python(&[], program).run();
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), "before\n"), "{run:?}");
    let said: Vec<_> = run.stderr.lines().rev().take(3).collect();
    let expected = [
        "vramfit: the process: ended for want of memory, OutOfMemoryError at program.py:4 in grow: \
         `return torch.empty(8 << 30, device='cuda')`",
        "vramfit:   called from program.py:7: `grow()`",
        "vramfit: the process: out of memory for 32.00 GiB at program.py:4 in grow: `return \
         torch.empty(8 << 30, device='cuda')`",
    ];
    assert_eq!(said, expected);
}

#[test]
fn ctrl_c_ends_a_program_that_used_the_gpu_as_it_ends_others() {
    let program = "import os, signal, torch\ntorch.empty(1, device='cuda')\n\
                   os.kill(os.getpid(), signal.SIGINT)\n";
    let run = python(&[], program).run();
    assert_eq!(run.status, Some(128 + 2), "{run:?}");
    let ended = "vramfit: the process: ended by an error, KeyboardInterrupt at program.py:3: \
                 `os.kill(os.getpid(), signal.SIGINT)`\n";
    assert!(run.stderr.ends_with(ended), "{run:?}");
}

#[test]
fn what_stays_unknown_is_said_with_its_line() {
    let program = "import torch\n\nx = torch.empty(1 << 20, device='cuda')\nfor _ in range(3):\n    \
                   x.sum().item()\nx.nonzero()\n";
    let run = python(&[], program).run();
    // After what the process held and how long it took.
    let said: Vec<_> = run.stderr.lines().skip_while(|line| !line.contains(" values ")).collect();
    let expected = [
        "vramfit: 3 values came back that nothing had computed: the program went on with stand-ins",
        "vramfit:   float32 (4 B) at program.py:5: `x.sum().item()`, 3 times",
        "vramfit: sizes that depend on values nobody knows; the peak is that of the sizes taken:",
        "vramfit:   nonzero: 0 to 1048576, went on with 1048576, at program.py:6: `x.nonzero()`",
    ];
    assert_eq!(said, expected, "{run:?}");
}

#[test]
fn each_rank_of_torchrun_is_reported() {
    let program = "import os, torch\nimport torch.distributed as dist\n\
                   dist.init_process_group('gloo')\nrank = int(os.environ['LOCAL_RANK'])\n\
                   torch.cuda.set_device(rank)\n\
                   x = torch.empty(20 * (rank + 1) << 20, dtype=torch.uint8, device='cuda')\n\
                   dist.destroy_process_group()\n";
    let python = std::env::var("VRAMFIT_PYTHON").expect(NO_PYTHON);
    let torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"];
    let command = ["run", "--report", "report.json", "--", &python];
    let run = fake(&[&command[..], &torchrun, &["program.py"]].concat(), &[])
        .file("program.py", program)
        .run();
    let said: Vec<_> =
        run.stderr.lines().filter(|line| line.starts_with("vramfit: rank")).collect();
    let expected = [
        "vramfit: rank 0: 137 MiB on GPU 0 = context 117 MiB + PyTorch 20 MiB (20 MiB of it in use \
         at most)",
        "vramfit: rank 1: 157 MiB on GPU 1 = context 117 MiB + PyTorch 40 MiB (40 MiB of it in use \
         at most)",
    ];
    assert_eq!(said, expected, "{run:?}");
    assert_eq!(document(&run)["processes"].as_array().map(Vec::len), Some(2));
}

const NO_PYTHON: &str = "VRAMFIT_PYTHON names no Python with PyTorch; run `make setup`";

/// A Python program on the virtual GPU.
fn python(flags: &[&str], program: &str) -> Test {
    let python = std::env::var("VRAMFIT_PYTHON").expect(NO_PYTHON);
    let command = [&["run"], flags, &["--", &python, "program.py"]].concat();
    fake(&command, &[]).file("program.py", program)
}

fn document(run: &Run) -> Value {
    let text = fs::read_to_string(run.folder.path().join("report.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A program that holds 24 MiB at its end.
const HOLDS: &str = "import torch\nx = torch.empty(24 << 20, dtype=torch.uint8, device='cuda')\n\
                     y = torch.empty(8 << 20, dtype=torch.uint8, device='cuda')\ndel y\n";

#[test]
fn a_snapshot_begins_before_the_first_allocation_and_can_be_replayed() {
    let run = python(&["--snapshot", "out.pickle"], HOLDS).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stderr.ends_with("vramfit: snapshot in `out.pickle`\n"), "{run:?}");
    let path = run.folder.path().join("out.pickle");
    let events = events(&path);
    assert_eq!(events[0]["action"], "segment_alloc");
    let allocated: Vec<_> = events.iter().filter(|it| it["action"] == "alloc").collect();
    let sizes: Vec<_> = allocated.iter().map(|it| it["size"].as_u64().unwrap() >> 20).collect();
    assert_eq!(sizes, [24, 8]);
    let frame = &allocated[0]["frames"][0];
    assert!(frame["filename"].as_str().unwrap().ends_with("program.py"), "{frame}");
    assert_eq!(frame["line"], 2);
    let replay = ["replay", path.to_str().unwrap(), "--gpu", "rtx-4090", "--json"];
    let python = std::env::var("VRAMFIT_PYTHON").expect(NO_PYTHON);
    let replayed = with_virtual_gpu(Test::new(&replay)).env("VRAMFIT_PYTHON", &python).run();
    assert_eq!(replayed.status, Some(0), "{replayed:?}");
    let document: Value = serde_json::from_str(&replayed.stdout).unwrap();
    assert_eq!(document["devices"][0]["recorded"]["requested_peak"], 32_u64 << 20, "{document}");
}

#[test]
fn a_snapshot_is_written_however_the_program_ends() {
    let itself = |signal: &str| {
        format!(
            "{HOLDS}import os, signal\nos.kill(os.getpid(), signal.{signal})\nimport time\ntime.sleep(60)\n"
        )
    };
    let too_large = format!("{HOLDS}torch.empty(8 << 30, device='cuda')\n");
    for (program, status, last) in [
        (too_large, Some(1), "oom"),
        (format!("{HOLDS}raise ValueError('x')\n"), Some(1), "free_completed"),
        (format!("{HOLDS}import os\nos._exit(5)\n"), Some(5), "free_completed"),
        (itself("SIGINT"), Some(128 + 2), "free_completed"),
        (itself("SIGTERM"), Some(128 + 15), "free_completed"),
    ] {
        let run = python(&["--snapshot", "out.pickle"], &program).run();
        assert_eq!(run.status, status, "{program}: {run:?}");
        let events = events(&run.folder.path().join("out.pickle"));
        let last_event = events.iter().rev().find(|it| it["action"] != "snapshot").unwrap();
        assert_eq!(last_event["action"], last, "{program}");
    }
}

#[test]
fn each_rank_has_a_snapshot_of_its_own() {
    let program = "import os, torch\nrank = int(os.environ['RANK'])\ntorch.cuda.set_device(rank)\n\
                   x = torch.empty(20 * (rank + 1) << 20, dtype=torch.uint8, device='cuda')\n";
    let python = std::env::var("VRAMFIT_PYTHON").expect(NO_PYTHON);
    let torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"];
    let command = ["run", "--snapshot", "own/out.pickle", "--", &python];
    let run = fake(&[&command[..], &torchrun, &["program.py"]].concat(), &[])
        .file("program.py", program)
        .run();
    for rank in 0..2 {
        let name = format!("own/out.rank{rank}.pickle");
        assert!(run.stderr.contains(&format!("vramfit: snapshot in `{name}`\n")), "{run:?}");
        let allocated: Vec<_> = events(&run.folder.path().join(name))
            .iter()
            .filter(|it| it["action"] == "alloc")
            .map(|it| it["size"].as_u64().unwrap() >> 20)
            .collect();
        assert_eq!(allocated, [20 * (rank + 1)]);
    }
}

#[test]
fn a_snapshot_takes_the_place_of_another_only_where_there_is_one_and_says_so() {
    let run = python(&["--snapshot", "out.pickle"], HOLDS).file("out.pickle", "old").run();
    let first = run.stderr.lines().next();
    assert_eq!(first, Some("vramfit: `out.pickle` is there and will be replaced"), "{run:?}");
    let last = "vramfit: snapshot in `out.pickle`, in place of the one that was there\n";
    assert!(run.stderr.ends_with(last), "{run:?}");
    let program = "import torch\nprint(torch.ones(2).sum())\n";
    let run = python(&["--snapshot", "out.pickle"], program).file("out.pickle", "old").run();
    let none = "vramfit: no snapshot: no Python process used the GPU through PyTorch\n";
    assert!(run.stderr.ends_with(none), "{run:?}");
    assert_eq!(fs::read_to_string(run.folder.path().join("out.pickle")).unwrap(), "old");
}

#[test]
fn a_snapshot_that_cannot_be_written_is_told_before_the_program_starts() {
    let run = fake(&["run", "--snapshot", "no/out.pickle", "--", "touch", "started"], &[]).run();
    let complaint = "error: cannot write `no/out.pickle`: No such file or directory (os error 2)\n";
    assert_eq!((run.status, run.stderr.as_str()), (Some(2), complaint));
    assert!(!run.folder.path().join("started").exists());
}

/// The events of the first device in a snapshot.
fn events(path: &Path) -> Vec<Value> {
    let python = std::env::var("VRAMFIT_PYTHON").expect(NO_PYTHON);
    let script = "import json, pickle, sys\n\
                  traces = pickle.load(open(sys.argv[1], 'rb'))['device_traces']\n\
                  print(json.dumps([it for trace in traces for it in trace]))";
    let output = Command::new(python).args(["-c", script]).arg(path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}
