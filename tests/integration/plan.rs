use std::fs;
use std::path::Path;

use serde_json::Value;
use vramfit::plan::Plan;

use crate::fake::{assert_no_child_left, fake, json};

fn schema_file() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema/plan.schema.json")
}

/// `VRAMFIT_WRITE_SCHEMA=1 cargo test` writes it anew.
#[test]
fn the_published_schema_is_that_of_the_code() {
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(Plan)).unwrap() + "\n";
    if std::env::var_os("VRAMFIT_WRITE_SCHEMA").is_some() {
        fs::write(schema_file(), &schema).unwrap();
    }
    assert_eq!(fs::read_to_string(schema_file()).unwrap_or_default(), schema);
}

#[test]
fn plans_satisfy_the_published_schema() {
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema_file()).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let plain = ["plan", "--json", "--target-batch", "64"];
    let lengths = [&plain[..], &["--model", "talker", "--seq", "512..8192"]].concat();
    for (arguments, script) in [
        (&plain[..], vec![]),
        (&plain, vec![("FAKE_FIXED", "9000")]),
        (&plain, vec![("FAKE_TIGHT", "32")]),
        (&plain, vec![("FAKE_FAULT", "exit@2")]),
        (&lengths, vec![("FAKE_SAMPLE", "3000")]),
        (&lengths, vec![("FAKE_FAULT", "exit@any"), ("FAKE_FAULT_TOKENS", "1024")]),
        (&plain, vec![("FAKE_TIMES", "even")]),
    ] {
        let plan = json(&fake(arguments, &script).run());
        let errors: Vec<_> = validator
            .iter_errors(&plan)
            .map(|error| format!("{error}: {}", error.instance_path))
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    assert!(!validator.is_valid(&serde_json::json!({ "plan_version": 1 })));
}

#[test]
fn the_table_shows_the_setting_its_memory_and_the_ladder() {
    fake(&["plan", "--target-batch", "64"], &[]).stdout_snapshot("plan_table").status(0);
}

#[test]
fn nothing_fits_is_an_answer_with_what_would_help() {
    let run = fake(&["plan", "--target-batch", "64"], &[("FAKE_FIXED", "9000")]).run();
    assert_eq!((run.status, run.stderr.as_str()), (Some(1), ""));
    assert!(run.stdout.starts_with("Not even one sample of tiny fits"), "{run:?}");
    assert_no_child_left(&run);
}

#[test]
fn a_ragged_plan_weighs_a_smaller_last_micro_batch() {
    let arguments = ["plan", "--json", "--target-batch", "64", "--ragged", "--precision", "fp32"];
    let plan = json(&fake(&arguments, &[]).run());
    let choice = &plan["recommendation"];
    // 25 samples of 100 MiB and 500 MiB are the 3000 MiB of the fake.
    assert_eq!(choice["micro_batch"], 25);
    assert_eq!((&choice["accumulation"], &choice["remainder"]), (&2.into(), &14.into()));
    assert_eq!(choice["next"]["micro_batch"], 26);
}

#[test]
fn the_target_is_shared_by_all_gpus() {
    let arguments = ["plan", "--json", "--target-batch", "96", "--world-size", "3"];
    let plan = json(&fake(&arguments, &[]).run());
    let choice = &plan["recommendation"];
    assert_eq!((&choice["micro_batch"], &choice["accumulation"]), (&32.into(), &1.into()));
    assert_eq!(choice["effective_batch"], 96);
    let notes = plan["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note["note"] == "world-size"), "{plan}");
}

#[test]
fn objectives_change_what_is_recommended() {
    let choice = |objective| {
        let arguments = ["plan", "--json", "--target-batch", "64", "--objective", objective];
        json(&fake(&arguments, &[]).run())["recommendation"].clone()
    };
    assert_eq!(choice("throughput")["checkpointing"], "none");
    assert_eq!(choice("micro-batch")["micro_batch"], 64);
    assert_eq!(choice("memory")["micro_batch"], 1);
}

#[test]
fn without_a_gpu_the_virtual_default_is_said_on_stderr() {
    fake(&["plan", "--gpu", "auto", "--target-batch", "1", "--output", "plan.json"], &[])
        .stdout_snapshot("plan_on_default_gpu")
        .stderr(
            "no NVIDIA GPU found: using the virtual rtx-3050-laptop-4gb; `--gpu NAME` chooses \
             another\n",
        )
        .status(0);
}

#[test]
fn two_plans_at_once_do_not_disturb_each_other() {
    let plans: Vec<_> = ["64", "48"]
        .map(|target| {
            std::thread::spawn(move || {
                fake(&["plan", "--json", "--target-batch", target], &[]).run()
            })
        })
        .into_iter()
        .map(|plan| json(&plan.join().unwrap())["recommendation"]["micro_batch"].clone())
        .collect();
    assert_eq!(plans, [32, 48]);
}

#[test]
fn bad_questions_are_bad_input() {
    let bad = |arguments: &[&str], expected: &str| {
        let run = fake(arguments, &[]).run();
        assert!(run.stderr.starts_with(expected), "{run:?}");
        assert_eq!((run.status, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    };
    bad(&["plan", "--target-batch", "0"], "error: `--target-batch 0`: must be at least 1\nhint: ");
    bad(
        &["plan", "--target-batch", "64", "--world-size", "3"],
        "error: a target batch of 64 does not divide by a world size of 3\nhint: 63 and 66 would\n",
    );
    bad(
        &["plan", "--target-batch", "8", "--gpu", "rtx-3051"],
        "error: no GPU named `rtx-3051`\nhint: ",
    );
    bad(
        &["plan", "--target-batch", "8", "--gpu", "GPU-0123"],
        "error: no GPU in this machine named `GPU-0123`\nhint: ",
    );
    bad(&["plan", "--target-batch", "8", "--vram", "4XB"], "error: `--vram 4XB`: ");
    bad(
        &["plan", "--target-batch", "8", "--reserve", "9GiB"],
        "error: nothing is left of 3.68 GiB usable memory: others hold 0 B, the reserve is 9.00 GiB",
    );
    bad(
        &["plan", "--target-batch", "8", "--precision", "bf16", "--gpu", "t4"],
        "error: `t4` has no bf16 in hardware",
    );
}

#[test]
fn that_nothing_fits_outlives_a_failure_to_find_what_would() {
    let script = [("FAKE_FIXED", "9000"), ("FAKE_FAULT", "interrupt-fused")];
    let run = fake(&["plan", "--json", "--target-batch", "64"], &script).run();
    let plan = json(&run);
    assert_eq!((run.status, &plan["incomplete"]), (Some(1), &true.into()), "{run:?}");
    let untried =
        plan["notes"].as_array().unwrap().iter().any(|note| note["note"] == "changes-untried");
    assert!(untried, "{plan}");
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_the_search() {
    let plan = |output: &str, complaint: &str| {
        let test = fake(&["plan", "--target-batch", "64", "--output", output], &[]);
        let run = test.file("folder/x", "").run();
        let told = (run.status, run.stdout.as_str(), run.stderr.as_str());
        assert_eq!(told, (Some(2), "", complaint));
        assert!(!run.folder.path().join("pids").exists(), "a worker was started: {run:?}");
    };
    plan(
        "no/plan.json",
        "error: cannot write `no/plan.json`: No such file or directory (os error 2)\n",
    );
    plan("folder", "error: cannot write `folder`: is a directory\n");
}

#[test]
fn a_plan_that_cannot_be_written_is_printed_all_the_same() {
    let run = fake(&["plan", "--target-batch", "64", "--output", "/dev/full"], &[]).run();
    let complaint = "error: cannot write `/dev/full`: No space left on device (os error 28)\n";
    assert_eq!((run.status, run.stderr.as_str()), (Some(3), complaint), "{run:?}");
    assert!(run.stdout.starts_with("Train tiny"), "{run:?}");
}

#[test]
fn the_plan_does_not_overwrite_the_record() {
    let arguments = ["plan", "--target-batch", "64", "--record", "x", "--output", "./x"];
    fake(&arguments, &[])
        .stderr("error: `--output ./x`: the same file as `--record`\nhint: name two files\n")
        .status(2);
}

#[test]
fn variables_of_the_allocator_are_named() {
    let variable = [("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64")];
    let plan = json(&fake(&["plan", "--json", "--target-batch", "64"], &variable).run());
    let expected = serde_json::json!({
        "note": "allocator-variable",
        "variable": "PYTORCH_CUDA_ALLOC_CONF",
        "value": "max_split_size_mb:64",
    });
    assert!(plan["notes"].as_array().unwrap().contains(&expected), "{plan}");
    let script = [variable[0], ("FAKE_FAULT", "refuse")];
    let run = fake(&["plan", "--target-batch", "64"], &script).run();
    assert_eq!(run.status, Some(3));
    assert!(run.stderr.contains("hint: `PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64`"), "{run:?}");
}

#[test]
fn bars_are_coloured_on_a_terminal_and_nowhere_else() {
    let coloured = |variables: &[(&str, &str)]| {
        let run = fake(&["plan", "--target-batch", "64"], variables).run();
        assert_eq!(run.status, Some(0), "{run:?}");
        run.stdout.contains("\u{1b}[")
    };
    assert!(!coloured(&[]), "a pipe");
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]), "a pipe that somebody reads in colour");
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}
