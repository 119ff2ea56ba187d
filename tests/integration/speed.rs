use serde_json::Value;

use crate::fake::{fake, json};

/// The fake worker answers step times as a virtual GPU's cost model has them.
const TIMED: (&str, &str) = ("FAKE_TIMES", "even");

fn plan(arguments: &[&str], script: &[(&str, &str)]) -> Value {
    let all = [&["plan", "--json", "--target-batch", "64"], arguments].concat();
    let timed = script.iter().any(|(name, _)| *name == TIMED.0);
    let script = if timed { script.to_vec() } else { [script, &[TIMED]].concat() };
    json(&fake(&all, &script).run())
}

fn notes(plan: &Value) -> Vec<&str> {
    plan["notes"].as_array().unwrap().iter().map(|it| it["note"].as_str().unwrap()).collect()
}

fn figure(value: &Value) -> [f64; 3] {
    ["low", "value", "high"].map(|name| value[name].as_f64().unwrap())
}

#[test]
fn modelled_speeds_are_ranges_with_their_split() {
    let plan = plan(&["--gpu", "rtx-3090"], &[]);
    let speed = &plan["recommendation"]["speed"];
    assert_eq!(speed["basis"], "modelled");
    let [low, step, high] = figure(&speed["step_seconds"]);
    assert!(low < step && step < high, "{speed}");
    let [_, samples, _] = figure(&speed["samples_per_second"]);
    assert!((samples * step - 64.0).abs() < 1e-6, "{speed}");
    let parts = ["compute", "memory", "launch", "transfer", "host"];
    let sum: f64 = parts.iter().map(|part| speed["split"][part].as_f64().unwrap()).sum();
    assert!((sum - step).abs() < 1e-9, "{speed}");
    assert_eq!(plan["grounds"]["step_time"]["level"], "estimated");
}

#[test]
fn a_laptop_may_be_slower_by_its_clock_and_the_plan_says_so() {
    let spread = |gpu| {
        let plan = plan(&["--gpu", gpu, "--precision", "fp32"], &[]);
        let [low, _, high] = figure(&plan["recommendation"]["speed"]["step_seconds"]);
        (high / low, notes(&plan).contains(&"laptop-power"))
    };
    let (desktop, noted_of_desktop) = spread("rtx-3060-12gb");
    let (laptop, noted_of_laptop) = spread("rtx-3060-laptop");
    assert!(laptop > desktop, "{laptop} {desktop}");
    assert_eq!((noted_of_desktop, noted_of_laptop), (false, true));
}

#[test]
fn the_fastest_setting_is_recommended_not_the_most_careful() {
    // In fp32 the whole target fits, in one step.
    let plan = plan(&[], &[("FAKE_SAMPLE", "40"), ("FAKE_FIXED", "100")]);
    assert_eq!(plan["recommendation"]["precision"], "bf16");
    let untimed = [("FAKE_SAMPLE", "40"), ("FAKE_FIXED", "100"), ("FAKE_TIMES", "")];
    let plan = self::plan(&[], &untimed);
    assert_eq!(plan["recommendation"]["precision"], "fp32");
    assert!(plan["recommendation"]["speed"].is_null());
    assert!(notes(&plan).contains(&"ranked-without-times"), "{plan}");
    assert_eq!(plan["pareto"], serde_json::json!([]));
}

#[test]
fn a_largest_micro_batch_that_is_slow_is_not_recommended_but_shown() {
    let plan = plan(&["--precision", "bf16", "--checkpoint", "none"], &[("FAKE_TIMES", "32")]);
    assert_eq!(plan["recommendation"]["micro_batch"], 16);
    let others: Vec<_> = plan["alternatives"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["micro_batch"].as_u64().unwrap(), it["next"]["micro_batch"].as_u64()))
        .collect();
    assert_eq!(others, [(32, Some(64))]);
}

#[test]
fn the_front_leads_from_the_least_memory_to_the_most_speed() {
    let plan = plan(&[], &[]);
    let front: Vec<_> = plan["pareto"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let [_, rate, _] = figure(&it["speed"]["samples_per_second"]);
            (it["memory"]["device_peak"].as_u64().unwrap(), rate)
        })
        .collect();
    assert!(front.len() > 1, "{front:?}");
    assert!(front.windows(2).all(|it| it[0].0 < it[1].0 && it[0].1 < it[1].1), "{front:?}");
    let [_, best, _] = figure(&plan["recommendation"]["speed"]["samples_per_second"]);
    assert!(front.last().unwrap().1 >= best * 0.95, "{front:?} {best}");
}

#[test]
fn training_on_so_many_samples_takes_a_range_of_time() {
    let plan = plan(&["--samples", "1_000_000"], &[]);
    let training = &plan["training"];
    assert_eq!(
        (&training["samples"], &training["optimizer_steps"]),
        (&1_000_000.into(), &15_625.into())
    );
    let [low, _, high] = figure(&training["seconds"]);
    let [fastest, _, slowest] = figure(&plan["recommendation"]["speed"]["step_seconds"]);
    assert!((low - 15_625.0 * fastest).abs() < 1e-6 && (high - 15_625.0 * slowest).abs() < 1e-6);
    assert!(self::plan(&[], &[])["training"].is_null());
}

#[test]
fn what_is_no_number_of_samples_is_refused() {
    for text in ["0", "-1", "1.5", "many", "1e30", "NaN"] {
        let samples = format!("--samples={text}");
        let run = fake(&["plan", "--target-batch", "64", &samples], &[]).run();
        let expected = format!("error: `--samples {text}`: not a whole number of samples\nhint: ");
        assert!(run.status == Some(2) && run.stderr.starts_with(&expected), "{run:?}");
    }
    assert_eq!(plan(&["--samples", "1.3M"], &[])["training"]["samples"], 1_300_000);
}

#[test]
fn the_table_shows_speed_its_split_and_its_price() {
    let arguments = ["plan", "--target-batch", "64", "--samples", "1281167", "--gpu", "rtx-3090"];
    let script = [("FAKE_SAMPLE", "80"), TIMED];
    fake(&arguments, &script).stdout_snapshot("plan_with_speed").status(0);
}

#[test]
fn without_times_the_table_has_no_word_of_speed() {
    let run = fake(&["plan", "--target-batch", "64"], &[]).run();
    for word in ["samples/s", "Speed", "speed", "modelled"] {
        assert!(!run.stdout.contains(word), "{word}: {run:?}");
    }
}

#[test]
fn bf16_is_left_out_where_it_would_be_emulated_and_that_is_said() {
    let plan = plan(&["--gpu", "t4"], &[]);
    let note =
        plan["notes"].as_array().unwrap().iter().find(|it| it["note"] == "precisions-left-out");
    let expected = serde_json::json!({
        "note": "precisions-left-out",
        "precisions": ["tf32", "bf16"],
        "compute_capability": "7.5",
    });
    assert_eq!(note, Some(&expected));
    let tried = plan["measurements"].as_array().unwrap().iter();
    let mut precisions = tried.map(|it| &it["point"]["setting"]["precision"]);
    assert!(!precisions.any(|it| it == "bf16"));
    // Who names precisions is refused, or knows what was left out.
    let asked = self::plan(&["--gpu", "t4", "--precision", "fp16"], &[]);
    assert!(!notes(&asked).contains(&"precisions-left-out"));
}

#[test]
fn a_card_without_tensor_cores_gets_a_word_on_mixed_precision() {
    let note = |gpu| {
        let plan = plan(&["--gpu", gpu], &[]);
        let found =
            plan["notes"].as_array().unwrap().iter().find(|it| it["note"] == "no-tensor-cores");
        found.map(|note| note["gtx_16"] == true)
    };
    assert_eq!(note("gtx-1650-laptop"), Some(true));
    assert_eq!(note("gtx-1080"), Some(false));
    assert_eq!(note("t4"), None);
}

#[test]
fn a_check_says_how_fast_it_is() {
    let arguments = ["check", "--micro-batch", "4", "--gpu", "rtx-3090"];
    let run = fake(&arguments, &[TIMED]).run();
    let speed = run.stdout.lines().nth(1).unwrap_or_default();
    assert!(speed.starts_with("modelled: ") && speed.ends_with(" samples/s"), "{run:?}");
    let answer = json(&fake(&[&arguments[..], &["--json"]].concat(), &[TIMED]).run());
    assert_eq!(answer["speed"]["basis"], "modelled");
    let untimed = json(&fake(&[&arguments[..], &["--json"]].concat(), &[]).run());
    assert!(untimed["speed"].is_null() && untimed["fits"] == true, "{untimed}");
}
