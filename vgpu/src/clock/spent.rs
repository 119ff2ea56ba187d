//! What a device's time went into: by what work waits for, and work by work.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use vramfit_vgpu_cost::{Bound, Price, Speed, Work, price};
use vramfit_vgpu_schema::PricedWork;

use super::Moment;
use crate::by_address::AddressHasher;

/// Different works that are kept apart. A program whose shapes never repeat must not fill the memory; what
/// comes after is priced each time and listed nowhere.
const MOST_WORKS: usize = 1 << 16;

/// Cumulative nanoseconds of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) compute: u64,
    pub(crate) memory: u64,
    pub(crate) launch: u64,
    pub(crate) transfer: u64,
}

impl Spent {
    pub(super) fn add(&mut self, bound: Bound, nanoseconds: u64) {
        *match bound {
            Bound::Compute => &mut self.compute,
            Bound::Memory => &mut self.memory,
            Bound::Launch => &mut self.launch,
            Bound::Transfer => &mut self.transfer,
        } += nanoseconds;
    }
}

/// By the name, as the address of its text, and the work.
type ByWork = HashMap<(usize, Work), Entry, BuildHasherDefault<AddressHasher>>;

/// The works that a device was given, each priced once.
#[derive(Default)]
pub(super) struct Works(ByWork);

struct Entry {
    name: &'static str,
    price: (u64, Bound),
    count: u64,
    nanoseconds: u64,
}

/// Nanoseconds of so many seconds.
pub(super) fn nanoseconds(seconds: f64) -> Moment {
    (seconds * 1e9).round() as Moment
}

fn rounded(price: Price) -> (u64, Bound) {
    (nanoseconds(price.seconds), price.bound)
}

impl Works {
    /// Nanoseconds that `work`, called `name`, takes once more on a device of that speed, `saved` less
    /// than its price.
    pub(super) fn take(
        &mut self,
        name: &'static str,
        work: &Work,
        speed: &Speed,
        saved: u64,
    ) -> (u64, Bound) {
        let key = (name.as_ptr() as usize, *work);
        if let Some(entry) = self.0.get_mut(&key) {
            return entry.take(saved);
        }
        let price = rounded(price(work, speed));
        let mut entry = Entry { name, price, count: 0, nanoseconds: 0 };
        let taken = entry.take(saved);
        if self.0.len() < MOST_WORKS {
            self.0.insert(key, entry);
        }
        taken
    }

    /// All of them, in no order. The same text may lie at several places.
    pub(super) fn list(&self) -> impl Iterator<Item = PricedWork> {
        self.0.iter().map(|((_, work), entry)| PricedWork {
            name: entry.name.to_owned(),
            work: *work,
            count: entry.count,
            seconds: entry.nanoseconds as f64 / 1e9,
        })
    }
}

impl Entry {
    fn take(&mut self, saved: u64) -> (u64, Bound) {
        let (price, bound) = self.price;
        let taken = price.saturating_sub(saved);
        self.count += 1;
        self.nanoseconds += taken;
        (taken, bound)
    }
}
