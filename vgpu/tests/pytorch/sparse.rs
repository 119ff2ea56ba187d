//! Sparse tensors through cuSPARSE.

use super::attempts;

#[test]
fn sparse_tensors_multiply_add_solve_and_have_gradients() {
    let report = attempts::run("sparse", &[], 55);
    for call in [
        "cusparseSpMM",
        "cusparseSpMV",
        "cusparseXcsrgeam2Nnz",
        "cusparseSDDMM",
        "cusparseSpGEMM_copy",
        "cusparseSpSM_solve",
    ] {
        assert!(attempts::calls(&report, call) > 0, "{call} in {:?}", report.kernels);
    }
    let estimates = ["cuSPARSE buffers", "products of sparse matrices", "sums of sparse matrices"];
    attempts::assert_estimates(&report, &estimates);
}
