use crate::fake::{assert_no_child_left, fake, json};

#[test]
fn what_fits_exits_0() {
    fake(&["check", "--micro-batch", "16"], &[])
        .stdout(
            "fits: tiny, micro-batch 16, fp32, checkpointing none, on rtx-3050-laptop-4gb: \
             2.05 GiB of 3.40 GiB, 1.35 GiB left\n",
        )
        .status(0);
}

#[test]
fn what_does_not_fit_exits_1_and_says_what_would() {
    let run = fake(&["check", "--micro-batch", "512"], &[("FAKE_FIXED", "2000")]).run();
    assert_eq!((run.status, run.stderr.as_str()), (Some(1), ""));
    assert_eq!(
        run.stdout,
        "does not fit: tiny, micro-batch 512, fp32, checkpointing none, on rtx-3050-laptop-4gb: \
         out of memory within 3.40 GiB\n\
         it would, each tried by itself, with:\n  a micro-batch of 8, accumulated over 64 steps\n"
    );
    assert_no_child_left(&run);
}

#[test]
fn changes_are_named_smallest_first() {
    let run = fake(&["check", "--json", "--micro-batch", "30"], &[]).run();
    let answer = json(&run);
    assert_eq!((run.status, &answer["fits"]), (Some(1), &false.into()));
    let expected = serde_json::json!([
        { "micro-batch": 15 },
        { "precision": "bf16" },
        { "checkpointing": "full" },
        { "setting": { "precision": "bf16", "checkpointing": "full" } },
    ]);
    assert_eq!(answer["would_fit"], expected);
}

#[test]
fn a_worker_that_hangs_is_no_answer() {
    let run =
        fake(&["check", "--micro-batch", "4", "--timeout", "5"], &[("FAKE_FAULT", "hang@4")]).run();
    assert_eq!(
        run.stderr,
        "error: nothing could be measured: the worker gave no answer within 5 s at micro-batch 4, \
         fp32, checkpointing none\n"
    );
    assert_eq!((run.status, run.stdout.as_str()), (Some(3), ""));
    assert_no_child_left(&run);
}

#[test]
fn a_precision_that_the_card_lacks_is_bad_input() {
    fake(&["check", "--micro-batch", "4", "--precision", "bf16", "--gpu", "t4"], &[])
        .stderr(
            "error: `t4` has no bf16 in hardware (compute capability 7.5, needs 8.0)\n\
             hint: PyTorch would emulate it, many times slower; use fp16 or fp32\n",
        )
        .status(2);
}

#[test]
fn a_plan_is_checked_by_what_it_recommends() {
    let plan = fake(&["plan", "--json", "--target-batch", "64"], &[]).run().stdout;
    fake(&["check", "--plan", "plan.json"], &[])
        .file("plan.json", &plan)
        .stdout(
            "fits: tiny, micro-batch 32 x 2 steps, bf16, checkpointing none, on \
             rtx-3050-laptop-4gb: 2.05 GiB of 3.40 GiB, 1.35 GiB left\n",
        )
        .status(0);
}

#[test]
fn a_plan_that_is_cut_off_is_bad_input() {
    let plan = fake(&["plan", "--json", "--target-batch", "64"], &[]).run().stdout;
    let run = fake(&["check", "--plan", "plan.json"], &[]).file("plan.json", &plan[..500]).run();
    assert!(
        run.stderr.starts_with("error: `plan.json` is not a whole plan: EOF while parsing"),
        "{run:?}"
    );
    assert!(
        run.stderr.ends_with("hint: write it anew with `vramfit plan … --output`\n"),
        "{run:?}"
    );
    assert_eq!(run.status, Some(2));
}

#[test]
fn a_plan_of_another_version_is_bad_input() {
    fake(&["check", "--plan", "plan.json"], &[])
        .file("plan.json", r#"{ "plan_version": 7, "future": true }"#)
        .stderr(
            "error: `plan.json` is a plan of version 7; this vramfit reads version 1\n\
             hint: write it anew with `vramfit plan … --output`\n",
        )
        .status(2);
}

#[test]
fn a_plan_that_is_not_there_is_bad_input() {
    fake(&["check", "--plan", "plan.json"], &[])
        .stderr("error: cannot read `plan.json`: No such file or directory (os error 2)\n")
        .status(2);
}

#[test]
fn a_plan_without_a_recommendation_cannot_be_checked() {
    let run = fake(&["plan", "--json", "--target-batch", "4"], &[("FAKE_FIXED", "9000")]).run();
    assert_eq!(run.status, Some(1), "{run:?}");
    fake(&["check", "--plan", "plan.json"], &[])
        .file("plan.json", &run.stdout)
        .stderr("error: `plan.json` recommends nothing to check\n")
        .status(2);
}

#[test]
fn a_plan_is_checked_within_its_own_budget() {
    let budget = ["--vram", "2GiB", "--reserve", "300MiB", "--margin", "100MiB"];
    let arguments = [&["plan", "--json", "--target-batch", "64"][..], &budget].concat();
    let plan = fake(&arguments, &[]).run().stdout;
    let planned: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let check = |flags: &[&str]| {
        let arguments = [&["check", "--json", "--plan", "plan.json"][..], flags].concat();
        json(&fake(&arguments, &[]).file("plan.json", &plan).run())
    };
    assert_eq!(check(&[])["budget"], planned["budget"]);
    let overridden = check(&["--reserve", "0"]);
    assert_eq!(overridden["budget"]["reserve"], 0);
    assert_eq!(overridden["budget"]["total"], planned["budget"]["total"]);
    // Of another card, only what others need is known.
    let other = check(&["--gpu", "rtx-3060-12gb"]);
    assert_eq!(other["budget"]["reserve"], 300 << 20);
    assert!(other["budget"]["total"].as_u64() > Some(11 << 30), "{other}");
}

#[test]
fn a_plan_in_a_precision_that_the_card_lacks_is_bad_input() {
    let plan = fake(&["plan", "--json", "--target-batch", "64", "--precision", "bf16"], &[]).run();
    fake(&["check", "--plan", "plan.json", "--gpu", "t4"], &[])
        .file("plan.json", &plan.stdout)
        .stderr(
            "error: `t4` has no bf16 in hardware (compute capability 7.5, needs 8.0)\n\
             hint: PyTorch would emulate it, many times slower; use fp16 or fp32\n",
        )
        .status(2);
}

#[test]
fn a_plan_that_contradicts_itself_is_bad_input() {
    let plan = fake(&["plan", "--json", "--target-batch", "64"], &[]).run().stdout;
    for (place, value) in [
        ("/goal/world_size", 0),
        ("/goal/world_size", 128),
        ("/goal/target_batch", 0),
        ("/goal/target_batch", 4_294_967_295_u32),
        ("/workload/sequence", 8),
        ("/workload/subject/model/parameters", 0),
        ("/budget/usable", u32::MAX),
        ("/recommendation/micro_batch", 0),
        ("/recommendation/micro_batch", 3),
        ("/recommendation/micro_batch", 128),
        ("/recommendation/accumulation", 9),
        ("/recommendation/evidence", 999),
    ] {
        let mut edited: serde_json::Value = serde_json::from_str(&plan).unwrap();
        *edited.pointer_mut(place).unwrap() = match place {
            "/budget/usable" => (1_u64 << 40).into(),
            _ => value.into(),
        };
        let run = fake(&["check", "--plan", "plan.json"], &[])
            .file("plan.json", &edited.to_string())
            .run();
        assert_eq!((run.status, run.stdout.as_str()), (Some(2), ""), "{place} {value}: {run:?}");
        let start = "error: `plan.json` is not a whole plan: ";
        assert!(run.stderr.starts_with(start), "{place} {value}: {run:?}");
        assert_eq!(run.stderr.lines().count(), 2, "{place} {value}: {run:?}");
    }
}

#[test]
fn what_was_answered_outlives_a_failure_to_find_what_would_fit() {
    let script = [("FAKE_FIXED", "2000"), ("FAKE_FAULT", "interrupt@1")];
    let run = fake(&["check", "--micro-batch", "512", "--record", "all.jsonl"], &script).run();
    assert_eq!((run.status, run.stderr.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.stdout.starts_with("does not fit: tiny"), "{run:?}");
    let end = "which changes would help was not tried to the end: interrupted\n";
    assert!(run.stdout.ends_with(end), "{run:?}");
}

#[test]
fn all_points_of_a_check_are_recorded() {
    let arguments = ["check", "--micro-batch", "512", "--record", "all.jsonl"];
    let run = fake(&arguments, &[("FAKE_FIXED", "2000")]).run();
    let recorded = std::fs::read_to_string(run.folder.path().join("all.jsonl")).unwrap();
    let sizes: Vec<u64> = recorded
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|known| known["point"]["micro_batch"].as_u64().unwrap())
        .collect();
    assert!(sizes.starts_with(&[512, 1, 2]) && sizes.contains(&8), "{sizes:?}");
}
