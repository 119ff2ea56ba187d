//! Checkpointing in part: the blocks that a micro-batch takes to fit.

use serde_json::{Value, json};

use crate::fake::{fake, json};

/// 500 MiB and 100 MiB a sample, three quarters of it in ten blocks, on a budget of 3476 MiB: 29 samples
/// fit, and checkpointed 119.
const BLOCKS: [(&str, &str); 2] = [("FAKE_BLOCKS", "10"), ("FAKE_CAPACITY", "20000")];
const PLAN: [&str; 7] =
    ["plan", "--json", "--ragged", "--target-batch", "64", "--precision", "fp32"];

fn choices(plan: &Value) -> Vec<(u64, Value)> {
    let others = plan["alternatives"].as_array().unwrap();
    let choices = std::iter::once(&plan["recommendation"]).chain(others);
    let pair = |it: &Value| (it["micro_batch"].as_u64().unwrap(), it["checkpointing"].clone());
    choices.map(pair).collect()
}

#[test]
fn a_plan_has_the_blocks_that_the_next_micro_batch_and_the_whole_target_take() {
    let plan = json(&fake(&PLAN, &BLOCKS).run());
    let found = choices(&plan);
    // A block saves 7.5 MiB a sample: at 30 samples one makes up for 24 MiB that are too much, at 64
    // eight for 3424 MiB.
    let expected = [
        (29, json!("none")),
        (30, json!({ "blocks": [0] })),
        (64, json!({ "blocks": [0, 1, 2, 3, 4, 5, 6, 7] })),
        (64, json!("full")),
    ];
    for choice in &expected {
        assert!(found.contains(choice), "{choice:?} is not in {found:?}");
    }
    assert_eq!(found.len(), expected.len());
    let ladder: Vec<_> = plan["ladder"].as_array().unwrap().iter().map(|it| &it["step"]).collect();
    assert_eq!(ladder, ["plain", "accumulation", "selective-checkpointing", "checkpointing"]);
    let surveys = plan["surveys"].as_array().unwrap();
    let seen: Vec<_> = surveys
        .iter()
        .map(|it| (it["micro_batch"].as_u64().unwrap(), it["blocks"].as_array().unwrap().len()))
        .collect();
    assert_eq!(seen, [(30, 10), (64, 10)]);
    // What is recommended was run, and so is what is not: one try each, and one for the ladder.
    let tries = plan["measurements"].as_array().unwrap().iter();
    let in_part = tries.filter(|it| it["point"]["setting"]["checkpointing"]["blocks"].is_array());
    assert_eq!(in_part.count(), 3);
}

#[test]
fn the_table_says_how_many_of_how_many_blocks() {
    let arguments: Vec<_> = PLAN.into_iter().filter(|it| *it != "--json").collect();
    let table = fake(&arguments, &BLOCKS).run().stdout;
    for text in ["fp32       1 of 10 blocks", "fp32       8 of 10 blocks", "+ selective "] {
        assert!(table.contains(text), "{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn a_choice_that_runs_out_of_memory_is_followed_by_one_of_more_blocks() {
    // The card has less than the budget: what seems to fit at 30 samples does not.
    let script = [BLOCKS[0], ("FAKE_CAPACITY", "3100")];
    let plan = json(&fake(&PLAN, &script).run());
    let found = choices(&plan);
    let tried = |blocks: u32| {
        let chosen: Vec<u32> = (0..blocks).collect();
        json!({ "blocks": chosen })
    };
    // 64 samples on eight blocks are 3060 MiB; 27 on one 2997 MiB.
    assert!(found.contains(&(27, tried(1))), "{found:?}");
    assert!(found.contains(&(64, tried(8))), "{found:?}");
    let plan = json(&fake(&PLAN, &[BLOCKS[0], ("FAKE_CAPACITY", "3000")]).run());
    let outcomes: Vec<_> = plan["measurements"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["point"]["setting"]["checkpointing"] == tried(8))
        .map(|it| it["outcome"]["out-of-memory"].is_object())
        .collect();
    assert_eq!(outcomes, [true]);
    assert!(!choices(&plan).contains(&(64, tried(8))));
}

#[test]
fn where_no_blocks_are_to_be_seen_none_are_chosen() {
    let plan = json(&fake(&PLAN, &[]).run());
    assert_eq!(choices(&plan), [(25, json!("none")), (64, json!("full"))]);
    assert_eq!(plan["surveys"], json!([]));
}

#[test]
fn where_blocks_cannot_be_chosen_the_plan_goes_without_and_says_why() {
    let script = [BLOCKS[0], BLOCKS[1], ("FAKE_NO_SURVEY", "its blocks share their weights")];
    let plan = json(&fake(&PLAN, &script).run());
    assert_eq!(choices(&plan), [(29, json!("none")), (64, json!("full"))]);
    assert_eq!(plan["surveys"], json!([]));
    let mut notes = plan["notes"].as_array().unwrap().iter();
    let note = notes.find(|it| it["note"] == "blocks-not-chosen");
    assert_eq!(note.unwrap()["reason"], "its blocks share their weights", "{plan}");
}

#[test]
fn what_is_not_asked_for_is_not_tried() {
    let arguments = [&PLAN[..], &["--checkpoint", "none,full"]].concat();
    let plan = json(&fake(&arguments, &BLOCKS).run());
    assert_eq!(choices(&plan), [(29, json!("none")), (64, json!("full"))]);
}

#[test]
fn blocks_that_are_named_are_searched_like_any_setting() {
    let arguments = [&PLAN[..], &["--checkpoint", "blocks-0-3+7"]].concat();
    let plan = json(&fake(&arguments, &BLOCKS).run());
    // 100 MiB less five times 7.5 a sample.
    assert_eq!(choices(&plan), [(47, json!({ "blocks": [0, 1, 2, 3, 7] }))]);
}

#[test]
fn a_check_finds_the_blocks_that_a_micro_batch_takes() {
    let check = |micro_batch: &str| {
        let arguments =
            ["check", "--json", "--micro-batch", micro_batch, "--checkpoint", "selective"];
        let run = fake(&arguments, &BLOCKS).run();
        let answer = json(&run);
        (run.status, answer["measurement"]["point"]["setting"]["checkpointing"].clone())
    };
    assert_eq!(check("29"), (Some(0), json!("none")));
    assert_eq!(check("30"), (Some(0), json!({ "blocks": [0] })));
    assert_eq!(check("119"), (Some(0), json!("full")));
    assert_eq!(check("120"), (Some(1), json!("full")));
}

#[test]
fn a_command_checkpoints_its_blocks_by_itself() {
    let arguments = ["plan", "--target-batch", "8", "--checkpoint", "selective", "--gpu", "t4"];
    let command = ["--", "python", "{micro_batch}", "{checkpoint}"];
    crate::harness::Test::new(&[&arguments[..], &command].concat())
        .stderr(
            "error: `--checkpoint selective`: the command has no placeholder that sets it\n\
             hint: write `{checkpoint}` where the command takes it; it is none or full\n",
        )
        .status(2);
}
