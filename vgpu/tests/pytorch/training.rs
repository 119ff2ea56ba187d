//! Public models, trained unmodified.

use serde_json::Value;
use vramfit_vgpu_schema::{Device, Report};

use super::machine::{MIB, Machine, laptop};

/// Room for every model here.
fn roomy() -> Device {
    let bytes = 24 * 1024 * MIB;
    Device { total_memory_bytes: bytes, usable_memory_bytes: bytes, ..laptop() }
}

#[track_caller]
fn train(arguments: &[&str]) -> (Value, Report) {
    let (output, report) = Machine::new(vec![roomy()]).run("train", arguments);
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(answer["states"], answer["trained"], "each parameter has its state: {answer}");
    assert_eq!(report.not_implemented, Vec::<String>::new(), "{arguments:?}");
    assert!(report.gemms.iter().any(|gemm| gemm.k > 0), "{arguments:?}");
    (answer, report)
}

fn number(answer: &Value, name: &str) -> u64 {
    answer[name].as_u64().unwrap()
}

#[test]
fn a_convolutional_net_trains_in_each_precision() {
    let mut allocated = Vec::new();
    for precision in ["fp32", "tf32", "bf16", "fp16"] {
        let (answer, report) = train(&["resnet50", precision, "8"]);
        assert_eq!(answer["parameters"], 25_557_032);
        assert!(report.convolutions.iter().any(|c| c.operation == "convolution_forward"));
        assert!(report.convolutions.iter().all(|c| !c.x.is_empty() && !c.w.is_empty()));
        if precision == "fp16" {
            assert_eq!(answer["scale"], 65536.0, "no step was skipped");
        }
        allocated.push(number(&answer, "allocated"));
    }
    assert!(allocated[2] < allocated[0], "bf16 activations take less: {allocated:?}");
    // Both have two bytes; cuDNN may choose another engine, with another workspace.
    let ratio = allocated[2] as f64 / allocated[3] as f64;
    assert!((ratio - 1.0).abs() < 0.02, "bf16 against fp16: {allocated:?}");
}

#[test]
fn transformers_for_images_train() {
    for (model, parameters) in [("vit_b_16", 86_567_656), ("convnext_tiny", 28_589_128)] {
        for precision in ["fp32", "bf16"] {
            let (answer, _) = train(&[model, precision, "4"]);
            assert_eq!(answer["parameters"], parameters);
        }
    }
}

#[test]
fn a_language_model_trains_with_each_optimizer_implementation() {
    let mut allocated = Vec::new();
    for implementation in ["foreach", "for-loop", "fused"] {
        let (answer, _) = train(&["gpt2", "fp32", "1", implementation]);
        assert_eq!(answer["parameters"], 124_439_808);
        allocated.push(number(&answer, "allocated"));
    }
    let [foreach, for_loop, fused] = allocated[..] else { panic!("{allocated:?}") };
    assert!(foreach > for_loop, "foreach holds a temporary for each parameter: {allocated:?}");
    // Fused keeps one step counter for each of the 148 parameters on the GPU, a block of 512 bytes.
    assert_eq!(fused, for_loop + 148 * 512);
}

#[test]
fn the_same_program_takes_the_same_bytes_again() {
    assert_eq!(train(&["gpt2", "bf16", "2"]).0, train(&["gpt2", "bf16", "2"]).0);
}

#[test]
fn a_model_of_seven_billion_parameters_takes_no_host_memory() {
    let bytes = 160 * 1024 * MIB;
    let device = Device { total_memory_bytes: bytes, usable_memory_bytes: bytes, ..laptop() };
    let (output, report) = Machine::new(vec![device]).run("large", &[]);
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert!(number(&answer, "parameters") > 6_700_000_000);
    // Weights, gradients and two states of 4 bytes each.
    assert!(number(&answer, "allocated") > 16 * number(&answer, "parameters"));
    let added = number(&answer, "host_after") - number(&answer, "host_before");
    assert!(added < 1024 * MIB, "{} MiB of host memory", added / MIB);
    // The timeline is bounded whatever the program does.
    assert!(serde_json::to_string(&report).unwrap().len() < 400_000);
}
