//! Kernels that are compiled while the program runs: `torch.compile`, Triton, NVRTC. The compilers are
//! the real ones; only the launch does nothing.

use std::process::Stdio;

use serde_json::Value;
use vramfit_vgpu_schema::{Device, Report};

use super::machine::{Machine, assert_as_expected, laptop};

/// A card with clusters and tensor maps.
fn hopper() -> Device {
    Device {
        compute_capability: (9, 0),
        shared_memory_per_multiprocessor: 233_472,
        shared_memory_per_block_optin: 232_448,
        threads_per_multiprocessor: 2048,
        blocks_per_multiprocessor: 32,
        ..laptop()
    }
}

/// Trains in one mode; runs on the same machine share what was compiled.
#[track_caller]
fn train(machine: &Machine, mode: &str) -> (Vec<u64>, Report) {
    let (output, report) = machine.run("compiled", &[mode]);
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(report.not_implemented, Vec::<String>::new(), "{mode}");
    let peaks = answer["peaks"].as_array().unwrap().iter().map(|it| it.as_u64().unwrap()).collect();
    (peaks, report)
}

fn of_triton(report: &Report) -> u64 {
    report.kernels.iter().filter(|it| it.name.starts_with("triton_")).map(|it| it.launches).sum()
}

#[test]
fn a_compiled_training_step_takes_less_than_an_eager_one_for_whatever_size() {
    let machine = Machine::new(vec![laptop()]);
    let (eager, _) = train(&machine, "eager");
    let (compiled, report) = train(&machine, "default");
    // GELU, layer norm and what they keep for the backward pass are fused: tensors of 8192 × 1024
    // numbers that are never there.
    let ratio = compiled[2] as f64 / eager[2] as f64;
    assert!((0.5..0.9).contains(&ratio), "{compiled:?} and {eager:?}");
    assert_eq!(compiled[2], compiled[3], "the same from step to step");
    assert!(of_triton(&report) >= 12, "{:?}", report.kernels);
    let mut cached = std::fs::read_dir(machine.folder().join("triton")).unwrap();
    assert!(cached.next().is_some(), "kernels lie in the run's own cache");

    let (any_size, _) = train(&machine, "dynamic");
    assert!(any_size[0] < any_size[2], "{any_size:?}");
    // The same program, but for what is kept of sizes.
    let ratio = any_size[2] as f64 / compiled[2] as f64;
    assert!((ratio - 1.0).abs() < 0.05, "{any_size:?} and {compiled:?}");
}

#[test]
fn an_autotuned_step_captured_graphs_and_a_compiled_optimizer_run() {
    let machine = Machine::new(vec![laptop()]);
    for mode in ["max-autotune-no-cudagraphs", "reduce-overhead", "optimizer"] {
        let (peaks, report) = train(&machine, mode);
        assert_eq!(peaks[2], peaks[3], "{mode}");
        assert!(of_triton(&report) > 0, "{mode}: {:?}", report.kernels);
    }
}

#[test]
fn kernels_need_what_the_compiler_says() {
    for (device, foreign) in [(laptop(), "90"), (hopper(), "80")] {
        let machine = Machine::new(vec![device]);
        let (output, report) = machine.run("handwritten", &[foreign]);
        assert_as_expected(&output, 20);
        assert_eq!(report.not_implemented, Vec::<String>::new());
        let named = |words: &str| report.estimates.iter().any(|it| it.contains(words));
        assert!(named("local memory of kernels"), "{:?}", report.estimates);
        assert_eq!(named("clusters"), foreign == "80", "{:?}", report.estimates);
    }
}

#[test]
fn kernels_that_pytorch_compiles_at_run_time_are_launched() {
    let (_, report) = Machine::new(vec![laptop()]).run("runtime_compiled", &[]);
    assert_eq!(report.not_implemented, Vec::<String>::new());
    for name in ["fused_", "bessel_j0", "lcm", "own", "twice"] {
        let launched = report.kernels.iter().any(|it| it.name.contains(name) && it.launches > 0);
        assert!(launched, "{name}: {:?}", report.kernels);
    }
}

#[test]
fn a_library_that_brings_its_own_cuda_runtime_is_named() {
    let machine = Machine::new(vec![laptop()]);
    let child = machine
        .program("own_runtime")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (output, report) = machine.finish("own_runtime", child);
    assert_eq!(output, "801 801\n", "not supported");
    let [refused] = &report.not_implemented[..] else { panic!("{:?}", report.not_implemented) };
    assert!(refused.contains("cuGetExportTable") && refused.contains("cuda/bindings"), "{refused}");
}
