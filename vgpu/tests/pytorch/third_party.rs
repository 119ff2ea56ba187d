//! Packages with kernels of their own: a CUDA library that links the runtime, and one of Triton kernels.
//!
//! They lie in `.third-party` (`scripts/setup.sh test`), where only these tests find them: transformers
//! and others import what is there, and CUDA is then in use before a program has said so.

use std::process::Stdio;

use serde_json::Value;

use super::machine::{MIB, Machine, assert_as_expected, laptop};
use super::shadow::{helped, sources};

const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.third-party");

#[test]
fn quantized_states_and_weights_take_what_their_formats_take() {
    let machine = Machine::new(vec![laptop()]);
    let mut program = machine.program("quantized");
    program.env("PYTHONPATH", PACKAGES).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (output, report) = machine.finish("quantized", program.spawn().unwrap());
    assert_as_expected(&output, 11);
    assert_eq!(report.not_implemented, Vec::<String>::new());
    let managed = report.estimates.iter().any(|it| it.contains("managed memory"));
    assert!(managed, "paged states are not counted, and said not to be: {:?}", report.estimates);
}

#[test]
fn triton_kernels_of_a_package_keep_no_second_copy_of_logits() {
    let machine = Machine::new(vec![laptop()]);
    // Liger looks whether all classes are among the words, so small tensors have to be computed.
    let packages = format!("{}:{PACKAGES}", sources().display());
    let child = helped(&machine, "liger").env("PYTHONPATH", packages).spawn().unwrap();
    let (output, report) = machine.finish("liger", child);
    let answer: Value = serde_json::from_str(&output).unwrap();
    let bytes = |name: &str| answer[name].as_u64().unwrap();
    assert!(bytes("liger") < MIB, "the gradient takes the place of the logits: {answer}");
    assert!(bytes("pytorch") >= 2 * bytes("logits"), "{answer}");
    assert!(bytes("fused") < bytes("unfused") / 2, "{answer}");
    assert_eq!(report.not_implemented, Vec::<String>::new());
}
