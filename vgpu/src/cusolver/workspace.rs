//! Workspaces of cuSOLVER, in elements.
//!
//! cuSOLVER works them out only with a device, and its manual gives no formulas. It follows LAPACK's
//! interface, so LAPACK's are taken (netlib's documentation of each routine): the workspace for best
//! speed with blocks of 64 columns (`ILAENV`'s largest), and for factorizations that LAPACK does in
//! place, a panel of as many columns. What no 64 bits hold is the highest number, which is refused.

/// What the report says of the sizes.
pub(super) const BASIS: &str = "cuSOLVER workspaces: by LAPACK's formulas with blocks of 64 columns, a few \
                                matrices at most; cuSOLVER documents no sizes";

/// Columns of a block.
const BLOCK: u64 = 64;

/// A panel of one block's columns: `getrf`, `potrf`, `geqrf`, `orgqr`, `ormqr`, `sytrf`.
pub(super) fn panel(rows: u64) -> u64 {
    rows.max(1).saturating_mul(BLOCK)
}

/// `syevd` with vectors (1 + 6 n + 2 n²); Jacobi's method (`syevj`) takes as much: a copy of the matrix
/// and the rotations.
pub(super) fn symmetric_eigenvalues(n: u64) -> u64 {
    n.saturating_mul(n.saturating_mul(2).saturating_add(6)).saturating_add(1)
}

/// `geev`: the Hessenberg matrix, the vectors, and a panel.
pub(super) fn eigenvalues(n: u64) -> u64 {
    n.saturating_mul(n).saturating_mul(2).saturating_add(panel(n))
}

/// `gesvd` by way of a QR factorization: its triangle, and panels of both sides.
pub(super) fn singular_values(m: u64, n: u64) -> u64 {
    let shorter = m.min(n);
    shorter.saturating_mul(shorter).saturating_add(panel(m.saturating_add(n)))
}

/// Jacobi's method (`gesvdj`): a copy of the matrix, the rotations, and panels of both sides.
pub(super) fn singular_values_by_jacobi(m: u64, n: u64) -> u64 {
    m.saturating_mul(n).saturating_mul(2).saturating_add(panel(m.saturating_add(n)))
}

/// `gesvda`, which takes the eigenvalues of the product of the matrix with itself.
pub(super) fn singular_values_of_tall(m: u64, n: u64) -> u64 {
    m.saturating_mul(n).saturating_add(symmetric_eigenvalues(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_no_number_holds_do_not_wrap() {
        let most = i64::MAX.unsigned_abs();
        for size in [panel, symmetric_eigenvalues, eigenvalues] {
            assert_eq!(size(most), u64::MAX);
        }
        for size in [singular_values, singular_values_by_jacobi, singular_values_of_tall] {
            assert_eq!(size(most, most), u64::MAX);
        }
    }

    #[test]
    fn every_workspace_is_positive_and_grows() {
        for size in [panel, symmetric_eigenvalues, eigenvalues] {
            assert!(0 < size(1) && size(1) < size(100) && size(100) < size(1000));
        }
        for size in [singular_values, singular_values_by_jacobi, singular_values_of_tall] {
            assert!(0 < size(1, 1) && size(1, 1) < size(100, 50) && size(100, 50) < size(1000, 50));
        }
    }
}
