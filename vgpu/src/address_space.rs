//! Device addresses: a fixed range of the process's address space for each device, handed out from
//! the bottom, so that the same program sees the same addresses on every run.

use std::collections::BTreeMap;
use std::ffi::c_void;

/// Unit in which the driver gives memory: 2 MiB.
pub(crate) const GRANULE: u64 = 2 << 20;

/// 16 TiB: above any program's own mappings that grow from below, far below those that grow from above.
const BASE: u64 = 0x1000_0000_0000;
/// 2 TiB a device.
const SHIFT: u32 = 41;
/// Room before the first block, so that an address is never the range's own start.
const FIRST: u64 = 1 << 30;

/// The CUDA ordinal whose range holds `address`.
pub(crate) fn ordinal_of(address: *const c_void) -> Option<usize> {
    let offset = (address as u64).checked_sub(BASE)?;
    let ordinal = (offset >> SHIFT) as usize;
    (ordinal < vramfit_vgpu_schema::Description::MAX_DEVICES).then_some(ordinal)
}

/// `bytes` rounded up to the driver's unit.
pub(crate) fn round_up(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(GRANULE)
}

/// The address ranges in use on one device.
#[derive(Default)]
pub(crate) struct AddressSpace {
    ranges: BTreeMap<u64, u64>,
}

impl AddressSpace {
    /// Takes the lowest free range of `bytes` (a multiple of [`GRANULE`]) on device `ordinal`.
    pub(crate) fn take(&mut self, ordinal: usize, bytes: u64) -> Option<u64> {
        let start = BASE + ((ordinal as u64) << SHIFT);
        let mut candidate = start + FIRST;
        for (&address, &length) in &self.ranges {
            if address >= candidate + bytes {
                break;
            }
            candidate = candidate.max(address + length);
        }
        if candidate + bytes > start + (1 << SHIFT) {
            return None;
        }
        self.ranges.insert(candidate, bytes);
        Some(candidate)
    }

    /// Gives back the range that starts at `address`; its length, if there was one.
    pub(crate) fn give_back(&mut self, address: u64) -> Option<u64> {
        self.ranges.remove(&address)
    }

    /// The range that holds `address`: its start and length.
    pub(crate) fn range_of(&self, address: u64) -> Option<(u64, u64)> {
        let (&start, &length) = self.ranges.range(..=address).next_back()?;
        (address < start + length).then_some((start, length))
    }
}

/// Makes a range readable and writable, without memory behind it until a page is touched.
pub(crate) fn map(address: u64, bytes: u64) -> std::io::Result<()> {
    // SAFETY: MAP_FIXED_NOREPLACE never touches an existing mapping; the range is this module's.
    let mapped = unsafe {
        libc::mmap(
            address as *mut c_void,
            bytes as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE
                | libc::MAP_ANONYMOUS
                | libc::MAP_NORESERVE
                | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if mapped as u64 == address {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    if mapped != libc::MAP_FAILED {
        // A kernel older than 4.17 takes the address as a hint and may map elsewhere.
        // SAFETY: this mapping was made just now and nobody else knows of it.
        unsafe { libc::munmap(mapped, bytes as usize) };
        return Err(std::io::Error::from(std::io::ErrorKind::AddrInUse));
    }
    Err(error)
}

/// Undoes [`map`].
pub(crate) fn unmap(address: u64, bytes: u64) {
    // SAFETY: the range was mapped by `map` and is owned by the caller, who gives it up.
    unsafe { libc::munmap(address as *mut c_void, bytes as usize) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_range_is_taken_first() {
        let mut space = AddressSpace::default();
        let first = space.take(0, GRANULE).unwrap();
        let second = space.take(0, 3 * GRANULE).unwrap();
        assert_eq!(second, first + GRANULE);
        assert_eq!(space.give_back(first), Some(GRANULE));
        let third = space.take(0, 2 * GRANULE).unwrap();
        assert_eq!(third, second + 3 * GRANULE, "the gap of one unit is too small");
        assert_eq!(space.take(0, GRANULE), Some(first));
    }

    #[test]
    fn an_address_belongs_to_one_device() {
        let mut spaces = [AddressSpace::default(), AddressSpace::default()];
        for (ordinal, space) in spaces.iter_mut().enumerate() {
            let address = space.take(ordinal, GRANULE).unwrap();
            assert_eq!(ordinal_of(address as *const c_void), Some(ordinal));
            assert_eq!(space.range_of(address + 7), Some((address, GRANULE)));
            assert_eq!(space.range_of(address + GRANULE), None);
        }
        assert_eq!(ordinal_of(std::ptr::null()), None);
        assert_eq!(ordinal_of(&raw const spaces as *const c_void), None);
    }

    #[test]
    fn a_device_hands_out_no_more_than_its_range() {
        assert_eq!(AddressSpace::default().take(0, 1 << SHIFT), None);
    }
}
