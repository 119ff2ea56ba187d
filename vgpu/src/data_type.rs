//! Names of CUDA's data types and cuBLAS's compute types, as the report writes them.

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
