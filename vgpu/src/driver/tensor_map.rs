//! Tensor maps: descriptions of tensors for the copy engine of compute capability 9.0 and later. What
//! NVIDIA asks of one is checked (`cuTensorMapEncodeTiled` in cuda.h); nothing here ever reads it.

use std::ffi::{c_int, c_void};

use super::device::code;
use crate::device;
use crate::entry::{Out, entry_points};
use crate::runtime::checked;
use crate::runtime::status::{INVALID_VALUE, NOT_SUPPORTED, Status, UNKNOWN};

/// `CUtensorMap`.
type TensorMap = [u64; 16];

const MOST_DIMENSIONS: usize = 5;
/// Bytes of an element of each `CUtensorMapDataType` up to the packed ones of 4 and 6 bits.
const ELEMENT_BYTES: [u64; 13] = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4];

/// A tensor in the words of the call.
struct Tiled<'a> {
    element: c_int,
    address: usize,
    sizes: &'a [u64],
    /// Bytes from one to the next in all dimensions but the first.
    strides: &'a [u64],
    tile: &'a [u32],
    steps: &'a [u32],
    interleave: c_int,
    swizzle: c_int,
}

impl Tiled<'_> {
    fn is_valid(&self) -> bool {
        let Some(element) = usize::try_from(self.element).ok().and_then(|it| ELEMENT_BYTES.get(it))
        else {
            // The packed types, which the calls for matrices of 4 and 6 bits use.
            return (13..=15).contains(&self.element) && self.address.is_multiple_of(16);
        };
        let row = u64::from(self.tile[0]) * element;
        let alignment = if self.interleave == 2 { 32 } else { 16 };
        let swizzled = match self.swizzle {
            0 => u64::MAX,
            1 => 32,
            2 => 64,
            _ => 128,
        };
        self.address.is_multiple_of(alignment)
            && self.sizes.iter().all(|size| (1..=1 << 32).contains(size))
            && self.strides.iter().all(|it| it.is_multiple_of(alignment as u64) && *it < 1 << 40)
            && self.tile.iter().all(|size| (1..=256).contains(size))
            && self.steps.iter().all(|step| (1..=8).contains(step))
            && (self.interleave != 0 || row.is_multiple_of(16) && row <= swizzled)
            && (self.interleave == 0 || self.sizes.len() >= 3)
    }
}

entry_points! {
    on_panic = UNKNOWN;

    /// Describes a tensor that is copied in tiles.
    fn cuTensorMapEncodeTiled(
        map: Out<TensorMap>,
        element: c_int,
        dimensions: u32,
        address: *const c_void,
        sizes: *const u64,
        strides: *const u64,
        tile: *const u32,
        steps: *const u32,
        interleave: c_int,
        swizzle: c_int,
        _promotion: c_int,
        _fill: c_int,
    ) -> Status {
        code(checked(device::current() as c_int).and_then(|(_, device)| {
            if device.compute_capability.0 < 9 {
                return Err(NOT_SUPPORTED);
            }
            let count = dimensions as usize;
            let absent = sizes.is_null() || tile.is_null() || steps.is_null();
            if map.is_null() || absent || !(1..=MOST_DIMENSIONS).contains(&count) {
                return Err(INVALID_VALUE);
            }
            if strides.is_null() && count > 1 {
                return Err(INVALID_VALUE);
            }
            // SAFETY: the interface asks for arrays of `dimensions` values, one stride less; those that
            // are read are not null. Their types are aligned by the caller's C.
            let tiled = unsafe {
                let slice = |first, count| std::slice::from_raw_parts(first, count);
                Tiled {
                    element,
                    address: address as usize,
                    sizes: slice(sizes, count),
                    strides: if count > 1 { slice(strides, count - 1) } else { &[] },
                    tile: std::slice::from_raw_parts(tile, count),
                    steps: std::slice::from_raw_parts(steps, count),
                    interleave,
                    swizzle,
                }
            };
            if !tiled.is_valid() {
                return Err(INVALID_VALUE);
            }
            map.set(TensorMap::default());
            Ok(())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_copy_engine_could_not_read_is_refused() {
        let half = Tiled {
            element: 6,
            address: 0x1000,
            sizes: &[64, 128],
            strides: &[128],
            tile: &[64, 128],
            steps: &[1, 1],
            interleave: 0,
            swizzle: 3,
        };
        assert!(half.is_valid());
        assert!(!Tiled { address: 0x1008, ..half }.is_valid());
        assert!(!Tiled { strides: &[130], ..half }.is_valid());
        assert!(!Tiled { tile: &[64, 512], ..half }.is_valid());
        assert!(!Tiled { swizzle: 1, ..half }.is_valid(), "a row of 128 bytes in 32");
    }
}
