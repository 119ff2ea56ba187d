//! Memory of graphs: what is allocated while a stream is captured (`cudaMallocAsync` as a node).
//!
//! Addresses are fixed when the node is made, memory comes with the first launch and stays until the
//! graph is gone (CUDA programming guide, "graph memory nodes"). Blocks whose lifetimes do not overlap
//! share memory here; how the driver packs them is not published.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vramfit_vgpu_schema::Description;

use super::arena::{Arena, block_bytes};
use super::{OutOfMemory, Purpose};
use crate::{activity, address_space, device, memory};

const BASIS: &str = "memory of CUDA graphs that allocate (cudaMallocAsync within a capture): how the \
                     driver packs it is not published; taken to be shared by what is not alive at \
                     the same time, from the first launch until the graph is destroyed";

/// What one graph allocates.
pub(crate) struct GraphMemory {
    ordinal: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    arena: Arena,
    /// Charged since the first launch.
    charged: u64,
    /// No graph can be launched any more that uses it.
    abandoned: bool,
}

/// To find the one that a pointer is of.
static ALL: Mutex<Vec<Arc<GraphMemory>>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<Arc<GraphMemory>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GraphMemory {
    /// Nothing yet, on CUDA ordinal `ordinal`.
    pub(crate) fn new(ordinal: usize) -> Arc<Self> {
        let memory = Arc::new(Self { ordinal, state: Mutex::default() });
        all().push(memory.clone());
        memory
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of at least `bytes`, whose address stays the same in all launches.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64, OutOfMemory> {
        memory::make_context(self.ordinal)?;
        activity::estimate(BASIS);
        let bytes = block_bytes(bytes).ok_or(OutOfMemory)?;
        let mut state = self.lock();
        if let Some(address) = state.arena.take(bytes) {
            return Ok(address);
        }
        let length = address_space::round_up(bytes).ok_or(OutOfMemory)?;
        let chunk = memory::take(self.ordinal, length, Purpose::Chunk, false)?;
        state.arena.add_chunk(chunk, length);
        state.arena.take(bytes).ok_or(OutOfMemory)
    }

    /// Frees a block within the capture that allocated it: the next may use its memory.
    pub(crate) fn free(&self, address: u64) -> bool {
        self.lock().arena.give_back(address).is_some()
    }

    /// Sees to the memory that a launch needs.
    pub(crate) fn launched(&self) -> Result<(), OutOfMemory> {
        let mut state = self.lock();
        let missing = state.arena.length() - state.charged;
        if missing > 0 {
            let machine = device::machine().ok_or(OutOfMemory)?;
            let mut held = memory::holdings(self.ordinal);
            memory::charge(machine, self.ordinal, &mut held, missing)?;
            state.charged += missing;
            reserved(self.ordinal, |it| {
                it.now += missing;
                it.high = it.high.max(it.now);
            });
        }
        Ok(())
    }

    /// No graph uses this memory any more. Blocks that outlive the graph keep theirs until they are freed.
    fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        self.release_unused(&mut state);
        drop(state);
        forget_empty();
    }

    fn release_unused(&self, state: &mut State) {
        if !state.abandoned {
            return;
        }
        while let Some((address, length)) = state.arena.remove_free_chunk() {
            if !memory::give_back(address, Purpose::Chunk, false) {
                return;
            }
            let charged = length.min(state.charged);
            if let Some(machine) = device::machine() {
                let mut held = memory::holdings(self.ordinal);
                memory::discharge(machine, self.ordinal, &mut held, charged);
            }
            reserved(self.ordinal, |it| it.now -= charged);
            state.charged -= charged;
        }
    }

    fn free_outside(&self, address: u64) -> bool {
        let mut state = self.lock();
        let was_there = state.arena.give_back(address).is_some();
        self.release_unused(&mut state);
        was_there
    }
}

/// Whether a block of a graph starts at `address`.
pub(crate) fn holds(address: u64) -> bool {
    all().iter().any(|it| it.lock().arena.has_block(address))
}

/// What graphs hold of a device's memory: now, and at most since the last reset.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reserved {
    pub(crate) now: u64,
    pub(crate) high: u64,
}

static RESERVED: Mutex<[Reserved; Description::MAX_DEVICES]> =
    Mutex::new([Reserved { now: 0, high: 0 }; Description::MAX_DEVICES]);

/// Runs `body` on what graphs hold on CUDA ordinal `ordinal`.
pub(crate) fn reserved<R>(ordinal: usize, body: impl FnOnce(&mut Reserved) -> R) -> R {
    body(&mut RESERVED.lock().unwrap_or_else(PoisonError::into_inner)[ordinal])
}

/// Frees a block of a graph outside of it; false if it is of none. Later launches use its memory again.
pub(crate) fn free(address: u64) -> bool {
    let found = all().iter().any(|it| it.free_outside(address));
    if found {
        forget_empty();
    }
    found
}

/// The graphs that can still be launched with some memory: the last of them gives it up.
pub(crate) struct Lease(Arc<GraphMemory>);

impl Lease {
    pub(crate) fn new(memory: Arc<GraphMemory>) -> Self {
        Self(memory)
    }
}

impl std::ops::Deref for Lease {
    type Target = GraphMemory;

    fn deref(&self) -> &GraphMemory {
        &self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn forget_empty() {
    all().retain(|it| {
        let state = it.lock();
        !state.abandoned || state.arena.length() > 0
    });
}
