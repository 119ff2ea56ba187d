//! CUDA's data types and cuBLAS's compute types: names, as the report writes them, and sizes.

/// The name of a `cudaDataType` (library_types.h) without its `CUDA_`.
pub(crate) fn cuda_name(data_type: i32) -> &'static str {
    match data_type {
        0 => "R_32F",
        1 => "R_64F",
        2 => "R_16F",
        3 => "R_8I",
        4 => "C_32F",
        5 => "C_64F",
        6 => "C_16F",
        8 => "R_8U",
        10 => "R_32I",
        14 => "R_16BF",
        15 => "C_16BF",
        16 => "R_4I",
        18 => "R_4U",
        24 => "R_64I",
        28 => "R_8F_E4M3",
        29 => "R_8F_E5M2",
        30 => "R_8F_UE8M0",
        31 => "R_6F_E2M3",
        32 => "R_6F_E3M2",
        33 => "R_4F_E2M1",
        _ => "unknown",
    }
}

/// Bytes of a value of a `cudaDataType` (library_types.h); none for values that take part of a byte, and
/// for types that are not known.
pub(crate) fn bytes(data_type: i32) -> Option<u64> {
    Some(match data_type {
        // Numbers of 8 bits: R_8I, R_8U, R_8F_E4M3, R_8F_E5M2, R_8F_UE8M0.
        3 | 8 | 28 | 29 | 30 => 1,
        // Of 16 bits: R_16F, R_16BF, R_16I, R_16U; pairs of 8: C_8I, C_8U.
        2 | 14 | 20 | 22 | 7 | 9 => 2,
        // R_32F, R_32I, R_32U; C_16F, C_16BF, C_16I, C_16U.
        0 | 10 | 12 | 6 | 15 | 21 | 23 => 4,
        // R_64F, R_64I, R_64U; C_32F, C_32I, C_32U.
        1 | 24 | 26 | 4 | 11 | 13 => 8,
        // C_64F, C_64I, C_64U.
        5 | 25 | 27 => 16,
        _ => return None,
    })
}

/// The name of a `cublasComputeType_t` (cublas_api.h) without its `CUBLAS_COMPUTE_`.
pub(crate) fn compute_name(compute_type: i32) -> &'static str {
    match compute_type {
        64 => "16F",
        65 => "16F_PEDANTIC",
        68 => "32F",
        69 => "32F_PEDANTIC",
        70 => "64F",
        71 => "64F_PEDANTIC",
        72 => "32I",
        73 => "32I_PEDANTIC",
        74 => "32F_FAST_16F",
        75 => "32F_FAST_16BF",
        77 => "32F_FAST_TF32",
        78 => "32F_EMULATED_16BFX9",
        79 => "64F_EMULATED_FIXEDPOINT",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_whose_name_tells_whole_bytes_has_that_size() {
        for data_type in -1..40 {
            let name = cuda_name(data_type);
            let bits = name.get(2..).and_then(|rest| {
                rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse::<u64>().ok()
            });
            let Some(bits) = bits else { continue };
            let bits = if name.starts_with('C') { 2 * bits } else { bits };
            let whole = bits.is_multiple_of(8).then_some(bits / 8);
            assert_eq!(bytes(data_type), whole, "{name}");
        }
        assert_eq!((bytes(-1), bytes(17), bytes(99)), (None, None, None));
    }
}
