//! Shadow execution: the files in `python/` of the repository, on the path of a Python child.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use vramfit_vgpu_schema::{Device, Place, Python, Report};

use super::machine::{MIB, Machine, assert_as_expected, laptop};

/// Room for every model here.
pub(super) fn roomy() -> Device {
    let bytes = 24 * 1024 * MIB;
    Device { total_memory_bytes: bytes, usable_memory_bytes: bytes, ..laptop() }
}

pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../python")
}

/// A program with the help of the Python side.
pub(crate) fn helped(machine: &Machine, name: &str) -> Command {
    let mut command = machine.program(name);
    command.env("PYTHONPATH", sources()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[track_caller]
pub(super) fn run(name: &str, arguments: &[&str], device: Device) -> (String, Report, Python) {
    let machine = Machine::new(vec![device]);
    let child = helped(&machine, name).args(arguments).spawn().unwrap();
    let (output, report) = machine.finish(name, child);
    let python = report.python.clone().unwrap();
    assert_eq!(python.shadow.absent, None);
    (output, report, python)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Line and text of a place, for comparing.
fn code(place: Option<&Place>) -> (u32, &str) {
    place.map_or((0, "no line"), |place| (place.line, place.code.as_str()))
}

#[test]
fn small_tensors_hold_what_a_real_gpu_would_have_put_there() {
    let (output, report, python) = run("values", &[], laptop());
    assert_as_expected(&output, 40);
    let shadow = &python.shadow;
    assert_eq!((&shadow.unknown_reads, &shadow.sizes), (&Vec::new(), &Vec::new()));
    assert_eq!((&shadow.failures, &report.read_backs), (&Vec::new(), &Vec::new()));
}

#[test]
fn every_operator_in_the_list_exists() {
    let (output, _, python) = run("operators", &[], laptop());
    assert_eq!(output, "");
    assert_eq!(python.shadow.failures, Vec::<String>::new());
    assert!(python.shadow.operators > 500, "only {}", python.shadow.operators);
}

#[test]
fn what_follows_from_a_stand_in_is_finite_and_what_the_program_brings_in_stays() {
    let (output, _, _) = run("finite", &[], laptop());
    let expected = [
        "logarithm\t0.0",
        "quotient\t0.0",
        "in place\t0.0",
        "not a number\t0.0",
        "brought in by a number\t-inf",
        "brought in by a tensor\t[-inf, 1.0]",
        "known\t[-inf]",
    ];
    assert_eq!(output.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn programs_that_need_no_values_take_the_same_bytes_with_and_without() {
    for arguments in [
        ["resnet50", "fp32", "8", "foreach"],
        ["resnet50", "fp16", "8", "fused"],
        ["gpt2", "bf16", "2", "foreach"],
        ["gpt2", "fp32", "1", "for-loop"],
    ] {
        let (plain, _) = Machine::new(vec![roomy()]).run("train", &arguments);
        let (helped, report, _) = run("train", &arguments, roomy());
        assert_eq!(json(&plain), json(&helped), "{arguments:?}");
        assert_eq!(report.not_implemented, Vec::<String>::new());
    }
}

#[test]
fn a_step_takes_at_most_three_and_a_half_times_as_long() {
    let (plain, _) = Machine::new(vec![roomy()]).run("decoder", &[]);
    let (helped, _, _) = run("decoder", &[], roomy());
    let (plain, helped) = (json(&plain), json(&helped));
    for name in ["allocated", "reserved"] {
        assert_eq!(plain[name], helped[name], "{name}");
    }
    let seconds = |answer: &Value| answer["seconds"].as_f64().unwrap();
    let ratio = seconds(&helped) / seconds(&plain);
    assert!(ratio <= 3.5, "{ratio:.2}: {plain} and {helped}");
}

#[test]
fn a_mask_that_masks_nothing_leaves_attention_its_fast_path() {
    let flash = |report: &Report| report.kernels.iter().any(|it| it.name.contains("flash_fwd"));
    let (plain, without) = Machine::new(vec![roomy()]).run("masked", &[]);
    let (helped, with, _) = run("masked", &[], roomy());
    assert!(!flash(&without) && flash(&with));
    let allocated = |text: &str| json(text)["allocated"].as_u64().unwrap() as f64;
    let ratio = allocated(&helped) / allocated(&plain);
    assert!(ratio < 0.92, "{ratio} of {plain}");
    assert_eq!(json(&helped)["tokens"], 12, "generation ends after so many");
}

#[test]
fn what_nobody_can_know_is_named_with_its_line() {
    let (output, report, python) = run("unknown", &[], laptop());
    // A loss that cannot be computed is 1, and the largest number of values is kept.
    assert_eq!(output, "1.0 1048576 1048576 0.0 True\n");
    let shadow = &python.shadow;
    let mut reads: Vec<_> = shadow
        .unknown_reads
        .iter()
        .map(|read| (code(read.place.as_ref()).0, read.element.as_str(), read.bytes, read.count))
        .collect();
    reads.sort_unstable();
    let expected =
        [(11, "float32", 4, 3), (13, "float32", 4, 1), (21, "bool", 1, 1), (21, "float32", 16, 1)];
    assert_eq!(reads, expected);
    let [size] = &shadow.sizes[..] else { panic!("{:?}", shadow.sizes) };
    let place = code(size.place.as_ref());
    assert_eq!(place, (12, "kept = activations[activations > 0.5]"));
    assert_eq!(size.operator, "nonzero");
    assert_eq!((size.lowest, size.highest, size.taken, size.count), (0, 1 << 20, 1 << 20, 1));
    assert_eq!(report.read_backs, Vec::new(), "all are accounted for with their line");
}

#[test]
fn what_other_kernels_overwrite_is_unknown_and_a_compiled_functions_own_line_is_named() {
    let (output, _, python) = run("overwritten", &[], laptop());
    // Each stays as it was, and is named.
    let expected = ["0.25", "True", "0.0", "100.0", "0.0", "2.0", "1.0", "0.0", "1.0", "none left"];
    assert_eq!(output.lines().collect::<Vec<_>>(), expected);
    let mut reads: Vec<_> =
        python.shadow.unknown_reads.iter().map(|read| code(read.place.as_ref())).collect();
    reads.sort_unstable();
    let names = reads.iter().map(|(_, code)| {
        code.trim_start_matches("print(").trim_start_matches("bool(").split(['[', '.']).next()
    });
    let expected = [
        "filled", "zeroed", "copied", "weight", "fresh", "computed", "compiled", "norm", "counted",
    ];
    assert_eq!(names.flatten().collect::<Vec<_>>(), expected);
    assert_eq!(python.shadow.failures, Vec::<String>::new());
    let [out] = &python.out_of_memory[..] else { panic!("{:?}", python.out_of_memory) };
    assert_eq!(out.places[0].function, "grown", "not what was generated from it");
}

#[test]
fn without_knowing_sizes_can_be_the_lowest() {
    let machine = Machine::new(vec![laptop()]);
    let mut command = helped(&machine, "unknown");
    let child = command.env("VRAMFIT_UNKNOWN_SIZES", "lowest").spawn().unwrap();
    assert_eq!(machine.finish("unknown", child).0, "1.0 0 0 0.0 True\n");
}

#[test]
fn running_out_of_memory_is_told_with_the_programs_own_lines() {
    let machine = Machine::new(vec![laptop()]);
    let child = helped(&machine, "out_of_memory").spawn().unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Tried to allocate 2.29 GiB"), "{text}");
    let python = machine.report(pid).python.unwrap();
    let [caught, uncaught] = &python.out_of_memory[..] else { panic!("{python:?}") };
    let (line, model) = (caught.places[0].line, caught.places[1].line);
    // The allocator asks for whole units of 2 MiB.
    assert_eq!(caught.requested_bytes, (150_000_u64 * 4096 * 4).next_multiple_of(2 * MIB));
    assert_eq!((caught.count, line, model), (2, 10, 15));
    assert_eq!(caught.places[0].function, "attempt");
    assert_eq!(code(uncaught.places.first()), (22, "loss.backward()"));
    let end = python.ended_by.unwrap();
    assert!(end.out_of_memory && end.exception == "OutOfMemoryError", "{end:?}");
    assert_eq!(code(end.place.as_ref()), (22, "loss.backward()"));
    // Of the whole run, though the program reset its statistics.
    let [allocator] = &python.allocators[..] else { panic!("{:?}", python.allocators) };
    assert!(allocator.allocated_peak_bytes >= 150_000 * 4096 * 4, "{allocator:?}");
}

#[test]
fn a_detection_model_trains_with_the_most_boxes_there_can_be() {
    let (output, report, python) = run("detection", &[], roomy());
    assert!(json(&output)["allocated"].as_u64().unwrap() > 1024 * MIB);
    assert_eq!(report.internal_errors, Vec::<String>::new());
    let names: Vec<_> = python.shadow.sizes.iter().map(|size| size.operator.as_str()).collect();
    assert!(names.contains(&"nonzero") && names.contains(&"nms"), "{names:?}");
    assert!(python.shadow.sizes.iter().all(|size| size.lowest < size.highest));
    assert_eq!(python.shadow.failures, Vec::<String>::new());
}

#[test]
fn the_users_own_sitecustomize_runs_too() {
    let machine = Machine::new(vec![laptop()]);
    let own = machine.folder().join("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("sitecustomize.py"), "print('mine', __name__)\n").unwrap();
    let path = std::env::join_paths([sources(), own]).unwrap();
    let child = helped(&machine, "memory").env("PYTHONPATH", path).spawn().unwrap();
    let (output, report) = machine.finish("memory", child);
    assert!(output.starts_with("mine sitecustomize\n"), "{output}");
    assert_eq!(report.python.unwrap().shadow.absent, None);
}

#[test]
fn a_program_may_ask_for_torch_before_it_imports_it() {
    let machine = Machine::new(vec![laptop()]);
    let own = machine.folder().join("own");
    std::fs::create_dir(&own).unwrap();
    // As transformers does, to see what is installed.
    let asking = "import importlib.util\nassert importlib.util.find_spec('torch')\n";
    std::fs::write(own.join("sitecustomize.py"), asking).unwrap();
    let path = std::env::join_paths([sources(), own]).unwrap();
    let child = helped(&machine, "memory").env("PYTHONPATH", path).spawn().unwrap();
    let (_, report) = machine.finish("memory", child);
    assert_eq!(report.python.expect("PyTorch was watched").shadow.absent, None);
}

#[test]
fn switched_off_it_says_so_and_still_tells_lines() {
    let machine = Machine::new(vec![laptop()]);
    let mut command = helped(&machine, "unknown");
    let child = command.env("VRAMFIT_SHADOW", "off").spawn().unwrap();
    let pid = child.id();
    // What the program does with values that nobody computed is its own affair.
    child.wait_with_output().unwrap();
    let shadow = machine.report(pid).python.unwrap().shadow;
    assert_eq!((shadow.absent.as_deref(), shadow.calls), (Some("switched off"), 0));
}
