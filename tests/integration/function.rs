//! `--workload FILE:FUNCTION`, with the real Python worker, PyTorch and the virtual GPU.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fake::{json, with_virtual_gpu};
use crate::harness::{Run, Test};

/// A perceptron, and the parts of a workload that trains it.
const PARTS: &str = "
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
    def forward(self, x):
        return x + self.layers(x)

def net():
    return nn.Sequential(*(Block() for _ in range(4)))

def batch(n):
    return torch.randn(n, 256)

def loss(model, batch):
    return model(batch).square().mean()
";

/// The parts and a function that returns them.
const PLAIN: &str = "
from parts import *
def workload():
    return dict(model=net(), batch=batch, loss=loss)
";

const PLAN: [&str; 9] = [
    "plan",
    "--json",
    "--target-batch",
    "4096",
    "--precision",
    "fp32",
    "--checkpoint",
    "none",
    "--workload",
];
const CHECK: [&str; 6] = ["check", "--json", "--micro-batch", "512", "--precision", "fp32"];

/// A run in a folder with `train.py` and the parts; none where there is no PyTorch, which only a
/// debug build may do without.
fn function(source: &str, arguments: &[&str]) -> Option<Test> {
    let python = std::env::var("VRAMFIT_PYTHON").ok();
    assert!(python.is_some() || cfg!(debug_assertions), "`make test` says which Python to use");
    let gpu = ["--gpu", "rtx-3050-laptop-4gb"];
    let test = Test::new(&[arguments, &gpu].concat())
        .file("train.py", source)
        .file("parts.py", PARTS)
        .env("PATH", &std::env::var("PATH").unwrap())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("VRAMFIT_PYTHON", &python?);
    Some(with_virtual_gpu(test))
}

fn plan(source: &str) -> Option<Test> {
    function(source, &[&PLAN[..], &["train.py:workload"]].concat())
}

fn check(source: &str, more: &[&str]) -> Option<Test> {
    function(source, &[&CHECK[..], more, &["--workload", "train.py:workload"]].concat())
}

/// The memory of a micro-batch that fits.
#[track_caller]
fn memory(run: &Run) -> Value {
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    json(run)["measurement"]["outcome"]["ran"]["memory"].clone()
}

/// A workload that cannot be measured: exact words, exit status, and nothing on standard output.
#[track_caller]
fn refused(source: &str, more: &[&str], status: i32, expected: &str) {
    let Some(test) = check(source, more) else { return };
    test.stderr(expected).status(status);
}

#[test]
fn a_plan_for_a_function_names_it_and_what_it_returned() {
    let Some(test) = plan(PLAIN) else { return };
    let run = test.run();
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""));
    let plan = json(&run);
    assert_eq!(plan["workload"]["subject"]["function"]["name"], "workload");
    assert_eq!(plan["workload"]["optimizer"], "adamw");
    let expected = serde_json::json!({
        "model": "Sequential",
        "parameters": 4 * (256 * 1024 + 1024 + 1024 * 256 + 256),
        "own_optimizer": false,
        "batch_norm": false,
        "checkpointing": true,
    });
    assert_eq!(plan["built"], expected);
    assert_eq!(plan["recommendation"]["micro_batch"], 4096);
    let unwanted = ["read-backs", "not-implemented", "internal-error", "point-failed"];
    for note in plan["notes"].as_array().unwrap() {
        assert!(!unwanted.contains(&note["note"].as_str().unwrap()), "{note}");
    }
    let left: Vec<_> = std::fs::read_dir(run.folder.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "nothing is left beside the user's files: {left:?}");
}

#[test]
fn a_plan_for_a_function_is_checked_by_its_file_as_long_as_that_is_there() {
    let Some(test) = plan(PLAIN) else { return };
    let planned = test.run();
    let text = &planned.stdout;
    let Some(test) = function(PLAIN, &["check", "--plan", "plan.json"]) else { return };
    let run = test.file("plan.json", text).run();
    assert!(run.stdout.starts_with("fits: train.py:workload, micro-batch 4096,"), "{run:?}");
    let file = planned.folder.path().join("train.py");
    std::fs::remove_file(&file).unwrap();
    let Some(test) = function(PLAIN, &["check", "--plan", "plan.json"]) else { return };
    let file = file.display();
    test.file("plan.json", text)
        .stderr(&format!("error: cannot read `{file}`: No such file or directory (os error 2)\n"))
        .status(2);
}

#[test]
fn what_the_code_prints_and_asks_for_does_not_disturb() {
    let source = "
import os, subprocess, sys, threading, time
print('importing', flush=True)
os.write(1, b'{\"reply\": \"ready\"}\\n')
subprocess.run(['echo', 'from a child'])
from parts import *
def talk():
    while True:
        print('{}')
        time.sleep(0.01)
# Python would wait for it at the end.
threading.Thread(target=talk).start()
def noisy(n):
    print(sys.stdin.read(), n)
    return batch(n)
def workload():
    return dict(model=net(), batch=noisy, loss=loss)
";
    let Some(test) = plan(source) else { return };
    let begun = Instant::now();
    let run = test.run();
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(json(&run)["recommendation"]["micro_batch"], 4096);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let Some(test) = check(source, &["--verbose"]) else { return };
    let run = test.run();
    for line in ["importing\n", "{\"reply\": \"ready\"}\n", "from a child\n", "\n 512\n"] {
        assert!(run.stderr.contains(line), "{line:?}: {}", run.stderr);
    }
    assert_eq!(json(&run)["fits"], true);
}

#[test]
fn a_file_that_takes_long_to_import_has_its_time() {
    let source = format!("import time\ntime.sleep(10)\n{PLAIN}");
    let Some(test) = check(&source, &[]) else { return };
    memory(&test.run());
}

#[test]
fn the_limit_for_a_point_is_none_for_an_import() {
    let worker = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/fake.py");
    let arguments = ["check", "--timeout", "1", "--micro-batch", "4", "--workload", "train.py:f"];
    let test = Test::new(&[&arguments[..], &["--gpu", "rtx-3050-laptop-4gb"]].concat())
        .file("train.py", "")
        .env("PATH", &std::env::var("PATH").unwrap())
        .env("VRAMFIT_PYTHON", worker.to_str().unwrap())
        .env("FAKE_VERSION", env!("CARGO_PKG_VERSION"));
    let run = with_virtual_gpu(test.env("FAKE_IMPORT", "3")).run();
    assert!(run.stdout.starts_with("fits: train.py:f, micro-batch 4,"), "{run:?}");
}

#[test]
fn a_point_that_fails_is_passed_over_with_its_traceback_shown_once() {
    let source = "
from parts import *
def some(n):
    if n == 2:
        raise KeyError('no sample 2')
    return batch(n)
def workload():
    return dict(model=net(), batch=some, loss=loss)
";
    let Some(test) = plan(source) else { return };
    let run = test.run();
    assert_eq!(
        run.stderr,
        "a point failed in your own code:\n    \
         File \"train.py\", line 5, in some\n      raise KeyError('no sample 2')\n  \
         KeyError: 'no sample 2'\n"
    );
    let plan = json(&run);
    assert_eq!(plan["recommendation"]["micro_batch"], 4096);
    let note = plan["notes"].as_array().unwrap().iter().find(|it| it["note"] == "point-failed");
    assert_eq!(
        note.unwrap()["reason"],
        "`batch(2)` failed: KeyError: 'no sample 2' (train.py line 5)"
    );
}

#[test]
fn what_is_not_there_is_bad_input() {
    let name = |name: &str, expected: &str| {
        let arguments = [&CHECK[..], &["--workload", name]].concat();
        let Some(test) = function("def wrkload(): pass\nthing = {}\ndef f(n): pass\n", &arguments)
        else {
            return;
        };
        test.stderr(expected).status(2);
    };
    name(
        "nowhere.py:workload",
        "error: cannot read `nowhere.py`: No such file or directory (os error 2)\n\
         hint: `--workload` takes a Python file and a function: train.py:workload\n",
    );
    name(
        "train.py",
        "error: `--workload train.py`: names no function\nhint: write it as train.py:workload\n",
    );
    name(
        "train.py:workload",
        "error: `train.py` has no function `workload`\nhint: did you mean `wrkload`?\n",
    );
    name(
        "train.py:thing",
        "error: `train.py:thing` is a dict, not a function\n\
         hint: write `def thing(): return dict(model=…, batch=lambda n: …)`\n",
    );
    name(
        "train.py:f",
        "error: `train.py:f` needs `n`\n\
         hint: it is called without arguments, but for `sequence` if it has that parameter\n",
    );
    refused(
        PLAIN,
        &["--seq", "12"],
        2,
        "error: `train.py:workload` has no parameter `sequence`, so `--seq 12` has no meaning\n\
         hint: leave `--seq` out, or write `def …(sequence=1024):`\n",
    );
    refused(
        "def workload(sequence): pass",
        &[],
        2,
        "error: `train.py:workload` needs `sequence`\nhint: `--seq` gives it one, e.g. `--seq 1024`\n",
    );
}

#[test]
fn a_file_that_cannot_be_imported_is_shown_where_it_failed() {
    refused(
        "import foo_bar_baz",
        &[],
        3,
        &format!(
            "error: importing `train.py` failed: ModuleNotFoundError: No module named \
             'foo_bar_baz' (train.py line 1)\n    \
             File \"train.py\", line 1, in <module>\n      import foo_bar_baz\n  \
             ModuleNotFoundError: No module named 'foo_bar_baz'\n\
             hint: it ran with `{}`; `VRAMFIT_PYTHON` names another Python\n",
            std::env::var("VRAMFIT_PYTHON").unwrap_or_default()
        ),
    );
    refused(
        "print('training')\nraise SystemExit(0)",
        &[],
        3,
        "error: importing `train.py` failed: it ended the program with sys.exit() (train.py line 2)\n    \
         File \"train.py\", line 2, in <module>\n      raise SystemExit(0)\n  SystemExit: 0\n  \
         it printed last:\n    training\n\
         hint: put what is not for import under `if __name__ == \"__main__\":`\n",
    );
    refused(
        "name = input('who? ')",
        &[],
        3,
        "error: importing `train.py` failed: EOFError: EOF when reading a line (train.py line 1)\n    \
         File \"train.py\", line 1, in <module>\n      name = input('who? ')\n  \
         EOFError: EOF when reading a line\n  it printed last:\n    who?\n\
         hint: nobody is there to answer `input()`\n",
    );
    refused(
        "import os\nos._exit(4)",
        &[],
        3,
        "error: the worker ended with status 4 while importing `train.py`: it wrote nothing to its \
         stderr\nhint: put what is not for import under `if __name__ == \"__main__\":`\n",
    );
    let Some(test) = check("def workload(:\n", &[]) else { return };
    let run = test.run();
    let expected =
        "error: importing `train.py` failed: SyntaxError: invalid syntax (train.py line 1)\n";
    assert!(run.stderr.starts_with(expected), "{run:?}");
    assert_eq!(run.status, Some(3));
}

#[test]
fn a_function_that_fails_is_shown_where_it_failed() {
    refused(
        "def load():\n    raise ValueError('no data')\ndef workload():\n    print('so far')\n    load()\n",
        &[],
        3,
        "error: `train.py:workload` failed: ValueError: no data (train.py line 2)\n    \
         File \"train.py\", line 5, in workload\n      load()\n    \
         File \"train.py\", line 2, in load\n      raise ValueError('no data')\n  \
         ValueError: no data\n  it printed last:\n    so far\n",
    );
    refused(
        "def workload(): pass",
        &[],
        3,
        "error: `train.py:workload` returns nothing\n\
         hint: end it with `return dict(model=…, batch=…)`\n",
    );
}

#[test]
fn what_fails_at_each_point_is_told_with_its_reason() {
    let returning = |key: &str, value: &str| {
        format!(
            "from parts import *\nimport sys\ndef workload():\n    \
             return dict(dict(model=net(), batch=batch, loss=loss), {key}={value})\n"
        )
    };
    let nothing = |reason: &str| format!("error: nothing could be measured: {reason}\n");
    for (key, value, reason) in [
        ("batch", "lambda n: None", "`batch(512)` returned nothing"),
        ("loss", "lambda m, b: 1.0", "`loss` returned a float, not a tensor"),
        (
            "loss",
            "lambda m, b: m(b)",
            "`loss` returned a tensor of shape [512, 256], not one number",
        ),
        ("loss", "lambda m, b: b.sum()", "`loss` returned a tensor that depends on no parameter"),
        ("optimizer", "lambda p: p", "`optimizer` returned a list, not a torch.optim.Optimizer"),
    ] {
        refused(&returning(key, value), &[], 3, &nothing(reason));
    }
    let exits = returning("batch", "lambda n: sys.exit(1)");
    refused(
        &exits,
        &[],
        3,
        "error: nothing could be measured: `batch(512)` failed: it ended the program with \
         sys.exit() (train.py line 4)\n    File \"train.py\", line 4, in <lambda>\n      \
         return dict(dict(model=net(), batch=batch, loss=loss), batch=lambda n: sys.exit(1))\n  \
         SystemExit: 1\n",
    );
}

#[test]
fn a_python_that_is_not_there_or_has_no_pytorch_is_named() {
    let Some(test) = check(PLAIN, &[]) else { return };
    test.env("VRAMFIT_PYTHON", "/nowhere/python")
        .stderr(
            "error: no Python at `/nowhere/python`\n\
             hint: name one that has PyTorch by `VRAMFIT_PYTHON`\n",
        )
        .status(3);
    let Some(test) = check("def workload(): pass", &[]) else { return };
    // `-S` and `-E` leave the environment's packages out.
    let bare = "#!/bin/sh\nexec \"$REAL_PYTHON\" -S -E \"$@\"\n";
    let run = test
        .file("python", bare)
        .executable("python")
        .env("REAL_PYTHON", &std::env::var("VRAMFIT_PYTHON").unwrap())
        .env("VRAMFIT_PYTHON", "./python")
        .run();
    assert!(run.stderr.contains(" has no PyTorch: No module named 'torch'\n"), "{run:?}");
    assert!(run.stderr.ends_with("hint: `VRAMFIT_PYTHON` names another Python\n"), "{run:?}");
    assert_eq!(run.status, Some(3));
}

#[test]
fn a_model_is_measured_alike_wherever_it_comes_from() {
    let workloads = [
        PLAIN.to_owned(),
        // Kept by the file, and so the same at each call.
        "from parts import *\nkept = net()\ndef workload():\n    \
         return dict(model=kept, batch=batch, loss=loss)\n"
            .to_owned(),
        // Slow to build, and so built once.
        "from parts import *\nimport time\ndef workload():\n    time.sleep(2.1)\n    \
         return dict(model=net(), batch=batch, loss=loss)\n"
            .to_owned(),
        "from parts import *\ndef workload():\n    \
         return dict(model=net().cuda(), batch=lambda n: batch(n).cuda(), loss=loss)\n"
            .to_owned(),
        "from parts import *\ndef workload():\n    with torch.device('meta'):\n        \
         model = net()\n    return dict(model=model, batch=batch, loss=loss)\n"
            .to_owned(),
        // Freed only once Python looks for circles.
        "from parts import *\ndef workload():\n    model = net()\n    model.circle = [model]\n    \
         return dict(model=model, batch=batch, loss=loss)\n"
            .to_owned(),
        // An object in place of a dict, and a model that returns its loss.
        "from parts import *\nfrom dataclasses import dataclass\nclass Net(nn.Module):\n    \
         def __init__(self):\n        super().__init__()\n        self.net = net()\n    \
         def forward(self, x):\n        return {'loss': loss(self.net, x)}\n\
         @dataclass\nclass Mine:\n    model: nn.Module\n    batch: object\n\
         def workload():\n    return Mine(Net(), lambda n: {'x': batch(n)})\n"
            .to_owned(),
    ];
    let mut expected = None;
    for source in &workloads {
        // Which points the ladder is measured at rests on what is recommended: times must not matter.
        let arguments = [
            &["plan", "--json", "--target-batch", "64", "--objective", "micro-batch"][..],
            &["--precision", "fp16", "--checkpoint", "none,full,every-2"],
            &["--workload", "train.py:workload"],
        ]
        .concat();
        let Some(test) = function(source, &arguments) else { return };
        let run = test.run();
        assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""), "{source}");
        let plan = json(&run);
        let memory: Vec<_> = plan["measurements"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (it["point"].clone(), it["outcome"]["ran"]["memory"].clone()))
            .collect();
        assert!(memory.iter().all(|(_, memory)| memory.is_object()), "{source}: {plan}");
        assert_eq!(&memory, expected.get_or_insert(memory.clone()), "{source}");
    }
}

#[test]
fn an_evaluation_batch_counts() {
    let Some(test) = check(PLAIN, &[]) else { return };
    let without = memory(&test.run());
    let source = PLAIN.replace("loss=loss", "loss=loss, eval_batch=lambda: batch(262144)");
    let Some(test) = check(&source, &["--margin", "5%"]) else { return };
    let with = memory(&test.run());
    let peak = |memory: &Value| memory["allocated_peak"].as_u64().unwrap();
    // Input and one hidden layer of 262144 samples; the activations of training stay as they are.
    assert!(peak(&with) > peak(&without) + 262_144 * 4 * (256 + 1024), "{with} {without}");
    assert_eq!(with["activations"], without["activations"]);
}

#[test]
fn the_optimizer_is_the_functions_own_unless_another_is_asked_for() {
    let source =
        PLAIN.replace("loss=loss", "loss=loss, optimizer=lambda p: torch.optim.SGD(p, lr=0.1)");
    let Some(test) = check(&source, &[]) else { return };
    assert_eq!(memory(&test.run())["optimizer_state"], 0);
    let Some(test) = check(&source, &["--optimizer", "adamw"]) else { return };
    assert!(memory(&test.run())["optimizer_state"].as_u64().unwrap() > 16 << 20);
    let Some(test) = plan(&source) else { return };
    let plan = json(&test.run());
    assert_eq!(
        (&plan["workload"]["optimizer"], &plan["built"]["own_optimizer"]),
        (&Value::Null, &true.into())
    );
}

#[test]
fn checkpointing_is_switched_on_as_the_workload_says() {
    let activations = |checkpoint: &str, setting: &str| {
        let source = PLAIN.replace("loss=loss", &format!("loss=loss, checkpoint={checkpoint}"));
        let test = check(&source, &["--checkpoint", setting])?;
        memory(&test.run())["activations"].as_u64()
    };
    let Some(plain) = activations("None", "none") else { return };
    let full = activations("None", "full").unwrap();
    assert!(full * 3 < plain, "{full} {plain}");
    assert_eq!(activations("['0', '1', '2', '3']", "full"), Some(full));
    let half = activations("['0', '2']", "full").unwrap();
    assert!(full < half && half < plain, "{full} {half} {plain}");
    assert_eq!(activations("None", "every-2"), Some(half));
    assert_eq!(activations("None", "blocks-0+2"), Some(half));
    let own = "lambda model: [setattr(b, 'forward', __import__('functools').partial(\
               torch.utils.checkpoint.checkpoint, b.forward, use_reentrant=False)) for b in model]";
    assert_eq!(activations(own, "full"), Some(full));
}

#[test]
fn a_model_without_blocks_is_searched_without_checkpointing() {
    let source = PLAIN.replace("net()", "nn.Sequential(nn.Linear(256, 64), nn.ReLU())");
    // By speed another size of the same setting may be an alternative.
    let arguments = [
        &PLAN[..4],
        &["--precision", "fp32", "--objective", "micro-batch", "--workload", "train.py:workload"],
    ]
    .concat();
    let Some(test) = function(&source, &arguments) else { return };
    let plan = json(&test.run());
    let notes: Vec<_> = plan["notes"].as_array().unwrap().iter().map(|it| &it["note"]).collect();
    assert!(notes.contains(&&"no-checkpointing".into()), "{notes:?}");
    assert_eq!(plan["alternatives"], serde_json::json!([]));
}

#[test]
fn out_of_memory_is_an_answer() {
    let source = PLAIN.replace("batch=batch", "batch=lambda n: batch(1000 * n)");
    // The largest that fits is the one whose next does not.
    let ask = [&PLAN[..4], &["--objective", "micro-batch"], &PLAN[4..], &["train.py:workload"]];
    let Some(test) = function(&source, &ask.concat()) else { return };
    let plan = json(&test.run());
    let choice = &plan["recommendation"];
    assert!(choice["micro_batch"].as_u64().unwrap() < 4096, "{choice}");
    let next = usize::try_from(choice["next"]["evidence"].as_u64().unwrap()).unwrap();
    let outcome = &plan["measurements"][next]["outcome"]["out-of-memory"];
    assert!(outcome["message"].as_str().unwrap().starts_with("CUDA out of memory"), "{plan}");
}

#[test]
fn batch_norm_is_found_in_a_model_of_torchvision() {
    let source = "
import torch, torchvision
def workload():
    return dict(
        model=torchvision.models.resnet18(),
        batch=lambda n: (torch.randn(n, 3, 224, 224), torch.randint(1000, (n,))),
        loss=lambda model, b: torch.nn.functional.cross_entropy(model(b[0]), b[1]),
    )
";
    let Some(test) = plan(source) else { return };
    let plan = json(&test.run());
    assert_eq!(plan["built"]["model"], "ResNet");
    let notes = plan["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note["note"] == "batch-norm"), "{notes:?}");
}

#[test]
fn the_tests_of_the_python_worker_itself_pass() {
    let python = std::env::var("VRAMFIT_PYTHON").ok();
    assert!(python.is_some() || cfg!(debug_assertions), "`make test` says which Python to use");
    let Some(python) = python else { return };
    let output = std::process::Command::new(python)
        .args(["-B", "-m", "unittest", "discover", "-s", "tests", "-t", "."])
        .current_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("python"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("Ran 0 tests"), "{said}");
}

#[test]
fn each_length_of_several_is_passed_to_the_function_and_what_it_refuses_is_passed_over() {
    let source = "
from parts import *
def workload(sequence):
    if sequence > 4096:
        raise ValueError('no more than 4096')
    return dict(model=net(), batch=lambda n: torch.randn(n, sequence, 256), loss=loss)
";
    let arguments =
        [&PLAN[..], &["train.py:workload", "--vram", "2GiB", "--seq", "2048..8192"]].concat();
    let Some(test) = function(source, &arguments) else { return };
    let run = test.run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let plan = json(&run);
    let contexts = &plan["contexts"];
    let rows = contexts["lengths"].as_array().unwrap();
    let largest = |row: &Value| row["choice"]["micro_batch"].as_u64().unwrap();
    assert!(largest(&rows[0]) > largest(&rows[1]), "{contexts}");
    let reason = rows[2]["answer"]["not-measured"]["reason"].as_str().unwrap();
    assert!(reason.contains("ValueError: no more than 4096"), "{reason}");
    assert_eq!((&plan["workload"]["sequence"], &plan["incomplete"]), (&4096.into(), &false.into()));
    assert_eq!(contexts["limit"], serde_json::json!({ "tokens": 4096, "of": "asked" }));
    assert_eq!(contexts["longest"][0]["tokens"], 4096, "{contexts}");
}
