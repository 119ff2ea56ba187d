//! Operators that programs may use.

use super::attempts;

#[test]
fn every_operator_that_pytorch_tests_itself_runs_forward_and_backward() {
    let report = attempts::run("sweep", &[], 1700);
    assert!(report.kernels.len() > 100);
}

#[test]
fn operators_on_boxes_run_forward_and_backward() {
    attempts::run("boxes", &[], 12);
}
