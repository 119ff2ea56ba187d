use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::fake::{fake, json};
use crate::harness::{Run, Test};

/// GPT-2 small on a 4 GB card: 3 x 16 + 2 samples, bf16, checkpointing full.
const PLAN: &str = include_str!("../export/plan.json");
const FORMATS: [&str; 5] = ["pytorch", "hf", "accelerate", "lightning", "deepspeed"];

fn export(plan: &str, format: &str) -> Test {
    Test::new(&["export", "plan.json", "--to", format]).file("plan.json", plan)
}

/// The saved plan with changes.
fn edited(edit: impl FnOnce(&mut Value)) -> String {
    let mut plan = serde_json::from_str(PLAN).unwrap();
    edit(&mut plan);
    plan.to_string()
}

/// What the saved plan leaves out: two GPUs, fp16, every second block, clipping, momentum, a variable
/// of the allocator.
fn elaborate() -> String {
    edited(|plan| {
        plan["goal"]["target_batch"] = 100.into();
        plan["goal"]["world_size"] = 2.into();
        plan["recommendation"]["effective_batch"] = 100.into();
        plan["recommendation"]["precision"] = "fp16".into();
        plan["recommendation"]["checkpointing"] = json!({ "every": 2 });
        plan["workload"]["gradient_clipping"] = 1.0.into();
        plan["workload"]["optimizer"] = "sgd-momentum".into();
        plan["notes"] = json!([
            { "note": "world-size", "world_size": 2 },
            { "note": "allocator-variable", "variable": "PYTORCH_ALLOC_CONF",
              "value": "max_split_size_mb:64" },
        ]);
    })
}

#[test]
fn a_saved_plan_is_handed_over_in_each_format() {
    export(PLAN, "pytorch").stdout_snapshot("export_pytorch").status(0);
    export(PLAN, "hf").stdout_snapshot("export_hf").status(0);
    export(PLAN, "accelerate").stdout_snapshot("export_accelerate").status(0);
    export(PLAN, "lightning").stdout_snapshot("export_lightning").status(0);
    let run = export(PLAN, "deepspeed").run();
    insta::assert_snapshot!("export_deepspeed", run.stdout);
    insta::assert_snapshot!("export_deepspeed_remarks", run.stderr);
}

#[test]
fn what_a_plan_may_hold_besides_is_handed_over_too() {
    let plan = elaborate();
    export(&plan, "pytorch").stdout_snapshot("export_elaborate_pytorch").status(0);
    export(&plan, "hf").stdout_snapshot("export_elaborate_hf").status(0);
    export(&plan, "accelerate").stdout_snapshot("export_elaborate_accelerate").status(0);
    export(&plan, "lightning").stdout_snapshot("export_elaborate_lightning").status(0);
    insta::assert_snapshot!("export_elaborate_deepspeed", export(&plan, "deepspeed").run().stdout);
}

#[test]
fn chosen_blocks_are_handed_over_one_by_one() {
    let plan = edited(|plan| {
        plan["recommendation"]["checkpointing"] = json!({ "blocks": [0, 1, 2, 3, 7] });
    });
    for format in ["pytorch", "accelerate", "lightning", "hf"] {
        let module = export(&plan, format).run().stdout;
        for text in [
            "all_blocks[index] for index in [*range(0, 4), 7]]",
            "checkpoint_blocks(",
            "import functools",
        ] {
            assert!(module.contains(text), "{format}: {module}");
        }
        assert!(module.contains("checkpointing blocks-0-3+7"), "{format}: {module}");
    }
    let module = export(&plan, "hf").run().stdout;
    assert!(!module.contains("\"activation_checkpointing\""), "{module}");
    let remarks = export(&plan, "deepspeed").run().stderr;
    assert!(remarks.contains("checkpointing of the blocks 0-3+7, counted from 0"), "{remarks}");
}

#[test]
fn the_documentation_shows_what_is_printed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/export.md");
    let page = fs::read_to_string(page).unwrap();
    let mut shown = Vec::new();
    for section in page.split("\n## `--to ").skip(1) {
        let (format, text) = section.split_once('`').unwrap();
        let printed = export(PLAN, format).run().stdout;
        let code = text.split("```").nth(1).unwrap().split_once('\n').unwrap().1;
        for part in code.split("…\n") {
            assert!(printed.contains(part), "{format} does not print:\n{part}");
        }
        shown.push(format);
    }
    assert_eq!(shown, FORMATS);
}

#[test]
fn an_output_file_holds_what_would_be_printed() {
    let printed = export(PLAN, "hf").output();
    let arguments = ["export", "plan.json", "--to", "hf", "--output", "planned.py"];
    let run = Test::new(&arguments).file("plan.json", PLAN).run();
    assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    assert_eq!(fs::read_to_string(run.folder.path().join("planned.py")).unwrap(), printed);
}

#[test]
fn the_plan_is_not_overwritten() {
    Test::new(&["export", "plan.json", "--to", "hf", "--output", "./plan.json"])
        .file("plan.json", PLAN)
        .stderr("error: `--output ./plan.json`: the plan itself\nhint: name another file\n")
        .status(2);
}

#[test]
fn a_plan_that_recommends_nothing_is_refused() {
    export(&edited(|plan| plan["recommendation"] = Value::Null), "hf")
        .stderr("error: `plan.json` recommends nothing to export\n")
        .status(2);
}

#[test]
fn a_plan_of_a_command_is_for_the_command() {
    let command = json!({ "words": ["train", "{micro_batch}"], "folder": "/", "vary": [] });
    export(&edited(|plan| plan["workload"]["subject"] = json!({ "command": command })), "hf")
        .stderr(
            "error: `plan.json` is a plan of a command, which applies it by itself\n\
             hint: the command to run is in its field `command`\n",
        )
        .status(2);
    let arguments = ["plan", "--target-batch", "8", "--gpu", "rtx-3090", "--export", "hf"];
    Test::new(&[&arguments[..], &["--", "train", "{micro_batch}"]].concat())
        .stderr(
            "error: `--export hf`: a command applies the plan by itself\n\
             hint: leave it out: the table ends with the command to run\n",
        )
        .status(2);
}

#[test]
fn formats_that_there_are_not_are_refused_with_those_there_are() {
    let run = export(PLAN, "keras").run();
    assert_eq!((run.status, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    assert!(run.stderr.contains("pytorch, hf, accelerate, lightning, deepspeed"), "{run:?}");
}

#[test]
fn plan_prints_an_artefact_in_place_of_the_table() {
    let arguments =
        ["plan", "--target-batch", "64", "--export", "pytorch", "--output", "plan.json"];
    let run = fake(&arguments, &[]).run();
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let plan = fs::read_to_string(run.folder.path().join("plan.json")).unwrap();
    assert_eq!(export(&plan, "pytorch").output(), run.stdout);
}

#[test]
fn plan_without_anything_to_hand_over_says_why_on_stderr() {
    let arguments = ["plan", "--target-batch", "64", "--export", "hf"];
    let run = fake(&arguments, &[("FAKE_FIXED", "9000")]).run();
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.stderr.starts_with("Not even one sample of tiny fits"), "{run:?}");
}

/// Words that end a line, a string, a comment or a module where they stand unescaped.
const HOSTILE: &str = "x\"\"\"\n'''\r\u{2028}\u{c}\\\nimport os\nos._exit(3)\n# coding: utf-7\n\
                       @micro_batch@ #? end\n#+ evidence\u{202e}\u{0}";

#[test]
fn no_name_in_a_plan_breaks_out_of_its_comment_or_string() {
    let variable = |value: &str| {
        json!([{ "note": "allocator-variable", "variable": "PYTORCH_ALLOC_CONF", "value": value },
               { "note": "context-of-profile", "context": 1, "basis": value, "source": value }])
    };
    // A variable of the environment holds no NUL.
    let value = HOSTILE.replace('\0', "");
    let hostile = edited(|plan| {
        let model = &mut plan["workload"]["subject"]["model"];
        for key in ["name", "description", "source"] {
            model[key] = HOSTILE.into();
        }
        for key in ["name", "product", "uuid", "compute_capability"] {
            plan["device"][key] = HOSTILE.into();
        }
        for key in ["vramfit", "torch", "cuda", "cudnn", "driver"] {
            plan["versions"][key] = HOSTILE.into();
        }
        for measured in plan["measurements"].as_array_mut().unwrap() {
            for key in ["gpu", "torch", "cuda", "cudnn", "driver"] {
                measured["evidence"][key] = HOSTILE.into();
            }
        }
        plan["built"] = json!({ "model": HOSTILE, "parameters": 1, "own_optimizer": false,
                                "batch_norm": false, "checkpointing": true });
        plan["notes"] = variable(&value);
    });
    let harmless = edited(|plan| plan["notes"] = variable("harmless"));
    for format in ["pytorch", "hf", "accelerate", "lightning"] {
        let [hostile, harmless] = [&hostile, &harmless].map(|plan| export(plan, format).output());
        let (hostile, harmless) = (syntax(&hostile, &value), syntax(&harmless, "harmless"));
        assert!(hostile == harmless, "{format}: {hostile}");
    }
    let run = export(&hostile, "deepspeed").run();
    assert_eq!(run.stderr.lines().count(), 5, "{run:?}");
    assert!(!run.stdout.contains("\\n") && !run.stderr.contains('\u{202e}'), "{run:?}");
    assert_eq!(json(&run)["train_batch_size"], 3 * 17);
}

/// The syntax tree of a module, with a name in place of a string that is in it once.
fn syntax(module: &str, string: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("module.py");
    fs::write(&path, module).unwrap();
    let program = "import ast, sys\ntree = ast.parse(open(sys.argv[1], 'rb').read())\n\
                   dump = ast.dump(tree)\nassert dump.count(repr(sys.argv[2])) == 1\n\
                   print(dump.replace(repr(sys.argv[2]), 'STRING'))";
    let output =
        Command::new(python()).args(["-c", program]).arg(&path).arg(string).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}\n{module}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn variables_that_are_none_of_the_allocators_are_refused() {
    let variable =
        json!([{ "note": "allocator-variable", "variable": "LD_PRELOAD", "value": "x" }]);
    export(&edited(|plan| plan["notes"] = variable), "pytorch")
        .stderr(
            "error: `plan.json` is not a whole plan: `LD_PRELOAD` is no variable of PyTorch's \
             allocator\nhint: write it anew with `vramfit plan … --output`\n",
        )
        .status(2);
}

#[test]
fn accumulated_gradients_are_those_of_all_samples_also_at_the_end_of_an_epoch() {
    // 35 samples: whole steps, and one of fewer micro-batches, with a smaller last one or without.
    for (accumulation, remainder, expected) in [(3, None, "12 12 11"), (2, Some(2), "10 10 10 4")] {
        let target = 4 * accumulation + remainder.unwrap_or(0);
        let plan = edited(|plan| {
            plan["goal"]["target_batch"] = target.into();
            let choice = &mut plan["recommendation"];
            choice["effective_batch"] = target.into();
            choice["micro_batch"] = 4.into();
            choice["accumulation"] = accumulation.into();
            choice["remainder"] = remainder.into();
            choice["precision"] = "fp32".into();
            choice["checkpointing"] = "none".into();
        });
        let folder = tempfile::tempdir().unwrap();
        let formats = ["pytorch", "accelerate", "lightning"];
        let files = formats.map(|format| {
            let path = folder.path().join(format).with_extension("py");
            fs::write(&path, export(&plan, format).output()).unwrap();
            path
        });
        let output = Command::new(python())
            .arg(programs().join("gradients.py"))
            .args(files)
            .current_dir(&folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let text = String::from_utf8(output.stdout).unwrap();
        for format in formats {
            let line = format!("{format} {expected}");
            assert!(text.lines().any(|it| it == line), "{line}\n{text}\n{stderr}");
        }
    }
}

/// The built-in twin of the model in `tests/export/subject.py`.
const MODEL: &str = r#"
name = "small-gpt2"
description = "A small GPT-2"
source = "transformers' GPT2LMHeadModel"
parameters = 5322240
[architecture.decoder]
vocabulary = 8192
context = 256
hidden = 256
layers = 4
heads = 8
kv_heads = 8
feed_forward = 1024
style = "gpt2"
tied_embeddings = true
dropout = 0.1
"#;

/// What is planned, each trained by in each framework: accumulation with and without a smaller last
/// micro-batch and none at all, each precision and kind of checkpointing.
const PLANS: [(&str, &[&str]); 5] = [
    ("fp32", &["12", "--precision", "fp32", "--checkpoint", "none"]),
    ("bf16", &["20", "--precision", "bf16", "--checkpoint", "full", "--ragged"]),
    ("fp16", &["10", "--precision", "fp16", "--checkpoint", "none"]),
    ("tf32", &["4", "--precision", "tf32", "--checkpoint", "every-2"]),
    ("blocks", &["8", "--precision", "bf16", "--checkpoint", "blocks-0+2"]),
];

#[test]
fn pytorch_trains_as_planned() {
    trains_as_planned("pytorch");
}

#[test]
fn the_trainer_of_transformers_trains_as_planned() {
    trains_as_planned("hf");
}

#[test]
fn accelerate_trains_as_planned() {
    trains_as_planned("accelerate");
}

#[test]
fn lightning_trains_as_planned() {
    trains_as_planned("lightning");
}

#[test]
fn deepspeed_trains_as_planned() {
    trains_as_planned("deepspeed");
}

/// Plans with the real worker, exports, lets the framework train by it on the virtual GPU for an
/// epoch that ends in the midst of an optimizer step, and compares.
#[track_caller]
fn trains_as_planned(format: &str) {
    let worker = Path::new(env!("CARGO_BIN_EXE_vramfit")).with_file_name("vramfit-worker");
    let worker = std::env::var_os("VRAMFIT_WORKER").map_or(worker, PathBuf::from);
    if !worker.exists() && cfg!(debug_assertions) {
        return; // Only the release build has it.
    }
    let plans = PLANS.map(|(name, flags)| (name, planned(&worker, flags)));
    let python = python();
    let program = programs().join("train.py");
    let mut arguments: Vec<_> =
        ["run", "--gpu", GPU, "--report", "report.json", "--", &python].map(str::to_owned).into();
    arguments.extend([program.display().to_string(), format.to_owned()]);
    for (name, plan) in &plans {
        let samples = samples(plan).to_string();
        arguments.extend([file(name, format), samples, format!("{name}.json")]);
    }
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut test = on_virtual_gpu(&arguments).env("PYTHONDONTWRITEBYTECODE", "1");
    for (name, plan) in &plans {
        let plan = plan.to_string();
        test = test.file(&file(name, format), &export(&plan, format).run().stdout);
        if format == "deepspeed" {
            let helper = export(&plan, "pytorch").output();
            test = test.file(&file(name, "pytorch"), &helper);
        }
    }
    let run = test.run();
    assert_eq!(run.status, Some(0), "{run:?}");
    for (name, plan) in &plans {
        compare(format, name, plan, &run);
    }
}

const GPU: &str = "rtx-3050-laptop-4gb";

fn planned(worker: &Path, flags: &[&str]) -> Value {
    let gpu = ["--gpu", GPU, "--vram", "1GiB", "--margin", "189MiB"];
    // The largest, which is exact: which is the fastest rests on times.
    let ask = ["plan", "--json", "--model", "small-gpt2", "--objective", "micro-batch"];
    let start = [&ask[..], &gpu].concat();
    let run = on_virtual_gpu(&[&start[..], &["--target-batch"], flags].concat())
        .env("VRAMFIT_WORKER", worker.to_str().unwrap())
        .run();
    assert_eq!(run.status, Some(0), "{run:?}");
    json(&run)
}

fn on_virtual_gpu(arguments: &[&str]) -> Test {
    let test = Test::new(arguments)
        .file("own/models/small-gpt2.toml", MODEL)
        .env("PATH", &std::env::var("PATH").unwrap());
    match std::env::var("VRAMFIT_VGPU_LIBRARY") {
        Ok(library) => test.env("VRAMFIT_VGPU_LIBRARY", &library),
        Err(_) => test,
    }
}

/// Where a program finds the artefact of a plan.
fn file(name: &str, format: &str) -> String {
    let extension = if format == "deepspeed" { "json" } else { "py" };
    format!("{name}_{format}.{extension}").replace("pytorch.json", "pytorch.py")
}

/// Samples of an epoch: two whole optimizer steps, since peaks are those of the second, a micro-batch
/// and all but one sample of another, which is dropped.
fn samples(plan: &Value) -> u64 {
    let micro_batch = plan["recommendation"]["micro_batch"].as_u64().unwrap();
    2 * plan["goal"]["target_batch"].as_u64().unwrap() + 2 * micro_batch - 1
}

/// Micro-batches of each optimizer step that the format can express.
fn steps(format: &str, plan: &Value) -> Vec<Vec<u64>> {
    let number = |key: &str| plan["recommendation"][key].as_u64();
    let micro_batch = number("micro_batch").unwrap();
    let mut whole = vec![micro_batch; usize::try_from(number("accumulation").unwrap()).unwrap()];
    let own_sizes = !matches!(format, "hf" | "deepspeed");
    whole.extend(number("remainder").and_then(|rest| match own_sizes {
        true => Some(rest),
        false => (2 * rest >= micro_batch).then_some(micro_batch),
    }));
    let mut left = samples(plan);
    let mut steps = vec![Vec::new()];
    for &size in whole.iter().cycle().take_while(|&&size| {
        let fits = left >= size;
        left = left.saturating_sub(size);
        fits
    }) {
        steps.last_mut().unwrap().push(size);
        if steps.last().unwrap().len() == whole.len() {
            steps.push(Vec::new());
        }
    }
    steps.retain(|step| !step.is_empty());
    steps
}

#[track_caller]
fn compare(format: &str, name: &str, plan: &Value, run: &Run) {
    let text = fs::read_to_string(run.folder.path().join(format!("{name}.json"))).unwrap();
    let seen: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(seen["steps"], json!(steps(format, plan)), "{format} {name}");
    let choice = &plan["recommendation"];
    assert_eq!(!choice["remainder"].is_null(), name == "bf16", "the plans differ as meant");
    let memory = |key: &str| choice["memory"][key].as_u64().unwrap();
    let (allocated, reserved) = (memory("allocated_peak"), memory("reserved_peak"));
    // A running loss and its next value; the Trainer has the inputs of a whole optimizer step on the
    // GPU at once: two numbers of 8 bytes a token, and the number of tokens.
    let step: u64 = steps(format, plan)[0].iter().sum();
    let more = 1024 + if format == "hf" { step * 256 * 16 + 4096 } else { 0 };
    // Under autocast copies of weights are freed in the order of a hash of addresses.
    let mixed = matches!(choice["precision"].as_str(), Some("bf16" | "fp16"));
    let less = if mixed { allocated / 500 } else { 0 };
    let found = seen["allocated"].as_u64().unwrap();
    let what = format!("{format} {name}: {found} allocated, {allocated} planned");
    assert!((allocated - less..=allocated + less + more).contains(&found), "{what}");
    // The allocator takes memory in segments of 2 MiB and more.
    let segment = 2 << 20;
    let moved = segment * (2 * u64::from(mixed) + u64::from(format == "hf"));
    let found = seen["reserved"].as_u64().unwrap();
    assert!(found.abs_diff(reserved) <= moved, "{format} {name}: {found} reserved, {reserved}");
    // Seen from outside.
    let report = fs::read_to_string(run.folder.path().join("report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let processes = report["processes"].as_array().unwrap();
    let process = processes.iter().find(|process| process["pid"] == seen["pid"]).unwrap();
    let peak = process["process_peak"][0]["total_bytes"].as_u64().unwrap();
    let planned = memory("device_peak");
    assert!(peak.abs_diff(planned) <= moved, "{format} {name}: {peak} at the peak, {planned}");
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export")
}

fn python() -> String {
    std::env::var("VRAMFIT_PYTHON")
        .expect("VRAMFIT_PYTHON names no Python with PyTorch; run `make setup`")
}
