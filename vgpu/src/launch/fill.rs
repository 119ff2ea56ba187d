//! Constant fills, the one kind of kernel that is carried out.
//!
//! PyTorch fills a tensor (`zeros`, `full`, `fill_`) with a kernel whose name and arguments tell all:
//! `vectorized_elementwise_kernel<V, FillFunctor<T>, std::array<char*, 1>>(int n, FillFunctor<T>,
//! std::array<char*, 1>)`, and the same with `unrolled_elementwise_kernel` (ATen,
//! native/cuda/CUDALoops.cuh and FillKernel.cu). A small one costs nothing to do for real, and without
//! it a freshly made scalar would hold whatever an older tensor left in its block: the gradient scaler
//! would read a stale `found_inf` and skip steps.

use std::ffi::c_void;

use super::Arguments;
use crate::{activity, copy, memory};

/// The element that a fill kernel writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FillElement {
    bytes: usize,
}

impl FillElement {
    /// The element of the kernel with mangled name `name`, if it is a fill of contiguous memory.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let contiguous = name.contains("vectorized_elementwise_kernelI")
            || name.contains("unrolled_elementwise_kernelI");
        let (_, element) = name.split_once("11FillFunctorI")?;
        if !contiguous || !name.contains("St5arrayIPcLm1EE") {
            return None;
        }
        // Itanium C++ ABI, 5.1.5: the builtin types by letter.
        let bytes = match element.as_bytes().first()? {
            b'b' | b'a' | b'h' | b'c' => 1,
            b's' | b't' => 2,
            b'i' | b'j' | b'f' => 4,
            b'l' | b'm' | b'x' | b'y' | b'd' => 8,
            b'N' if element.starts_with("N3c104HalfE") => 2,
            b'N' if element.starts_with("N3c108BFloat16E") => 2,
            b'N' if element.starts_with("N3c107complexIfEE") => 8,
            b'N' if element.starts_with("N3c107complexIdEE") => 16,
            _ => return None,
        };
        Some(Self { bytes })
    }
}

/// One launch of such a kernel.
pub(super) struct Fill {
    element: FillElement,
    /// The constant, in as many bytes as the element has.
    constant: [u8; MOST_BYTES],
    target: usize,
    bytes: usize,
}

/// Of the largest element, a complex number of two doubles.
const MOST_BYTES: usize = 16;

impl Fill {
    /// What a launch with `arguments` fills, if it is small.
    pub(super) fn of(element: FillElement, arguments: Arguments) -> Option<Self> {
        if arguments.is_null() {
            return None;
        }
        let mut constant = [0; MOST_BYTES];
        // SAFETY: the kernel's signature, known from its name, has an `int`, the functor (whose only
        // member is the constant) and an array of one pointer first; the runtime passes one valid
        // pointer to each.
        let (count, target) = unsafe {
            let functor = arguments.add(1).read().cast::<u8>();
            functor.copy_to_nonoverlapping(constant.as_mut_ptr(), element.bytes);
            (
                arguments.read().cast::<i32>().read_unaligned(),
                arguments.add(2).read().cast::<usize>().read_unaligned(),
            )
        };
        let bytes = usize::try_from(count).ok()?.checked_mul(element.bytes)?;
        (1..=copy::LIMIT).contains(&bytes).then_some(Self { element, constant, target, bytes })
    }

    /// Writes the constant, if the tensor is allocated.
    pub(super) fn carry_out(&self) {
        let target = self.target as *mut c_void;
        if !memory::is_allocated(target, self.bytes as u64) {
            return;
        }
        let constant = self.constant.as_ptr();
        // SAFETY: `target` has `bytes` allocated bytes, the constant is one element long, and the two
        // are apart: the constant lies on the host's side.
        unsafe { fill(target.cast(), constant, self.element.bytes, self.bytes) };
        copy::wrote(self.target as u64, self.bytes as u64);
        activity::computed_fill();
    }
}

/// Repeats the `element` bytes at `constant` over the `bytes` bytes at `target`. What is written
/// doubles with each copy: one copy an element would cost more than all else in a launch.
///
/// # Safety
/// `target` is writable for `bytes` bytes, a positive multiple of `element`; `constant` is readable
/// for `element` bytes outside of that range.
unsafe fn fill(target: *mut u8, constant: *const u8, element: usize, bytes: usize) {
    // SAFETY: the caller's promise; `written + length` never exceeds `bytes`, and the source of each
    // copy ends where its target begins.
    unsafe {
        target.copy_from_nonoverlapping(constant, element);
        let mut written = element;
        while written < bytes {
            let length = written.min(bytes - written);
            target.add(written).copy_from_nonoverlapping(target, length);
            written += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_are_told_by_their_mangled_names() {
        let float = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE\
                     St5arrayIPcLm1EEEEviT0_T1_";
        assert_eq!(FillElement::of(float), Some(FillElement { bytes: 4 }));
        let half = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIN3c104HalfEEE\
                    St5arrayIPcLm1EEEEviT0_T1_";
        assert_eq!(FillElement::of(half), Some(FillElement { bytes: 2 }));
        let strided = "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_22gpu_kernel_impl_nocast\
                       INS0_11FillFunctorIdEEEEvRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_";
        assert_eq!(FillElement::of(strided), None);
        let add = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEE\
                   St5arrayIPcLm3EEEEviT0_T1_";
        assert_eq!(FillElement::of(add), None);
    }

    #[test]
    fn a_fill_repeats_its_constant_to_the_last_element_and_no_further() {
        for count in [1, 2, 3, 1000] {
            let constant = [1_u8, 2, 3, 4];
            let mut target = [0xff_u8; 4001];
            // SAFETY: `count` elements of 4 bytes lie within the 4001 of the target.
            unsafe { fill(target.as_mut_ptr(), constant.as_ptr(), 4, 4 * count) };
            assert!(target[..4 * count].chunks(4).all(|element| element == constant));
            assert!(target[4 * count..].iter().all(|byte| *byte == 0xff), "{count} elements");
        }
    }
}
