//! Each supported PyTorch, unmodified: CUDA 12 and CUDA 13, cuDNN that can be asked and cuDNN that cannot.

use serde_json::Value;
use vramfit_vgpu_schema::{CudnnAnswer, Device, Report, folder};

use super::environments::{self, Environment};
use super::machine::{MIB, Machine, laptop};

fn roomy() -> Device {
    let bytes = 24 * 1024 * MIB;
    Device { total_memory_bytes: bytes, usable_memory_bytes: bytes, ..laptop() }
}

/// Trains for three steps; what the program and the virtual GPU say.
#[track_caller]
fn train(
    environment: &Environment,
    arguments: &[&str],
    cudnn: Option<&std::path::Path>,
) -> (Value, Report) {
    let machine = Machine::new(vec![roomy()]);
    let mut command = machine.program_in(environment, "train");
    if let Some(library) = cudnn {
        command.env(folder::CUDNN_VARIABLE, library);
    }
    let child = command
        .args(arguments)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (output, report) = machine.finish(&format!("{} {arguments:?}", environment.name), child);
    let answer: Value = serde_json::from_str(&output).unwrap();
    let name = &environment.name;
    assert_eq!(answer["states"], answer["trained"], "{name} {arguments:?}: {answer}");
    assert_eq!(report.not_implemented, Vec::<String>::new(), "{name} {arguments:?}");
    (answer, report)
}

fn number(answer: &Value, name: &str) -> f64 {
    answer[name].as_f64().unwrap()
}

#[test]
fn each_pytorch_trains_a_language_model_with_nearly_the_same_memory() {
    let mut allocated = Vec::new();
    for environment in environments::all() {
        let (answer, report) = train(&environment, &["plain_gpt2", "bf16", "2"], None);
        assert_eq!(answer["parameters"], 124_439_808, "{}", environment.name);
        assert!(report.gemms.iter().any(|gemm| gemm.input_type == "R_16BF"));
        allocated.push(number(&answer, "allocated"));
        let (answer, _) = train(&environment, &["plain_gpt2", "fp16", "2"], None);
        assert_eq!(answer["scale"], 65536.0, "{}: a step was skipped", environment.name);
    }
    // Versions differ in a few workspaces and temporaries, not in what a model keeps.
    for bytes in &allocated {
        assert!((bytes / allocated[0] - 1.0).abs() < 0.03, "{allocated:?}");
    }
}

#[test]
fn each_pytorch_trains_a_convolutional_net_with_nearly_the_same_memory() {
    let mut allocated = Vec::new();
    for environment in environments::all() {
        let (answer, report) = train(&environment, &["resnet50", "bf16", "8"], None);
        assert_eq!(answer["parameters"], 25_557_032, "{}", environment.name);
        let cudnn = report.cudnn.as_ref().unwrap();
        // 9.8.0 is the first that can be asked without a device.
        let can_be_asked = cudnn.program_version >= 90_800;
        let expected = if can_be_asked { CudnnAnswer::Program } else { CudnnAnswer::Rule };
        assert_eq!(cudnn.answered_by, expected, "{}: {cudnn:?}", environment.name);
        assert_eq!(is_by_rule(&report), !can_be_asked, "{:?}", report.estimates);
        allocated.push(number(&answer, "allocated"));
    }
    for bytes in &allocated {
        assert!((bytes / allocated[0] - 1.0).abs() < 0.05, "{allocated:?}");
    }
}

#[test]
fn of_each_pytorch_whose_cudnn_cannot_be_asked_a_newer_one_answers_and_the_rule_comes_close() {
    let newer = library_of(&environments::main());
    for environment in environments::all() {
        let arguments = ["resnet50", "fp32", "8"];
        let (by_default, report) = train(&environment, &arguments, None);
        if report.cudnn.as_ref().unwrap().answered_by == CudnnAnswer::Program {
            continue;
        }
        let (asked, report) = train(&environment, &arguments, Some(&newer));
        let cudnn = report.cudnn.as_ref().unwrap();
        assert_eq!(cudnn.answered_by, CudnnAnswer::Newer);
        assert!(cudnn.answering_version.unwrap() >= 90_800, "{cudnn:?}");
        assert!(!is_by_rule(&report), "{:?}", report.estimates);
        let ratio = number(&by_default, "reserved") / number(&asked, "reserved");
        assert!((ratio - 1.0).abs() < 0.1, "{}: {ratio}", environment.name);
    }
}

/// Whether workspaces of convolutions are estimates.
fn is_by_rule(report: &Report) -> bool {
    report.estimates.iter().any(|basis| basis.starts_with("cuDNN workspaces: by rule"))
}

fn library_of(environment: &Environment) -> std::path::PathBuf {
    let program = "import nvidia.cudnn; print(nvidia.cudnn.__path__[0])";
    let output =
        std::process::Command::new(&environment.python).args(["-c", program]).output().unwrap();
    let folder = String::from_utf8(output.stdout).unwrap();
    std::path::Path::new(folder.trim()).join("lib/libcudnn.so.9")
}
