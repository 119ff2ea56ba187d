//! NCCL's reductions, for the small payloads that are really reduced.

use std::sync::{Mutex, PoisonError};

use super::Failure;
use super::element::{Element, bfloat, bfloat_to_f64, f64_to_half, half_to_f64};

/// How parts are combined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reduction {
    Sum,
    Product,
    Maximum,
    Minimum,
    Average,
    /// The sum of the parts, each multiplied by the factor of its rank.
    ScaledSum(f64),
}

/// Factors of the operators that programs made; operator 5 + index (`ncclNumOps` and up).
static FACTORS: Mutex<Vec<Option<f64>>> = Mutex::new(Vec::new());

const FIRST_OWN: i32 = 5;

/// Makes an operator that multiplies by `factor` before it adds; its code.
pub(super) fn make_scaled_sum(factor: f64) -> i32 {
    let mut factors = FACTORS.lock().unwrap_or_else(PoisonError::into_inner);
    let free = factors.iter().position(Option::is_none).unwrap_or(factors.len());
    if free == factors.len() {
        factors.push(None);
    }
    factors[free] = Some(factor);
    FIRST_OWN + free as i32
}

/// Forgets an operator; false if there is none of that code.
pub(super) fn forget_scaled_sum(code: i32) -> bool {
    let mut factors = FACTORS.lock().unwrap_or_else(PoisonError::into_inner);
    let index = code.checked_sub(FIRST_OWN).and_then(|index| usize::try_from(index).ok());
    index.and_then(|index| factors.get_mut(index)).is_some_and(|factor| factor.take().is_some())
}

impl Reduction {
    /// `ncclRedOp_t`.
    pub(super) fn of(code: i32) -> Result<Self, Failure> {
        match code {
            0 => Ok(Self::Sum),
            1 => Ok(Self::Product),
            2 => Ok(Self::Maximum),
            3 => Ok(Self::Minimum),
            4 => Ok(Self::Average),
            _ => {
                let factors = FACTORS.lock().unwrap_or_else(PoisonError::into_inner);
                let index = usize::try_from(code.wrapping_sub(FIRST_OWN)).unwrap_or(usize::MAX);
                let factor = factors.get(index).copied().flatten();
                factor
                    .map(Self::ScaledSum)
                    .ok_or_else(|| Failure::argument(format!("{code} is no reduction")))
            }
        }
    }

    /// What a rank gives: its part, multiplied by its factor where it has one.
    pub(super) fn own_part(self, element: Element, part: Vec<u8>) -> Vec<u8> {
        match self {
            Self::ScaledSum(_) => self.combined(element, &[&part]).unwrap_or(part),
            _ => part,
        }
    }

    /// Combines the parts that ranks gave, all of the same length. None for 8-bit floating-point numbers.
    pub(super) fn apply(self, element: Element, parts: &[&[u8]]) -> Option<Vec<u8>> {
        match self {
            Self::ScaledSum(_) => Self::Sum.combined(element, parts),
            _ => self.combined(element, parts),
        }
    }

    fn combined(self, element: Element, parts: &[&[u8]]) -> Option<Vec<u8>> {
        use Element::*;
        Some(match element {
            I8 => self.whole(parts, i8::from_le_bytes, i8::to_le_bytes),
            U8 => self.whole(parts, u8::from_le_bytes, u8::to_le_bytes),
            I32 => self.whole(parts, i32::from_le_bytes, i32::to_le_bytes),
            U32 => self.whole(parts, u32::from_le_bytes, u32::to_le_bytes),
            I64 => self.whole(parts, i64::from_le_bytes, i64::to_le_bytes),
            U64 => self.whole(parts, u64::from_le_bytes, u64::to_le_bytes),
            F16 => self.real(
                parts,
                |b| half_to_f64(u16::from_le_bytes(b)),
                |v| f64_to_half(v).to_le_bytes(),
            ),
            Bf16 => self.real(
                parts,
                |b| bfloat_to_f64(u16::from_le_bytes(b)),
                |v| bfloat(v as f32).to_le_bytes(),
            ),
            F32 => self.real(parts, |b| f32::from_le_bytes(b).into(), |v| (v as f32).to_le_bytes()),
            F64 => self.real(parts, f64::from_le_bytes, f64::to_le_bytes),
            F8E4M3 | F8E5M2 => return None,
        })
    }

    fn whole<const N: usize, T: Into<i128> + TryFrom<i128> + Default>(
        self,
        parts: &[&[u8]],
        read: impl Fn([u8; N]) -> T,
        write: impl Fn(T) -> [u8; N],
    ) -> Vec<u8> {
        let count = parts.len() as i128;
        let bits = 8 * N as u32;
        fold(parts, |values: &mut dyn Iterator<Item = [u8; N]>| {
            let values = values.map(|bytes| read(bytes).into());
            let result: i128 = match self {
                Self::Sum => values.sum(),
                Self::ScaledSum(factor) => {
                    values.map(|value| (value as f64 * factor) as i128).sum()
                }
                Self::Product => values.fold(1, i128::wrapping_mul),
                Self::Maximum => values.max().unwrap_or_default(),
                Self::Minimum => values.min().unwrap_or_default(),
                Self::Average => values.sum::<i128>() / count.max(1),
            };
            // Integers wrap around at their width; one of the two readings of the low bits fits.
            let low = result & ((1_i128 << bits) - 1);
            write(T::try_from(low).or_else(|_| T::try_from(low - (1 << bits))).unwrap_or_default())
        })
    }

    fn real<const N: usize>(
        self,
        parts: &[&[u8]],
        read: impl Fn([u8; N]) -> f64,
        write: impl Fn(f64) -> [u8; N],
    ) -> Vec<u8> {
        let count = parts.len() as f64;
        fold(parts, |values: &mut dyn Iterator<Item = [u8; N]>| {
            let values = values.map(&read);
            write(match self {
                Self::Sum => values.sum(),
                Self::ScaledSum(factor) => values.map(|value| value * factor).sum(),
                Self::Product => values.product(),
                Self::Maximum => values.fold(f64::NEG_INFINITY, f64::max),
                Self::Minimum => values.fold(f64::INFINITY, f64::min),
                Self::Average => values.sum::<f64>() / count,
            })
        })
    }
}

/// Runs `combine` on the n-th elements of all parts, for each n.
fn fold<const N: usize>(
    parts: &[&[u8]],
    combine: impl Fn(&mut dyn Iterator<Item = [u8; N]>) -> [u8; N],
) -> Vec<u8> {
    let count = parts.iter().map(|part| part.len() / N).min().unwrap_or(0);
    (0..count)
        .flat_map(|index| {
            let mut elements = parts.iter().map(|part| {
                let mut bytes = [0; N];
                bytes.copy_from_slice(&part[index * N..][..N]);
                bytes
            });
            combine(&mut elements)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn parts_are_combined_element_by_element() {
        let (a, b) = (floats(&[1.0, -2.0]), floats(&[3.0, 5.0]));
        for (reduction, expected) in [
            (Reduction::Sum, [4.0, 3.0]),
            (Reduction::Product, [3.0, -10.0]),
            (Reduction::Maximum, [3.0, 5.0]),
            (Reduction::Minimum, [1.0, -2.0]),
            (Reduction::Average, [2.0, 1.5]),
        ] {
            let combined = reduction.apply(Element::F32, &[&a, &b]).unwrap();
            assert_eq!(combined, floats(&expected), "{reduction:?}");
        }
        assert_eq!(Reduction::Sum.apply(Element::F8E4M3, &[&[1], &[2]]), None);
    }

    #[test]
    fn each_rank_multiplies_its_own_part_by_its_own_factor() {
        let (half, double) = (Reduction::ScaledSum(0.5), Reduction::ScaledSum(2.0));
        let a = half.own_part(Element::F32, floats(&[1.0, -2.0]));
        let b = double.own_part(Element::F32, floats(&[3.0, 5.0]));
        assert_eq!(half.apply(Element::F32, &[&a, &b]).unwrap(), floats(&[6.5, 9.0]));
    }

    #[test]
    fn integers_wrap_around_at_their_width() {
        let sum = |element, parts: &[&[u8]]| Reduction::Sum.apply(element, parts).unwrap();
        assert_eq!(sum(Element::U8, &[&[200, 1], &[100, 2]]), [44, 3]);
        assert_eq!(sum(Element::I8, &[&[100], &[100]]), (-56_i8).to_le_bytes());
        let (a, b) = (i64::MIN.to_le_bytes(), (-1_i64).to_le_bytes());
        assert_eq!(sum(Element::I64, &[&a, &b]), i64::MAX.to_le_bytes());
    }

    #[test]
    fn an_operator_lives_until_it_is_forgotten() {
        let code = make_scaled_sum(0.25);
        assert_eq!(Reduction::of(code).unwrap(), Reduction::ScaledSum(0.25));
        assert!(forget_scaled_sum(code));
        assert!(Reduction::of(code).is_err() && !forget_scaled_sum(code));
        assert!(Reduction::of(-1).is_err());
    }
}
