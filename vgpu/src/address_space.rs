//! Device addresses: a fixed range of the process's address space for each device, handed out from
//! the bottom, so that the same program sees the same addresses on every run.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;

/// Unit in which the driver gives memory: 2 MiB.
pub(crate) const GRANULE: u64 = 2 << 20;

/// 16 TiB: above any program's own mappings that grow from below, far below those that grow from above.
const BASE: u64 = 0x1000_0000_0000;
/// 4 TiB a device: PyTorch reserves more than a card's memory for each stream and pool whose segments
/// can be expanded. The last of the devices ends at 80 TiB, below the lowest address that Linux gives
/// an executable (two thirds of 128 TiB).
pub(crate) const SHIFT: u32 = 42;
/// Room before the first block, so that an address is never the range's own start.
const FIRST: u64 = 1 << 30;

/// The CUDA ordinal whose range holds `address`.
pub(crate) fn ordinal_of(address: *const c_void) -> Option<usize> {
    let offset = (address as u64).checked_sub(BASE)?;
    let ordinal = (offset >> SHIFT) as usize;
    (ordinal < vramfit_vgpu_schema::Description::MAX_DEVICES).then_some(ordinal)
}

/// The addresses of CUDA ordinal `ordinal`.
pub(crate) fn addresses(ordinal: usize) -> Range<u64> {
    let start = BASE + ((ordinal as u64) << SHIFT);
    start + FIRST..start + (1 << SHIFT)
}

/// How far `address` lies from the start of its device's range.
pub(crate) fn offset_of(address: u64) -> u64 {
    (address - BASE) & ((1 << SHIFT) - 1)
}

/// `bytes` rounded up to the driver's unit.
pub(crate) fn round_up(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(GRANULE)
}

/// What is in use of a line of addresses, each range for a purpose.
pub(crate) struct AddressSpace<P> {
    ranges: BTreeMap<u64, (u64, P)>,
}

impl<P> Default for AddressSpace<P> {
    fn default() -> Self {
        Self { ranges: BTreeMap::new() }
    }
}

impl<P: Copy> AddressSpace<P> {
    /// Takes the lowest free `bytes`, more than none, of `within` that start at a multiple of `alignment`.
    pub(crate) fn take(
        &mut self,
        within: Range<u64>,
        bytes: u64,
        alignment: u64,
        purpose: P,
    ) -> Option<u64> {
        if bytes == 0 {
            return None;
        }
        let mut candidate = within.start.checked_next_multiple_of(alignment)?;
        for (&address, &(length, _)) in &self.ranges {
            if address >= candidate.checked_add(bytes)? {
                break;
            }
            candidate = candidate.max(address + length).checked_next_multiple_of(alignment)?;
        }
        if candidate.checked_add(bytes)? > within.end {
            return None;
        }
        self.ranges.insert(candidate, (bytes, purpose));
        Some(candidate)
    }

    /// Takes `bytes`, more than none, at `address`, if they are free.
    pub(crate) fn take_at(&mut self, address: u64, bytes: u64, purpose: P) -> bool {
        let Some(end) = address.checked_add(bytes).filter(|end| *end > address) else {
            return false;
        };
        let before = self.ranges.range(..end).next_back();
        let free = before.is_none_or(|(&start, &(length, _))| start + length <= address);
        if free {
            self.ranges.insert(address, (bytes, purpose));
        }
        free
    }

    /// Gives back the range that starts at `address`; its length and purpose, if there was one.
    pub(crate) fn give_back(&mut self, address: u64) -> Option<(u64, P)> {
        self.ranges.remove(&address)
    }

    /// The range that holds `address`: its start, its length and its purpose.
    pub(crate) fn range_of(&self, address: u64) -> Option<(u64, u64, P)> {
        let (&start, &(length, purpose)) = self.ranges.range(..=address).next_back()?;
        (address < start + length).then_some((start, length, purpose))
    }

    /// The ranges that start in `within`: start, length and purpose.
    pub(crate) fn ranges_in(&self, within: Range<u64>) -> impl Iterator<Item = (u64, u64, P)> {
        self.ranges.range(within).map(|(&start, &(length, purpose))| (start, length, purpose))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(space: &mut AddressSpace<()>, ordinal: usize, bytes: u64) -> Option<u64> {
        space.take(addresses(ordinal), bytes, GRANULE, ())
    }

    #[test]
    fn the_lowest_free_range_is_taken_first() {
        let mut space = AddressSpace::default();
        let first = take(&mut space, 0, GRANULE).unwrap();
        let second = take(&mut space, 0, 3 * GRANULE).unwrap();
        assert_eq!(second, first + GRANULE);
        assert_eq!(space.give_back(first), Some((GRANULE, ())));
        let third = take(&mut space, 0, 2 * GRANULE).unwrap();
        assert_eq!(third, second + 3 * GRANULE, "the gap of one unit is too small");
        assert_eq!(take(&mut space, 0, GRANULE), Some(first));
    }

    #[test]
    fn an_address_belongs_to_one_device() {
        let mut spaces = [AddressSpace::default(), AddressSpace::default()];
        for (ordinal, space) in spaces.iter_mut().enumerate() {
            let address = take(space, ordinal, GRANULE).unwrap();
            assert_eq!(ordinal_of(address as *const c_void), Some(ordinal));
            assert_eq!(space.range_of(address + 7), Some((address, GRANULE, ())));
            assert_eq!(space.range_of(address + GRANULE), None);
            assert_eq!(
                addresses(ordinal).start - offset_of(address),
                addresses(ordinal).start - FIRST
            );
        }
        assert_eq!(ordinal_of(std::ptr::null()), None);
        assert_eq!(ordinal_of(&raw const spaces as *const c_void), None);
    }

    #[test]
    fn a_device_hands_out_no_more_than_its_range() {
        assert_eq!(take(&mut AddressSpace::default(), 0, 1 << SHIFT), None);
        assert_eq!(take(&mut AddressSpace::default(), 0, u64::MAX), None);
    }

    #[test]
    fn no_bytes_take_nothing_and_leave_what_is_there() {
        let mut space = AddressSpace::default();
        let address = take(&mut space, 0, GRANULE).unwrap();
        assert_eq!(take(&mut space, 0, 0), None);
        assert!(!space.take_at(address, 0, ()));
        assert!(!space.take_at(u64::MAX, 2, ()));
        assert_eq!(space.range_of(address), Some((address, GRANULE, ())));
    }

    #[test]
    fn an_alignment_is_kept_and_an_address_taken_only_if_it_is_free() {
        let mut space = AddressSpace::default();
        let first = take(&mut space, 0, GRANULE).unwrap();
        let aligned = space.take(addresses(0), GRANULE, 16 * GRANULE, ()).unwrap();
        assert_eq!(aligned % (16 * GRANULE), 0);
        assert!(!space.take_at(first, GRANULE, ()));
        assert!(!space.take_at(first - GRANULE, 2 * GRANULE, ()));
        assert!(space.take_at(first + GRANULE, GRANULE, ()));
    }
}
