use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::harness::Test;

#[test]
fn help_tells_the_commands_and_the_exit_status() {
    Test::new(&["--help"]).stdout_snapshot("help").status(0);
}

#[test]
fn each_command_has_its_help() {
    Test::new(&["plan", "--help"]).stdout_snapshot("help_plan").status(0);
    Test::new(&["check", "--help"]).stdout_snapshot("help_check").status(0);
    Test::new(&["gpu-check", "--help"]).stdout_snapshot("help_gpu_check").status(0);
    Test::new(&["export", "--help"]).stdout_snapshot("help_export").status(0);
    Test::new(&["run", "--help"]).stdout_snapshot("help_run").status(0);
    Test::new(&["replay", "--help"]).stdout_snapshot("help_replay").status(0);
    Test::new(&["lint", "--help"]).stdout_snapshot("help_lint").status(0);
    Test::new(&["doctor", "--help"]).stdout_snapshot("help_doctor").status(0);
    Test::new(&["equivalence", "--help"]).stdout_snapshot("help_equivalence").status(0);
    Test::new(&["gpus", "--help"]).stdout_snapshot("help_gpus").status(0);
    Test::new(&["models", "--help"]).stdout_snapshot("help_models").status(0);
}

#[test]
fn version_is_the_packages() {
    Test::new(&["--version"]).stdout(&format!("vramfit {}\n", env!("CARGO_PKG_VERSION"))).status(0);
}

#[test]
fn gpus_are_listed_in_a_table() {
    Test::new(&["gpus"]).stdout_snapshot("gpus").status(0);
}

#[test]
fn one_gpu_is_shown_with_basis_and_source_of_each_fact() {
    let name = "rtx-3050-laptop-4gb";
    Test::new(&["gpus", "show", name]).stdout_snapshot("gpus_show").status(0);
    Test::new(&["gpus", "show", name, "--json"]).stdout_snapshot("gpus_show_json").status(0);
}

#[test]
fn all_gpus_come_as_one_json_array_with_sizes_in_bytes() {
    let json = Test::new(&["gpus", "--json"]).output();
    let gpus: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert!(gpus.len() >= 60);
    let h200 = gpus.iter().find(|gpu| gpu["name"] == "h200").unwrap();
    assert_eq!(h200["total_memory"]["value"], 143_771_u64 << 20);
}

#[test]
fn models_are_listed_and_shown() {
    let with_models = |arguments| {
        Test::new(arguments).file("own/models/tiny.toml", TINY).file("own/models/net.toml", NET)
    };
    let shown = "tiny: a decoder for tests\n\nfact             value\nfamily           decoder\n";
    let all = with_models(&["models", "show", "tiny"]).output();
    assert!(all.starts_with(shown), "{all}");
    let listed = with_models(&["models"]).output();
    let row = |name: &str| {
        let line = listed.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("tiny "), "tiny decoder 1.5 M 256 a decoder for tests");
    assert_eq!(row("net "), "net mlp 1.2 k - a perceptron for tests");
}

#[test]
fn unknown_names_get_the_nearest_one() {
    let count = Test::new(&["gpus"]).output().lines().count() - 1;
    for (typed, meant) in [
        ("rtx-3050-lptop-4gb", "rtx-3050-laptop-4gb"),
        ("RTX3090", "rtx-3090"),
        ("rtx-4060-lap", "rtx-4060-laptop"),
    ] {
        Test::new(&["gpus", "show", typed])
            .stderr(&format!(
                "error: no GPU named `{typed}`\n\
                 hint: did you mean `{meant}`? `vramfit gpus` lists all {count}\n"
            ))
            .status(2);
    }
    Test::new(&["plan", "--target-batch", "64", "--model", "tiny", "--gpu", "voodoo"])
        .file("own/models/tiny.toml", TINY)
        .stderr(&format!("error: no GPU named `voodoo`\nhint: `vramfit gpus` lists all {count}\n"))
        .status(2);
}

#[test]
fn an_unknown_model_gets_the_nearest_one() {
    let count = Test::new(&["models"]).file("own/models/tiny.toml", TINY).output().lines().count();
    Test::new(&["plan", "--target-batch", "64", "--model", "tinny"])
        .file("own/models/tiny.toml", TINY)
        .stderr(&format!(
            "error: no model named `tinny`\n\
             hint: did you mean `tiny`? `vramfit models` lists all {}\n",
            count - 1
        ))
        .status(2);
}

#[test]
fn a_value_that_cannot_be_read_is_named_with_its_flag() {
    for (flag, value, complaint) in [
        (
            "--target-batch",
            "0",
            "error: `--target-batch 0`: must be at least 1\nhint: give a whole number such as 64\n",
        ),
        (
            "--world-size",
            "two",
            "error: `--world-size two`: not a whole number from 1 to 4294967295\n\
             hint: give a whole number such as 64\n",
        ),
        (
            "--vram",
            "four",
            "error: `--vram four`: not a size\nhint: write it as 4GiB, 600MiB or plain bytes\n",
        ),
        (
            "--vram",
            "0GiB",
            "error: `--vram 0GiB`: no memory at all\nhint: write it as 4GiB or 3800MiB\n",
        ),
        (
            "--reserve",
            "lots",
            "error: `--reserve lots`: not a size\nhint: write it as 4GiB, 600MiB or plain bytes\n",
        ),
        (
            "--margin",
            "105%",
            "error: `--margin 105%`: neither a percentage nor a size\n\
             hint: write it as 5% (0 to 100) or 200MiB\n",
        ),
        (
            "--precision",
            "fp8",
            "error: `--precision fp8`: no precision\nhint: one of fp32, tf32, bf16, fp16\n",
        ),
        (
            "--checkpoint",
            "every-1",
            "error: `--checkpoint every-1`: no checkpointing\n\
             hint: one of none, full, selective, every-2, every-3 …, blocks-0-4+8\n",
        ),
        (
            "--seq",
            "0",
            "error: `--seq 0`: must be at least 1\n\
             hint: write it as 512, 256,512,1024, 256..4096 (doubling) or 256..2048:256 (in steps)\n",
        ),
        (
            "--seq",
            "1024..256",
            "error: `--seq 1024..256`: `1024..256` ends before it begins\n\
             hint: write it as 512, 256,512,1024, 256..4096 (doubling) or 256..2048:256 (in steps)\n",
        ),
        (
            "--optimizer",
            "lion",
            "error: `--optimizer lion`: no optimizer\n\
             hint: one of sgd, sgd-momentum, adam, adamw\n",
        ),
    ] {
        let mut arguments = vec!["plan", flag, value];
        if flag != "--target-batch" {
            arguments.extend(["--target-batch", "64"]);
        }
        Test::new(&arguments).stderr(complaint).status(2);
    }
    Test::new(&["check", "--micro-batch", "1", "--seq", "256,512"])
        .stderr(
            "error: `--seq 256,512`: not a whole number from 1 to 4294967295\n\
             hint: give a whole number such as 64\n",
        )
        .status(2);
    Test::new(&["check", "--micro-batch", "0"])
        .stderr(
            "error: `--micro-batch 0`: must be at least 1\nhint: give a whole number such as 64\n",
        )
        .status(2);
}

#[test]
fn a_list_is_refused_for_the_one_value_in_it_that_is_wrong() {
    Test::new(&["plan", "--target-batch", "64", "--precision", "bf16,int4,fp16"])
        .stderr("error: `--precision int4`: no precision\nhint: one of fp32, tf32, bf16, fp16\n")
        .status(2);
}

#[test]
fn settings_that_contradict_the_model_or_the_card_are_refused() {
    let plan = |arguments: &[&str], complaint: &str| {
        let mut all = vec!["plan"];
        all.extend(arguments);
        Test::new(&all)
            .file("own/models/tiny.toml", TINY)
            .file("own/models/net.toml", NET)
            .stderr(complaint)
            .status(2);
    };
    plan(
        &["--target-batch", "63", "--world-size", "2", "--model", "tiny"],
        "error: a target batch of 63 does not divide by a world size of 2\n\
         hint: 62 and 64 would\n",
    );
    plan(
        &["--target-batch", "3", "--world-size", "4", "--model", "tiny"],
        "error: a target batch of 3 does not divide by a world size of 4\nhint: 4 would\n",
    );
    plan(
        &["--target-batch", "4294967295", "--ragged", "--model", "tiny"],
        "error: a target batch of 4294967295 is 4294967295 samples on one GPU, more than 1048576\n\
         hint: up to 1048576 samples on each GPU; was it meant in tokens?\n",
    );
    plan(
        &["--target-batch", "64", "--model", "tiny", "--seq", "257"],
        "error: a sequence of 257 tokens is longer than the 256 of `tiny`\n\
         hint: `--seq 256` is the most\n",
    );
    plan(
        &["--target-batch", "64", "--model", "tiny", "--seq", "512..2048"],
        "error: a sequence of 512 tokens is longer than the 256 of `tiny`\n\
         hint: `--seq 256` is the most\n",
    );
    plan(
        &["--target-batch", "64", "--model", "net", "--seq", "8"],
        "error: `net` has no sequences, so `--seq 8` has no meaning\nhint: leave `--seq` out\n",
    );
    for precision in ["bf16", "tf32"] {
        plan(
            &["--target-batch", "64", "--model", "tiny", "--gpu", "t4", "--precision", precision],
            &format!(
                "error: `t4` has no {precision} in hardware (compute capability 7.5, needs 8.0)\n\
                 hint: PyTorch would emulate it, many times slower; use fp16 or fp32\n"
            ),
        );
    }
}

#[test]
fn what_clap_refuses_ends_with_status_2_and_prints_nothing() {
    for arguments in [&["plan"][..], &["plan", "--batch", "3"], &["fly"], &["check"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_vramfit")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "), "{arguments:?}");
    }
}

#[test]
fn what_clap_refuses_is_one_line_and_hints() {
    Test::new(&["plan"])
        .stderr(
            "error: the following required arguments were not provided: --target-batch <N>\n\
             hint: `vramfit plan --help` explains the arguments\n",
        )
        .status(2);
    Test::new(&["plan", "--target-batch", "64", "--objective", "fame"])
        .stderr(
            "error: invalid value `fame` for `--objective <GOAL>` [possible values: throughput, \
             micro-batch, memory]\n",
        )
        .status(2);
}

#[test]
fn a_folder_of_the_name_of_a_profile_is_none() {
    Test::new(&["gpus"]).file("own/gpus/folder.toml/x", "").stdout_snapshot("gpus").status(0);
}

#[test]
fn completions_are_written_for_each_shell() {
    for (shell, sign) in [("bash", "_vramfit()"), ("zsh", "#compdef vramfit"), ("fish", "complete")]
    {
        let script = Test::new(&["completions", shell]).output();
        assert!(script.contains(sign) && script.contains("target-batch"), "{shell}");
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_vramfit"))
        .args(["gpus", "--json"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

/// What would make start-up slow is kept out of it: libtorch and CUDA are not linked, and no Python
/// is asked for anything.
#[test]
fn help_and_lists_need_neither_libraries_of_pytorch_nor_a_python() {
    let vramfit = env!("CARGO_BIN_EXE_vramfit");
    let linked = Command::new("ldd").arg(vramfit).output().unwrap();
    let linked = String::from_utf8(linked.stdout).unwrap();
    assert!(linked.contains("libc.so"), "{linked}");
    for library in ["libtorch", "libc10", "libcuda", "libnvidia", "libpython"] {
        assert!(!linked.contains(library), "{linked}");
    }
    let folder = tempfile::tempdir().unwrap();
    let python = folder.path().join("python3");
    let asked = folder.path().join("asked");
    std::fs::write(&python, format!("#!/bin/sh\n/bin/touch '{}'\n", asked.display())).unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    for arguments in [&["--help"][..], &["gpus"], &["models"]] {
        let output = Command::new(vramfit)
            .args(arguments)
            .env("PATH", folder.path())
            .env("VRAMFIT_PYTHON", &python)
            .output()
            .unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "{arguments:?}: {output:?}");
        assert!(!asked.exists(), "{arguments:?} asked a Python");
    }
}

const TINY: &str = r#"name = "tiny"
description = "a decoder for tests"
source = "made up"
parameters = 1500000

[architecture.decoder]
vocabulary = 1000
context = 256
hidden = 64
layers = 2
heads = 2
kv_heads = 2
feed_forward = 256
style = "gpt2"
tied_embeddings = true
"#;

const NET: &str = r#"name = "net"
description = "a perceptron for tests"
source = "made up"
parameters = 1234

[architecture.mlp]
inputs = 10
hidden = [20, 30]
outputs = 2
activation = "relu"
"#;
