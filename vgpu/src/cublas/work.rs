//! What a product asks of the device.

use vramfit_vgpu_cost::{Arithmetic, Product, Work};

use crate::data_type;

/// Types of a product: `cudaDataType` of the factors and of the result, `cublasComputeType_t`.
#[derive(Clone, Copy)]
pub(crate) struct Types {
    pub(crate) factors: i32,
    pub(crate) result: i32,
    pub(crate) compute: i32,
}

impl Types {
    /// Factors and result of one type.
    pub(crate) const fn all(data_type: i32, compute: i32) -> Self {
        Self { factors: data_type, result: data_type, compute }
    }

    /// What multiplies; none for types that are not known.
    fn arithmetic(self) -> Option<Arithmetic> {
        Some(match (self.factors, self.compute) {
            // Compute types that let single precision be rounded: FAST_16F, FAST_16BF, FAST_TF32.
            (0 | 4, 74) => Arithmetic::Fp16,
            (0 | 4, 75) => Arithmetic::Bf16,
            (0 | 4, 77) => Arithmetic::Tf32,
            (0 | 4, _) => Arithmetic::Fp32,
            (1 | 5, _) => Arithmetic::Fp64,
            (2 | 6, _) => Arithmetic::Fp16,
            (14 | 15, _) => Arithmetic::Bf16,
            (3 | 8, _) => Arithmetic::Int8,
            (28 | 29, _) => Arithmetic::Fp8,
            _ => return None,
        })
    }
}

/// `batch` products of m×k by k×n. Complex numbers count as pairs: four products of real numbers for one.
pub(crate) fn product([m, n, k, batch]: [u64; 4], types: Types) -> Work {
    let Some(arithmetic) = types.arithmetic() else { return Work::Unknown };
    let bytes = |data_type| data_type::bytes(data_type).unwrap_or(1);
    let parts = if matches!(types.factors, 4 | 5 | 6 | 15) { 2 } else { 1 };
    Work::Product(Product {
        m,
        n: parts * n,
        k: parts * k,
        batch,
        arithmetic,
        input_bytes: bytes(types.factors) / parts,
        output_bytes: bytes(types.result) / parts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(types: Types) -> Product {
        match product([2, 3, 5, 7], types) {
            Work::Product(product) => product,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn types_tell_what_multiplies_and_how_large_elements_are() {
        let half = of(Types { factors: 2, result: 0, compute: 68 });
        assert_eq!((half.m, half.n, half.k, half.batch), (2, 3, 5, 7));
        assert_eq!(
            (half.arithmetic, half.input_bytes, half.output_bytes),
            (Arithmetic::Fp16, 2, 4)
        );
        assert_eq!(of(Types::all(0, 68)).arithmetic, Arithmetic::Fp32);
        assert_eq!(of(Types::all(0, 77)).arithmetic, Arithmetic::Tf32);
        assert_eq!(of(Types::all(14, 68)).arithmetic, Arithmetic::Bf16);
        assert_eq!(of(Types::all(1, 70)).arithmetic, Arithmetic::Fp64);
        assert_eq!(of(Types { factors: 28, result: 14, compute: 68 }).input_bytes, 1);
        assert_eq!(product([1; 4], Types::all(99, 68)), Work::Unknown);
    }

    #[test]
    fn complex_products_do_four_times_the_work() {
        let complex = of(Types::all(4, 68));
        assert_eq!(complex.m * complex.n * complex.k, 4 * 2 * 3 * 5);
        assert_eq!((complex.input_bytes, complex.output_bytes), (4, 4));
    }
}
