//! Linear algebra through cuSOLVER, cuBLAS and MAGMA.

use super::attempts;

#[test]
fn linear_algebra_runs_in_each_type_and_every_matrix_can_be_factorized() {
    let report = attempts::run("linear_algebra", &[], 600);
    // One of each family; PyTorch chooses by size and number of matrices.
    let calls = [
        "cublasSgetrfBatched",
        "cublasZgetrsBatched",
        "cusolverDnCungqr",
        "cusolverDnDgesvd",
        "cusolverDnSgesvdj",
        "cusolverDnXgeev",
        "cusolverDnXgeqrf",
        "cusolverDnXpotrf",
        "cusolverDnXsyevd",
    ];
    for call in calls {
        assert!(attempts::calls(&report, call) > 0, "{call} in {:?}", report.kernels);
    }
    attempts::assert_estimates(&report, &["cuSOLVER"]);
}
