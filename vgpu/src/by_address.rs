//! Maps keyed by addresses and handles, which each launch and each library call looks up.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from an address or a handle.
pub(crate) type ByAddress<V> = HashMap<usize, V, BuildHasherDefault<AddressHasher>>;

/// Addresses are spread well enough by one multiplication; SipHash would cost more than the look-up.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
