use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use vramfit::comparison::Comparison;

use crate::fake::{assert_no_child_left, fake};
use crate::harness::{Run, Test};

/// The program inside of `vramfit run`, so that the virtual card of the outer one is the machine's to
/// the inner one.
fn rehearsal(arguments: &str, script: &[(&str, &str)]) -> Test {
    let vramfit = env!("CARGO_BIN_EXE_vramfit");
    let inner =
        format!("echo $$ > inner; FAKE_CARD=$VRAMFIT_VGPU exec {vramfit} gpu-check {arguments}");
    fake(&["run", "--", "sh", "-c", &inner], script)
}

fn document(run: &Run) -> Value {
    let text = fs::read_to_string(run.folder.path().join("gpu-check.json"))
        .unwrap_or_else(|error| panic!("{error}: {run:?}"));
    // What is written can also be read again.
    serde_json::from_str::<Comparison>(&text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn results(document: &Value) -> &[Value] {
    document["results"].as_array().unwrap()
}

#[test]
fn without_a_real_gpu_it_refuses_and_says_how_to_rehearse() {
    if Path::new("/dev/nvidiactl").exists() {
        return;
    }
    for arguments in [&["gpu-check"][..], &["gpu-check", "--gpu", "rtx-3050-laptop-4gb"]] {
        Test::new(arguments)
            .stderr(
                "error: there is no NVIDIA GPU in this machine\n\
                 hint: `vramfit run --gpu NAME -- vramfit gpu-check` rehearses it on a virtual one\n",
            )
            .status(3);
    }
}

#[test]
fn a_virtual_card_is_called_one_on_both_sides() {
    let run = rehearsal("--points quick", &[]).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stdout.starts_with("REHEARSAL on NVIDIA GeForce RTX 3050"), "{run:?}");
    assert!(run.stderr.starts_with("rehearsal: "), "{run:?}");
    let document = document(&run);
    assert_eq!((&document["complete"], &document["rehearsal"]), (&true.into(), &true.into()));
    for side in ["card", "twin"] {
        assert_eq!(document[side]["evidence"], "virtual");
        for result in results(&document).iter().filter(|result| result[side].is_object()) {
            assert_eq!(result[side]["evidence"]["kind"], "virtual", "{result}");
        }
    }
    assert_eq!(document["twin"]["of_profile"], "rtx-3050-laptop-4gb");
    assert_no_child_left(&run);
}

#[test]
fn json_is_what_the_file_holds() {
    let run = rehearsal("--points quick --json", &[]).run();
    assert_eq!(serde_json::from_str::<Value>(&run.stdout).unwrap(), document(&run));
}

#[test]
fn a_card_that_needs_more_than_its_twin_is_told_by_sign_and_point() {
    let run = rehearsal("--points quick", &[("FAKE_CARD_SAMPLE", "110")]).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let document = document(&run);
    let result = results(&document)
        .iter()
        .find(|it| it["point"]["micro_batch"] == 8 && it["errors"].is_object())
        .unwrap();
    // 500 MiB and 8 samples of 100 MiB on the twin, of 110 MiB on the card.
    let expected = serde_json::json!({
        "bytes": -80 * (1 << 20),
        "percent": -80.0 / 1380.0 * 100.0,
    });
    assert_eq!(result["errors"]["allocated"], expected);
    assert_eq!(result["errors"]["allocated_exact"], false);
    assert!(document["summary"]["allocated"]["worst_percent"].as_f64().unwrap() < 0.0);
}

#[test]
fn step_times_are_compared_by_family() {
    let run = rehearsal("--points quick", &[("FAKE_TIMES", "even"), ("FAKE_CARD_TIME", "2")]).run();
    let document = document(&run);
    let step = document["summary"]["step"].as_array().unwrap();
    let families: Vec<_> = step.iter().map(|it| it["family"].as_str().unwrap()).collect();
    assert_eq!(families, ["decoder", "pinn", "resnet", "all"]);
    // The card takes twice as long as its twin says.
    assert!(step.iter().all(|it| it["median_percent"] == 50.0), "{step:?}");
    let order = &document["summary"]["order"];
    assert!(order["pairs"].as_u64() > Some(0) && order["pairs"] == order["right"], "{order}");
    assert!(run.stdout.contains("The errors of the twin's modelled step times\n"), "{run:?}");
    assert!(run.stderr.contains(", step -50 %\n"), "{run:?}");
}

#[test]
fn points_that_do_not_fit_the_card_are_skipped_and_said() {
    let run = rehearsal("--points quick", &[]).run();
    let document = document(&run);
    // 64 samples of 100 MiB do not fit the fake's 3000 MiB.
    let first = &results(&document)[0];
    assert_eq!(first["skipped"]["reason"], "does-not-fit", "{first}");
    assert!(first["card"].is_null());
    assert!(run.stderr.contains("mlp fp32 64: skipped, does not fit\n"), "{run:?}");
    let skipped = document["summary"]["skipped"].as_u64().unwrap();
    assert!(run.stdout.contains(&format!("; {skipped} skipped")), "{run:?}");
}

#[test]
fn precisions_that_a_card_has_not_are_not_tried() {
    let vramfit = env!("CARGO_BIN_EXE_vramfit");
    let arguments = ["run", "--gpu", "t4", "--", vramfit, "gpu-check", "--points", "quick"];
    let run = fake(&arguments, &[]).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let document = document(&run);
    let of = |result: &&Value| result["point"]["setting"]["precision"] == "bf16";
    let reasons: Vec<_> =
        results(&document).iter().filter(of).map(|it| &it["skipped"]["reason"]).collect();
    assert!(!reasons.is_empty() && reasons.iter().all(|reason| *reason == "not-in-hardware"));
}

#[test]
fn what_was_stopped_goes_on_where_it_was() {
    let run = rehearsal("--points quick", &[("FAKE_FAULT", "interrupt@8")]).run();
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.contains("interrupted; the same command goes on from here\n"), "{run:?}");
    assert!(run.stdout.contains("Stopped after 3 of "), "{run:?}");
    goes_on(&document(&run));
    assert_no_child_left(&run);
}

#[test]
fn a_kill_in_the_midst_loses_nothing() {
    let test = rehearsal("--points quick", &[("FAKE_FAULT", "hang@8")]);
    let folder = test.path().to_path_buf();
    let killer = thread::spawn(move || {
        let deadline = Instant::now() + Duration::from_secs(30);
        let three = |text: String| {
            let document: Value = serde_json::from_str(&text).unwrap();
            results(&document).len() == 3
        };
        while !fs::read_to_string(folder.join("gpu-check.json")).is_ok_and(three) {
            assert!(Instant::now() < deadline, "three points take no half minute");
            thread::sleep(Duration::from_millis(5));
        }
        kill(&fs::read_to_string(folder.join("inner")).unwrap());
    });
    let run = test.run();
    killer.join().unwrap();
    assert_eq!(run.status, Some(128 + 9), "{run:?}");
    // A fake worker that hangs does not ask the kernel to be ended, as the real one does.
    fs::read_to_string(run.folder.path().join("pids")).unwrap().lines().for_each(kill);
    goes_on(&document(&run));
}

fn kill(pid: &str) {
    // It may have ended by itself.
    let _ = Command::new("kill").args(["-9", pid.trim()]).stderr(Stdio::null()).status();
}

/// Of a document with three results: the next run adds the others.
#[track_caller]
fn goes_on(begun: &Value) {
    assert_eq!((&begun["complete"], results(begun).len()), (&false.into(), 3), "{begun}");
    let again = rehearsal("--points quick", &[]).file("gpu-check.json", &begun.to_string()).run();
    assert_eq!(again.status, Some(0), "{again:?}");
    let ended = document(&again);
    assert_eq!(ended["complete"], true);
    // Times included: they were not measured again.
    assert_eq!(results(&ended)[..3], *results(begun));
}

#[test]
fn a_point_that_fails_is_kept_as_such_and_the_rest_goes_on() {
    let run = rehearsal("--points quick", &[("FAKE_FAULT", "exit@8")]).run();
    assert_eq!(run.status, Some(3), "{run:?}");
    let document = document(&run);
    assert_eq!((&document["complete"], &document["summary"]["failed"]), (&true.into(), &1.into()));
    let failed = results(&document).iter().find(|it| it["point"]["micro_batch"] == 8).unwrap();
    let message = failed["card"]["outcome"]["failed"]["message"].as_str().unwrap();
    assert!(message.contains("CUDA error: misaligned address"), "{message}");
}

#[test]
fn the_measurements_of_another_card_are_not_overwritten() {
    let run = rehearsal("--points quick", &[]).run();
    let mut other = document(&run);
    other["card"]["uuid"] = "GPU-00000000-0000-0000-0000-000000000000".into();
    for (text, reason) in [
        (other.to_string(), "holds measurements of NVIDIA GeForce RTX 3050"),
        ("{}".to_owned(), "is in the way: it is something else: missing field"),
        (r#"{"comparison_version": 99}"#.to_owned(), "is of version 99, not 1\n"),
    ] {
        let run = rehearsal("--points quick", &[]).file("gpu-check.json", &text).run();
        assert_eq!(run.status, Some(2), "{run:?}");
        assert!(run.stderr.contains(reason), "{run:?}");
        assert!(run.stderr.contains("hint: name another with `--output`\n"), "{run:?}");
        let kept = fs::read_to_string(run.folder.path().join("gpu-check.json")).unwrap();
        assert_eq!(kept, text);
    }
}
