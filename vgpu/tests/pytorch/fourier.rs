//! Fourier transforms through cuFFT.

use super::attempts;

#[test]
fn fourier_transforms_run_in_each_form() {
    let report = attempts::run("fourier", &[], 80);
    assert!(attempts::calls(&report, "cufftXtExec") > 150, "{:?}", report.kernels);
    attempts::assert_estimates(&report, &["cuFFT"]);
}
