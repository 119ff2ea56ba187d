//! NCCL's element types, and the formats of 16 bits that Rust has no types for.

use std::ffi::c_void;

use super::Failure;

/// `ncclDataType_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    I8,
    U8,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
    Bf16,
    F8E4M3,
    F8E5M2,
}

impl Element {
    pub(super) fn of(code: i32) -> Result<Self, Failure> {
        use Element::*;
        let all = [I8, U8, I32, U32, I64, U64, F16, F32, F64, Bf16, F8E4M3, F8E5M2];
        let known = usize::try_from(code).ok().and_then(|code| all.get(code).copied());
        known.ok_or_else(|| Failure::argument(format!("{code} is no data type")))
    }

    pub(super) fn bytes(self) -> usize {
        use Element::*;
        match self {
            I8 | U8 | F8E4M3 | F8E5M2 => 1,
            F16 | Bf16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 => 8,
        }
    }
}

/// IEEE 754 binary16.
pub(super) fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    sign * match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    }
}

/// Rounds to the nearest binary16, ties to even.
pub(super) fn f64_to_half(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    if size.is_nan() {
        return 0x7e00;
    }
    // Below the normal numbers the spacing is that of the smallest of them.
    let exponent = (size.log2().floor() as i32).clamp(-14, 16);
    let units = (size * 2_f64.powi(10 - exponent)).round_ties_even();
    if exponent > 15 || units * 2_f64.powi(exponent - 10) > 65504.0 {
        return sign | 0x7c00;
    }
    // A carry out of the fraction rightly raises the exponent.
    let base = if units >= 1024.0 { (exponent + 15 - 1) << 10 } else { 0 };
    sign | (base + units as i32) as u16
}

/// Rounds to the nearest bfloat16, ties to even.
pub(super) fn bfloat(value: f32) -> u16 {
    if value.is_nan() {
        return 0x7fc0;
    }
    let bits = value.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// Exact.
pub(super) fn bfloat_to_f64(bits: u16) -> f64 {
    f32::from_bits(u32::from(bits) << 16).into()
}

/// The number of type `element` at `address`.
///
/// # Safety
/// `address` is valid for reading one such element.
pub(super) unsafe fn number_at(address: *const c_void, element: Element) -> Option<f64> {
    use Element::*;
    // SAFETY: by this function's contract; unaligned, since nothing promises alignment.
    unsafe {
        Some(match element {
            I8 => address.cast::<i8>().read().into(),
            U8 => address.cast::<u8>().read().into(),
            I32 => address.cast::<i32>().read_unaligned().into(),
            U32 => address.cast::<u32>().read_unaligned().into(),
            I64 => address.cast::<i64>().read_unaligned() as f64,
            U64 => address.cast::<u64>().read_unaligned() as f64,
            F16 => half_to_f64(address.cast::<u16>().read_unaligned()),
            Bf16 => bfloat_to_f64(address.cast::<u16>().read_unaligned()),
            F32 => address.cast::<f32>().read_unaligned().into(),
            F64 => address.cast::<f64>().read_unaligned(),
            F8E4M3 | F8E5M2 => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_rounded_to_the_nearest() {
        for bits in 0..=0x7c00_u16 {
            assert_eq!(f64_to_half(half_to_f64(bits)), bits);
        }
        assert_eq!(f64_to_half(-1.0), 0xbc00);
        assert_eq!(f64_to_half(65519.9), 0x7bff);
        assert_eq!(f64_to_half(65520.0), 0x7c00);
        assert_eq!(f64_to_half(1.0 + 1.0 / 2048.0), 0x3c00, "a tie goes to the even neighbour");
        assert_eq!(f64_to_half(2_f64.powi(-25)), 0);
        assert_eq!(bfloat(1.0), 0x3f80);
        assert_eq!(bfloat(f32::from_bits(0x3f80_8000)), 0x3f80);
        assert_eq!(bfloat(f32::from_bits(0x3f81_8000)), 0x3f82);
    }
}
