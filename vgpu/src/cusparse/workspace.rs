//! Buffers of cuSPARSE, in bytes, and the numbers of entries that only it would know.
//!
//! cuSPARSE works its buffers out only with a device and documents no sizes. What is taken is what the
//! algorithm that its manual describes cannot do without: sums of rows, both halves of a radix sort,
//! all intermediate products.

use super::descriptors::SparseMatrix;

/// What the report says of products with dense matrices and of solves.
pub(super) const BASIS: &str = "cuSPARSE buffers: 8 bytes a row for products, a copy of the right-hand side and \
                                16 bytes a row for solves, both halves of keys and positions for sorts; \
                                cuSPARSE documents no sizes";

/// What the report says of products of sparse matrices.
pub(super) const PRODUCT_BASIS: &str = "products of sparse matrices: as many entries as products of \
    entries when they are spread evenly over rows, none of which meet, and 16 bytes and two values for each \
    during the call; the true number depends on where the entries lie";

/// What the report says of sums of sparse matrices.
pub(super) const SUM_BASIS: &str =
    "sums of sparse matrices: as many entries as both have, as if none met";

/// Product of a sparse and a dense matrix or vector, or of two dense ones at the entries of a sparse one.
pub(super) fn product(matrix: &SparseMatrix) -> u64 {
    8u64.saturating_mul(matrix.rows + 1)
}

/// Solve with a triangular matrix, for a right-hand side of so many bytes.
pub(super) fn solve(matrix: &SparseMatrix, right_hand_side: u64) -> u64 {
    16u64.saturating_mul(matrix.rows + 1).saturating_add(right_hand_side)
}

/// Sort of `entries` pairs of 32-bit indices and positions: keys of 8 bytes and positions of 4, twice.
pub(super) fn sort(entries: u64) -> u64 {
    2 * (8 + 4) * entries.max(1)
}

/// Entries of the product of two sparse matrices: each entry of `a` meets an average row of `b`.
pub(super) fn product_entries(a: &SparseMatrix, b: &SparseMatrix) -> u64 {
    let products = a.entries.saturating_mul(b.entries).div_ceil(b.rows.max(1));
    products.min(a.rows.saturating_mul(b.columns))
}

/// Buffer of a product of sparse matrices with so many entries.
pub(super) fn product_buffer(entries: u64, element_bytes: u64) -> u64 {
    (16 + 2 * element_bytes).saturating_mul(entries.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_has_no_more_entries_than_a_full_matrix() {
        let matrix =
            |rows, columns, entries| SparseMatrix { rows, columns, entries, value_bytes: 4 };
        assert_eq!(product_entries(&matrix(10, 100, 50), &matrix(100, 20, 300)), 150);
        assert_eq!(product_entries(&matrix(10, 10, 100), &matrix(10, 10, 100)), 100);
        assert_eq!(product_entries(&matrix(10, 0, 0), &matrix(0, 10, 0)), 0);
    }
}
