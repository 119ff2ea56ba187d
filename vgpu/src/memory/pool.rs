//! Memory pools of the stream-ordered allocator (`cudaMallocAsync`).
//!
//! How the driver grows a pool and packs blocks into it is not published. Here a pool grows by whole
//! chunks of 32 MiB, by less where that is all there is, and gives out the tightest fit; a freed block
//! can be had again at once, on any stream, since no work is ever under way. What is published is kept
//! to: a pool gives memory back when the host waits and more than its threshold is reserved (CUDA
//! programming guide, "stream-ordered memory allocator"), or when it is trimmed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use vramfit_vgpu_schema::Description;

use super::arena::{Arena, block_bytes};
use super::{OutOfMemory, Purpose};
use crate::{activity, address_space, memory};

const CHUNK: u64 = 32 << 20;

/// What the report says of pools.
const BASIS: &str = "memory pools (cudaMallocAsync): how the driver grows and packs them is not \
                     published; taken to grow by chunks of 32 MiB and to give out the tightest fit";

/// One pool. Attributes that only steer reuse are kept and change nothing.
pub(crate) struct Pool {
    /// CUDA ordinal of its device.
    pub(crate) ordinal: usize,
    /// Bytes that are kept when the host waits.
    threshold: AtomicU64,
    /// Reuse by event dependencies, opportunistically, by inserted dependencies.
    reuse: [AtomicBool; 3],
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    arena: Arena,
    /// The program ended it: it goes with its last block.
    ended: bool,
    reserved: Counter,
    used: Counter,
}

/// A number of bytes, and the highest it was since the last reset.
#[derive(Clone, Copy, Default)]
struct Counter {
    now: u64,
    high: u64,
}

impl Counter {
    fn add(&mut self, bytes: u64) {
        self.now += bytes;
        self.high = self.high.max(self.now);
    }
}

/// An attribute by its number (`cudaMemPoolAttr`, the same as `CUmemPool_attribute`).
pub(crate) mod attribute {
    pub(crate) const RELEASE_THRESHOLD: i32 = 4;
    pub(crate) const RESERVED: i32 = 5;
    pub(crate) const RESERVED_HIGH: i32 = 6;
    pub(crate) const USED: i32 = 7;
    pub(crate) const USED_HIGH: i32 = 8;
}

/// All pools that may have memory, to find the one that a pointer is of.
static POOLS: Mutex<Vec<Arc<Pool>>> = Mutex::new(Vec::new());
/// Whether there is any: programs without pools wait for the device as fast as before.
static ANY: AtomicBool = AtomicBool::new(false);

fn pools() -> MutexGuard<'static, Vec<Arc<Pool>>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pool that a device begins with.
pub(crate) fn default_of(ordinal: usize) -> Arc<Pool> {
    static DEFAULTS: [OnceLock<Arc<Pool>>; Description::MAX_DEVICES] =
        [const { OnceLock::new() }; Description::MAX_DEVICES];
    DEFAULTS[ordinal].get_or_init(|| Pool::new(ordinal)).clone()
}

impl Pool {
    /// An empty pool on CUDA ordinal `ordinal`.
    pub(crate) fn new(ordinal: usize) -> Arc<Self> {
        let pool = Arc::new(Self {
            ordinal,
            threshold: AtomicU64::new(0),
            reuse: [const { AtomicBool::new(true) }; 3],
            state: Mutex::default(),
        });
        pools().push(pool.clone());
        ANY.store(true, Ordering::Release);
        pool
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of at least `bytes`.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64, OutOfMemory> {
        memory::make_context(self.ordinal)?;
        activity::estimate(BASIS);
        let bytes = block_bytes(bytes).ok_or(OutOfMemory)?;
        let mut state = self.lock();
        let address = match state.arena.take(bytes) {
            Some(address) => address,
            None => {
                self.grow(&mut state, bytes)?;
                state.arena.take(bytes).ok_or(OutOfMemory)?
            }
        };
        state.used.add(bytes);
        Ok(address)
    }

    fn grow(&self, state: &mut State, bytes: u64) -> Result<(), OutOfMemory> {
        let exact = address_space::round_up(bytes).ok_or(OutOfMemory)?;
        let whole = bytes.checked_next_multiple_of(CHUNK).ok_or(OutOfMemory)?;
        let take = |length| {
            memory::take(self.ordinal, length, Purpose::Chunk, true).map(|at| (at, length))
        };
        let (address, length) = take(whole).or_else(|_| {
            self.trim_locked(state, 0);
            take(whole).or_else(|_| take(exact))
        })?;
        state.arena.add_chunk(address, length);
        state.reserved.add(length);
        Ok(())
    }

    /// Gives back chunks without blocks while more than `keep` bytes are reserved.
    pub(crate) fn trim(&self, keep: u64) {
        self.trim_locked(&mut self.lock(), keep);
    }

    fn trim_locked(&self, state: &mut State, keep: u64) {
        while state.reserved.now > keep
            && let Some((address, length)) = state.arena.remove_free_chunk()
        {
            memory::give_back(address, Purpose::Chunk, true);
            state.reserved.now -= length;
        }
    }

    /// Frees the block at `address`; whether its pool is gone with it, and none if it is of another pool.
    fn free(&self, address: u64) -> Option<bool> {
        let mut state = self.lock();
        state.used.now -= state.arena.give_back(address)?;
        Some(self.is_gone(&mut state))
    }

    /// Whether it has ended and nothing of it is in use, which is given back then.
    fn is_gone(&self, state: &mut State) -> bool {
        let gone = state.ended && state.used.now == 0;
        if gone {
            self.trim_locked(state, 0);
        }
        gone
    }

    /// The value of attribute `which`, if it is one.
    pub(crate) fn attribute(&self, which: i32) -> Option<u64> {
        let state = self.lock();
        Some(match which {
            1..=3 => self.reuse[which as usize - 1].load(Ordering::Relaxed).into(),
            attribute::RELEASE_THRESHOLD => self.threshold.load(Ordering::Relaxed),
            attribute::RESERVED => state.reserved.now,
            attribute::RESERVED_HIGH => state.reserved.high,
            attribute::USED => state.used.now,
            attribute::USED_HIGH => state.used.high,
            _ => return None,
        })
    }

    /// Sets attribute `which`; false for one that cannot be set so. The highest values can only be set
    /// to zero, which means to what they are now.
    pub(crate) fn set_attribute(&self, which: i32, value: u64) -> bool {
        let mut state = self.lock();
        match which {
            1..=3 => self.reuse[which as usize - 1].store(value != 0, Ordering::Relaxed),
            attribute::RELEASE_THRESHOLD => self.threshold.store(value, Ordering::Relaxed),
            attribute::RESERVED_HIGH if value == 0 => state.reserved.high = state.reserved.now,
            attribute::USED_HIGH if value == 0 => state.used.high = state.used.now,
            _ => return false,
        }
        true
    }
}

/// Frees a block of whichever pool it is of; false if it is of none.
pub(crate) fn free(address: u64) -> bool {
    if !ANY.load(Ordering::Acquire) {
        return false;
    }
    let mut pools = pools();
    let found = pools.iter().enumerate().find_map(|(place, it)| Some((place, it.free(address)?)));
    if let Some((place, true)) = found {
        pools.swap_remove(place);
    }
    found.is_some()
}

/// Ends a pool made by the program. What it still holds goes once it is freed.
pub(crate) fn destroy(pool: &Pool) {
    let mut pools = pools();
    let mut state = pool.lock();
    state.ended = true;
    pool.threshold.store(0, Ordering::Relaxed);
    pool.trim_locked(&mut state, 0);
    if pool.is_gone(&mut state) {
        pools.retain(|it| !std::ptr::eq(&raw const **it, pool));
    }
}

/// The host has waited for the device: pools give back what they need not keep.
pub(crate) fn synchronized() {
    if ANY.load(Ordering::Acquire) {
        for pool in pools().iter() {
            pool.trim(pool.threshold.load(Ordering::Relaxed));
        }
    }
}
