//! One launch, as the rules see it.

use crate::launch::Launch;

/// A launch whose arguments may be read.
pub(super) struct Call<'a> {
    launch: &'a Launch,
}

impl<'a> Call<'a> {
    pub(super) fn new(launch: &'a Launch) -> Self {
        Self { launch }
    }

    /// Blocks in direction `index`.
    pub(super) fn grid(&self, index: usize) -> u64 {
        self.launch.grid[index].into()
    }

    /// Threads of a block in direction `index`.
    pub(super) fn block(&self, index: usize) -> u64 {
        self.launch.block[index].into()
    }

    /// All threads.
    pub(super) fn threads(&self) -> u64 {
        let Launch { grid, block, .. } = self.launch;
        grid.iter().chain(block).fold(1, |product, size| product.saturating_mul(u64::from(*size)))
    }

    /// The value at byte `offset` of argument `index`; none of a launch without arguments.
    ///
    /// A rule asks only for parameters that its kernel's signature has, and for bytes within them.
    pub(super) fn value<T: Plain>(&self, index: usize, offset: usize) -> Option<T> {
        if self.launch.arguments.is_null() {
            return None;
        }
        // SAFETY: the kernel's name tells its parameters, of which the rule asks for one; the runtime
        // passes a valid pointer to each, and any bytes are a value of `T`.
        unsafe {
            let argument = self.launch.arguments.add(index).read();
            (!argument.is_null()).then(|| argument.byte_add(offset).cast::<T>().read_unaligned())
        }
    }

    /// The whole number of `bytes` bytes at byte `offset` of argument `index`; none if it is negative.
    pub(super) fn number(&self, index: usize, offset: usize, bytes: u64) -> Option<u64> {
        match bytes {
            1 => self.value::<u8>(index, offset).map(u64::from),
            4 => self.value::<i32>(index, offset).and_then(|it| it.try_into().ok()),
            8 => self.value::<i64>(index, offset).and_then(|it| it.try_into().ok()),
            _ => None,
        }
    }
}

/// Types of which any bytes are a value.
pub(super) trait Plain: Copy {}
impl Plain for u8 {}
impl Plain for i32 {}
impl Plain for u32 {}
impl Plain for i64 {}
impl Plain for usize {}
