use serde_json::Value;

use crate::fake::{assert_no_child_left, fake, json};
use crate::harness::{Run, Test};

const GPU: &str = "rtx-3050-laptop-4gb";

fn arguments(lengths: &str) -> [&str; 7] {
    ["plan", "--json", "--target-batch", "64", "--model", "talker", lengths]
}

fn run(lengths: &str, script: &[(&str, &str)]) -> (Run, Value) {
    let run = fake(&arguments(&format!("--seq={lengths}")), script).run();
    assert_no_child_left(&run);
    let plan = json(&run);
    (run, plan)
}

/// Tokens, what came of them and the micro-batch.
fn rows(plan: &Value) -> Vec<(u64, String, Option<u64>)> {
    let rows = plan["contexts"]["lengths"].as_array().unwrap().iter();
    rows.map(|row| {
        let answer = row["answer"].as_str().map(str::to_owned);
        let answer = answer.unwrap_or_else(|| row["answer"].to_string());
        (row["tokens"].as_u64().unwrap(), answer, row["choice"]["micro_batch"].as_u64())
    })
    .collect()
}

#[test]
fn the_table_shows_what_each_length_allows_and_the_longest_that_fits() {
    let arguments = ["plan", "--target-batch", "64", "--model", "talker", "--seq", "512..8192"];
    fake(&arguments, &[("FAKE_SAMPLE", "800")]).stdout_snapshot("plan_contexts").status(0);
}

#[test]
fn the_longest_length_that_fits_is_recommended_and_each_is_proven_by_its_own_measurements() {
    // bf16 takes 400 MiB a sample of 1024 tokens, of 2500 MiB: 6 samples, 3 of 2048, 1 of 4096.
    let (run, plan) = run("1024,2048,4096,512,2048", &[("FAKE_SAMPLE", "800")]);
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""));
    let fits = |tokens, size| (tokens, "fits".to_owned(), Some(size));
    assert_eq!(rows(&plan), [fits(512, 8), fits(1024, 4), fits(2048, 2), fits(4096, 1)]);
    assert_eq!(plan["workload"]["sequence"], 4096);
    let lengths = plan["contexts"]["lengths"].as_array().unwrap();
    assert_eq!(plan["recommendation"], lengths[3]["choice"]);
    let measured = |evidence: &Value| {
        plan["measurements"][usize::try_from(evidence.as_u64().unwrap()).unwrap()].clone()
    };
    for row in lengths {
        let choice = &row["choice"];
        let (fits, next) = (measured(&choice["evidence"]), measured(&choice["next"]["evidence"]));
        assert_eq!([&fits["sequence"], &next["sequence"]], [&row["tokens"]; 2], "{row}");
        assert_eq!(fits["point"]["micro_batch"], choice["micro_batch"]);
        assert_eq!(fits["outcome"]["ran"]["memory"], choice["memory"]);
        assert_eq!(next["point"]["micro_batch"], choice["next"]["micro_batch"]);
        assert!(next["outcome"]["out-of-memory"].is_object(), "{next}");
    }
}

#[test]
fn the_longest_context_is_run_and_the_next_does_not_fit() {
    // A sample of 1024 tokens takes 4000 MiB in bf16, 1000 MiB checkpointed, of 2500 MiB.
    let (_, plan) = run("128..512,8192", &[("FAKE_SAMPLE", "8000")]);
    let contexts = &plan["contexts"];
    assert_eq!(contexts["limit"], serde_json::json!({ "tokens": 4096, "of": "positions" }));
    let found: Vec<_> = contexts["longest"]
        .as_array()
        .unwrap()
        .iter()
        .map(|longest| {
            let next = &longest["next"];
            for (length, outcome) in [(longest, "ran"), (next, "out-of-memory")] {
                let index = usize::try_from(length["evidence"].as_u64().unwrap()).unwrap();
                let measured = &plan["measurements"][index];
                assert_eq!(measured["sequence"], length["tokens"], "{measured}");
                assert_eq!(measured["point"]["micro_batch"], 1, "{measured}");
                assert!(measured["outcome"][outcome].is_object(), "{measured}");
            }
            let tokens = |of: &Value| of["tokens"].as_u64().unwrap();
            (longest["checkpointing"].as_str().unwrap(), tokens(longest), tokens(next))
        })
        .collect();
    assert_eq!(found, [("none", 640, 704), ("full", 2560, 2624)], "{contexts}");
}

#[test]
fn lengths_that_do_not_fit_or_that_the_model_has_no_positions_for_are_rows() {
    let script = [("FAKE_SAMPLE", "8000")];
    let (run, plan) = run("512..8192", &[&script[..], &[("FAKE_FIXED", "1000")]].concat());
    assert_eq!(run.status, Some(0));
    let answers: Vec<_> = rows(&plan).into_iter().map(|(_, answer, _)| answer).collect();
    assert_eq!(answers, ["fits", "fits", "fits", "does-not-fit", "beyond-positions"]);
    assert_eq!(plan["workload"]["sequence"], 2048);
    assert_eq!(plan["recommendation"]["checkpointing"], "full");
}

#[test]
fn where_no_length_fits_the_shortest_gets_the_remedies_and_shorter_ones_are_looked_at() {
    // Checkpointed bf16: 2000 MiB for 1024 tokens, 1280 fill what there is.
    let (run, plan) = run("2048,4096", &[("FAKE_SAMPLE", "16000")]);
    assert_eq!((run.status, &plan["recommendation"]), (Some(1), &Value::Null));
    assert!(rows(&plan).iter().all(|(_, answer, _)| answer == "does-not-fit"), "{plan}");
    assert_eq!(plan["workload"]["sequence"], 2048);
    assert!(
        plan["would_fit"].as_array().unwrap().contains(&serde_json::json!({ "sequence": 1024 }))
    );
    assert_eq!(plan["contexts"]["longest"][0]["tokens"], 1280, "{}", plan["contexts"]);
}

#[test]
fn a_length_at_which_nothing_can_be_measured_is_passed_over() {
    let script = [("FAKE_FAULT", "exit@any"), ("FAKE_FAULT_TOKENS", "2048")];
    let (run, plan) = run("1024,2048", &script);
    assert_eq!((run.status, &plan["workload"]["sequence"]), (Some(0), &1024.into()));
    let (tokens, answer, _) = rows(&plan).pop().unwrap();
    assert!(tokens == 2048 && answer.contains("status 7 at micro-batch"), "{answer}");
    let all = fake(&arguments("--seq=1024,2048"), &script[..1]).run();
    assert_eq!((all.status, all.stdout.as_str()), (Some(3), ""), "{all:?}");
    assert!(all.stderr.starts_with("error: nothing could be measured: "), "{all:?}");
}

#[test]
fn ctrl_c_keeps_the_lengths_that_are_known() {
    let script = [("FAKE_FAULT", "interrupt@2"), ("FAKE_FAULT_TOKENS", "1024")];
    let (run, plan) = run("512..2048", &script);
    assert_eq!((run.status, &plan["incomplete"]), (Some(0), &true.into()), "{run:?}");
    assert_eq!(plan["workload"]["sequence"], 2048);
    let rows = rows(&plan);
    assert_eq!(rows[0], (512, "not-reached".to_owned(), None));
    assert_eq!((rows[1].0, rows[1].2), (1024, Some(1)), "{rows:?}");
    assert_eq!(rows[2].1, "fits");
    assert_eq!(plan["contexts"]["longest"], serde_json::json!([]));
}

#[test]
fn one_length_is_no_comparison() {
    let (_, plan) = run("512..512", &[]);
    assert_eq!((&plan["contexts"], &plan["workload"]["sequence"]), (&Value::Null, &512.into()));
}

#[test]
fn a_plan_of_several_lengths_is_checked_and_exported_at_the_recommended_one() {
    let (run, _) = run("512..2048", &[]);
    let check = fake(&["check", "--plan", "plan.json"], &[]).file("plan.json", &run.stdout).run();
    assert_eq!(check.status, Some(0), "{check:?}");
    assert!(check.stdout.starts_with("fits: talker at 2048 tokens"), "{check:?}");
    let export = Test::new(&["export", "plan.json", "--to", "pytorch"]);
    let module = export.file("plan.json", &run.stdout).output();
    assert!(module.contains("\nSEQUENCE = 2048 "), "{module}");
}

#[test]
fn a_plan_whose_lengths_contradict_it_is_bad_input() {
    let (run, _) = run("512..2048", &[]);
    for (place, value) in [
        ("/contexts/lengths/0/choice/micro_batch", 3),
        ("/contexts/lengths/0/choice/evidence", 999),
        ("/contexts/longest/0/evidence", 999),
    ] {
        let mut edited: Value = serde_json::from_str(&run.stdout).unwrap();
        *edited.pointer_mut(place).unwrap() = value.into();
        let check = fake(&["check", "--plan", "plan.json"], &[])
            .file("plan.json", &edited.to_string())
            .run();
        assert_eq!(check.status, Some(2), "{place}: {check:?}");
        assert!(check.stderr.contains("is not a whole plan"), "{place}: {check:?}");
    }
}

#[test]
fn measurements_of_all_lengths_are_recorded_with_their_length() {
    let arguments = [&arguments("--seq=512..4096")[..], &["--record", "points.jsonl"]].concat();
    let run = fake(&arguments, &[("FAKE_SAMPLE", "4000")]).run();
    let recorded = std::fs::read_to_string(run.folder.path().join("points.jsonl")).unwrap();
    let mut recorded: Vec<String> = recorded.lines().map(str::to_owned).collect();
    let planned = json(&run)["measurements"].clone();
    let mut planned: Vec<_> = planned.as_array().unwrap().iter().map(Value::to_string).collect();
    let recorded: &mut Vec<String> = &mut recorded;
    for line in recorded.iter_mut() {
        *line = serde_json::from_str::<Value>(line).unwrap().to_string();
    }
    recorded.sort();
    planned.sort();
    assert_eq!(*recorded, planned);
}

#[test]
fn on_a_real_card_each_length_and_the_longest_are_tried_on_the_card_itself() {
    let plan = |sample: &str| {
        let vramfit = env!("CARGO_BIN_EXE_vramfit");
        let arguments = "plan --json --target-batch 64 --model talker --seq 512..2048";
        let inner = format!("FAKE_CARD=$VRAMFIT_VGPU exec {vramfit} {arguments}");
        let script = [("FAKE_SAMPLE", "3000"), ("FAKE_CARD_SAMPLE", sample)];
        json(&fake(&["run", "--gpu", GPU, "--", "sh", "-c", &inner], &script).run())
    };
    // What the card was asked for, its twin was asked for before.
    let on_card = |plan: &Value, evidence: &Value| {
        let index = usize::try_from(evidence.as_u64().unwrap()).unwrap();
        let of = |known: &Value| (known["sequence"].clone(), known["point"].clone());
        let measurements = plan["measurements"].as_array().unwrap();
        measurements[..index].iter().any(|known| of(known) == of(&measurements[index]))
    };
    // A sample of 1024 tokens takes half of it in bf16, and a quarter of that checkpointed. On the card
    // that needs more than its twin 4096 tokens do not fit, of which the twin said that they do.
    let found = [("3000", [2, 1, 2], 4096, None), ("5200", [1, 2, 1], 2048, Some(4096))];
    for (sample, largest, tokens, next) in found {
        let plan = plan(sample);
        let rows = plan["contexts"]["lengths"].as_array().unwrap();
        let sizes: Vec<_> =
            rows.iter().map(|row| row["choice"]["micro_batch"].as_u64().unwrap()).collect();
        assert_eq!(sizes, largest, "{sample}");
        assert!(rows.iter().all(|row| on_card(&plan, &row["choice"]["evidence"])), "{sample}");
        let longest = &plan["contexts"]["longest"][0];
        assert_eq!(
            (&longest["tokens"], longest["next"]["tokens"].as_u64()),
            (&tokens.into(), next)
        );
        assert!(on_card(&plan, &longest["evidence"]), "{longest}");
        assert!(next.is_none() || on_card(&plan, &longest["next"]["evidence"]), "{longest}");
    }
}
