use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{Run, Test};

/// A training with two traps: the running loss, and a loader that is only slow.
const TRAPS: &str = r#"import torch
from torch.utils.data import DataLoader

loader = DataLoader(data, batch_size=32)
total = 0
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
"#;

/// One trap a program, planted into an otherwise healthy training.
const HEALTHY: &str = r#"import torch
from torch import nn
from torch.utils.data import DataLoader


def train(model, loader, optimizer, criterion, device):
    model.train()
    total = 0.0
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x.to(device)).argmax(1) == y.to(device)).sum()
    return correct.item() / len(loader.dataset)


loader = DataLoader(data, 32, num_workers=4, pin_memory=True)
for epoch in range(9):
    train(model, loader, optimizer, nn.CrossEntropyLoss(), "cuda")
    evaluate(model, loader, "cuda")
"#;

#[test]
fn findings_are_printed_as_compilers_do() {
    Test::new(&["lint", "train.py"])
        .file("train.py", TRAPS)
        .stdout_snapshot("lint_text")
        .stderr("1 warning and 1 note in 1 script\n")
        .status(1);
}

#[test]
fn a_healthy_script_is_silent() {
    Test::new(&["lint", "train.py"])
        .file("train.py", HEALTHY)
        .stderr("nothing found in 1 script\n")
        .status(0);
}

#[test]
fn each_planted_fault_is_found_by_its_name_alone() {
    for (healthy, faulty, rule) in [
        ("total += loss.item()", "total += loss", "loss-with-graph"),
        ("@torch.no_grad()\n", "", "missing-no-grad"),
        ("loss.backward()", "loss.backward(retain_graph=True)", "retained-graph"),
        ("        optimizer.zero_grad()\n", "", "misplaced-zero-grad"),
        (", num_workers=4, pin_memory=True", "", "plain-loader"),
        ("loss.backward()", "loss.backward(); torch.cuda.empty_cache()", "emptied-cache"),
        (
            "loss = criterion(model(x), y)",
            "with torch.autocast('cuda'): loss = criterion(model(x), y)",
            "fp16-without-scaler",
        ),
    ] {
        assert!(HEALTHY.contains(healthy), "{healthy}");
        let run = Test::new(&["lint", "--json", "train.py"])
            .file("train.py", &HEALTHY.replace(healthy, faulty))
            .run();
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        let found: Vec<_> = document["findings"].as_array().unwrap().iter().collect();
        assert_eq!(found.len(), 1, "{rule}: {found:?}");
        assert_eq!(found[0]["rule"], rule);
    }
}

#[test]
fn notes_alone_are_no_failure() {
    let only_slow = TRAPS.replace("total += loss", "total += loss.item()");
    let run = Test::new(&["lint", "train.py"]).file("train.py", &only_slow).run();
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), "1 note in 1 script\n"));
    assert!(run.stdout.contains("note[V09 plain-loader]"), "{}", run.stdout);
}

#[test]
fn json_has_a_version_and_places() {
    let run = Test::new(&["lint", "train.py", "--json"]).file("train.py", TRAPS).run();
    assert_eq!(run.status, Some(1));
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["schema"], 1);
    assert_eq!(document["summary"]["warnings"], 1);
    assert_eq!(document["summary"]["scripts"], 1);
    let finding = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["rule"] == "loss-with-graph")
        .unwrap();
    for (field, value) in [
        ("number", Value::from("V01")),
        ("severity", "warning".into()),
        ("path", "train.py".into()),
        ("cell", Value::Null),
        ("line", 11.into()),
        ("column", 5.into()),
        ("end_line", 11.into()),
        ("end_column", 18.into()),
        ("source", "    total += loss".into()),
    ] {
        assert_eq!(finding[field], value, "{field}");
    }
}

#[test]
fn sarif_is_what_code_hosts_read() {
    let run = Test::new(&["lint", "my train.py", "--sarif"]).file("my train.py", TRAPS).run();
    let log: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "vramfit");
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        // Each result names a rule that the tool describes, and a place that starts at 1.
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(driver["rules"][index]["id"], result["ruleId"]);
        assert!(driver["rules"][index]["shortDescription"]["text"].is_string());
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "my%20train.py");
        for field in ["startLine", "startColumn", "endLine", "endColumn"] {
            assert!(place["region"][field].as_u64().unwrap() >= 1, "{field}");
        }
    }
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
}

#[test]
fn rules_are_chosen_by_name_or_number() {
    let with = |arguments: &[&str]| -> Run {
        let arguments: Vec<_> = ["lint", "train.py"].iter().chain(arguments).copied().collect();
        Test::new(&arguments).file("train.py", TRAPS).run()
    };
    assert_eq!(with(&["--select", "V09"]).stderr, "1 note in 1 script\n");
    assert_eq!(with(&["--ignore", "plain-loader"]).stderr, "1 warning in 1 script\n");
    assert_eq!(with(&["--ignore", "v09,loss-with-graph"]).stderr, "nothing found in 1 script\n");
    let unknown = with(&["--select", "loss-with-graf"]);
    assert_eq!(unknown.status, Some(2));
    assert_eq!(
        unknown.stderr,
        "error: no rule named `loss-with-graf`\n\
         hint: did you mean `loss-with-graph`? `vramfit lint --rules` lists all 16\n"
    );
    let listed = Test::new(&["lint", "--rules"]).output();
    assert_eq!(listed.lines().count(), 17);
}

#[test]
fn a_comment_keeps_a_finding_back() {
    for (line, with_comment) in [
        ("total += loss", "total += loss  # vramfit: ignore[loss-with-graph]"),
        ("total += loss", "total += loss  # vramfit: ignore[V01, V02]"),
        ("total += loss", "total += loss  # vramfit: ignore"),
        (
            "    total += loss",
            "    # a test: vramfit: ignore[V01 loss-with-graph]\n    total += loss",
        ),
    ] {
        let code = TRAPS.replace(line, with_comment);
        let run = Test::new(&["lint", "train.py"]).file("train.py", &code).run();
        assert_eq!(run.stderr, "1 note in 1 script\n", "{with_comment}");
    }
    let other = TRAPS.replace("total += loss", "total += loss  # vramfit: ignore[V02]");
    let run = Test::new(&["lint", "train.py"]).file("train.py", &other).run();
    assert_eq!(run.stderr, "1 warning and 1 note in 1 script\n");
}

#[test]
fn what_is_no_python_3_is_named_with_its_line_and_keeps_nothing_back() {
    let run = Test::new(&["lint", "old.py", "train.py"])
        .file("old.py", "import torch\nprint \"loss\", loss\n")
        .file("train.py", TRAPS)
        .run();
    assert_eq!(run.status, Some(2));
    assert!(run.stdout.contains("train.py:11:5 warning[V01 loss-with-graph]"), "{}", run.stdout);
    assert!(run.stderr.starts_with("error: old.py:2:"), "{}", run.stderr);
    assert!(run.stderr.contains("\nhint: it looks like Python 2; "), "{}", run.stderr);
    let broken =
        Test::new(&["lint", "broken.py"]).file("broken.py", "for x in y\n    pass\n").run();
    assert_eq!(broken.status, Some(2));
    assert!(broken.stderr.starts_with("error: broken.py:1:11: "), "{}", broken.stderr);
}

#[test]
fn what_cannot_be_read_is_bad_input() {
    Test::new(&["lint", "none.py"])
        .stderr(
            "error: cannot read `none.py`: No such file or directory (os error 2)\n\
             nothing found in 0 scripts\n",
        )
        .status(2);
    Test::new(&["lint", "."])
        .stderr("error: `.` has neither scripts nor notebooks in it\n")
        .status(2);
    let latin = Test::new(&["lint", "latin.py"]);
    std::fs::write(latin.path().join("latin.py"), b"# \xe9\n").unwrap();
    latin
        .stderr("error: cannot read `latin.py`: it is not UTF-8\nnothing found in 0 scripts\n")
        .status(2);
}

#[test]
fn folders_are_searched_but_not_others_code() {
    let run = Test::new(&["lint", "."])
        .file("train.py", TRAPS)
        .file("sub/deep/train.py", TRAPS)
        .file("venv/lib/train.py", TRAPS)
        .file(".hidden/train.py", TRAPS)
        .file("text.txt", "no code")
        .run();
    assert_eq!(run.stderr, "2 warnings and 2 notes in 2 scripts\n");
    assert!(run.stdout.contains("./sub/deep/train.py:11:5 "), "{}", run.stdout);
}

#[test]
fn notebooks_are_read_by_their_cells() {
    let lines: Vec<_> = TRAPS.lines().map(|line| format!("{line}\n")).collect();
    let notebook = serde_json::json!({
        "metadata": { "language_info": { "name": "python" } },
        "nbformat": 4,
        "cells": [
            { "cell_type": "markdown", "source": ["# Training"] },
            { "cell_type": "code", "source": "%matplotlib inline\n!pip install x\nfiles = !ls" },
            { "cell_type": "code", "source": "%%bash\nfor x in y; do" },
            { "cell_type": "code", "source": lines },
        ],
    });
    let run = Test::new(&["lint", "train.ipynb"]).file("train.ipynb", &notebook.to_string()).run();
    assert_eq!(run.stderr, "1 warning and 1 note in 1 script\n");
    assert!(run.stdout.contains("train.ipynb:cell 4:11:5 warning[V01"), "{}", run.stdout);
    assert!(run.stdout.contains("  11 | total += loss\n"), "{}", run.stdout);
    let broken = Test::new(&["lint", "x.ipynb"]).file("x.ipynb", "{}").run();
    assert_eq!(broken.status, Some(2));
    assert!(broken.stderr.starts_with("error: `x.ipynb` is no notebook that can be read: "));
}

#[test]
fn standard_input_is_read() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vramfit"))
        .args(["lint", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(TRAPS.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout.contains("-:11:5 warning[V01 loss-with-graph]"), "{stdout}");
}

#[test]
fn deep_nesting_is_no_crash() {
    let deep = format!("import torch\nx = {}0{}\n", "(".repeat(5000), ")".repeat(5000));
    let run = Test::new(&["lint", "deep.py"]).file("deep.py", &deep).run();
    assert_eq!(run.stderr, "nothing found in 1 script\n");
}
