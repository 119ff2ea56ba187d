//! Communicators: who takes part, and in which room they meet.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use vramfit_vgpu_schema::{Description, folder};

use super::room::Room;
use super::{Failure, buffers, status};
use crate::handles::Handles;
use crate::{activity, device, memory, runtime};

/// One rank's end of a communicator.
pub(super) struct Communicator {
    /// Also the handle's identity in lanes of a group.
    pub(super) name: u64,
    pub(super) room: Room,
    pub(super) rank: usize,
    /// CUDA ordinal of its device.
    pub(super) ordinal: usize,
    /// Number of the next collective.
    pub(super) next: AtomicU64,
    /// Communicators made from this one, so that their rooms have names of their own.
    pub(super) children: AtomicU64,
    /// Set once a call failed: the ranks are out of step from then on.
    failure: AtomicI32,
    aborted: AtomicBool,
    /// Addresses of NCCL's own buffers, by peer; `None` for those of collectives.
    buffers: Mutex<HashMap<Option<usize>, usize>>,
}

static COMMUNICATORS: Handles<Communicator> = Handles::new();

/// A communicator by its handle.
pub(super) fn communicator(handle: *mut c_void) -> Result<Arc<Communicator>, Failure> {
    COMMUNICATORS
        .get(handle)
        .ok_or_else(|| Failure::argument(format!("{handle:?} is no communicator")))
}

/// FNV-1a, 64 bits: names of rooms are digests of what the ranks agree on.
pub(super) fn digest(parts: &[&[u8]]) -> u64 {
    parts.iter().flat_map(|part| part.iter()).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A failure of CUDA on NCCL's behalf.
pub(super) fn cuda_failure(error: runtime::status::Status) -> Failure {
    let text = runtime::status::words(error).map(|(.., meaning)| meaning.to_string_lossy());
    Failure::new(status::UNHANDLED_CUDA_ERROR, text.unwrap_or_default())
}

/// Joins the communicator `name` as `rank` of `ranks`, on the calling thread's device. The others may
/// not have come yet.
pub(super) fn join(name: u64, ranks: usize, rank: usize) -> Result<Arc<Communicator>, Failure> {
    let machine = runtime::ready().map_err(cuda_failure)?;
    if ranks == 0 || rank >= ranks {
        return Err(Failure::argument(format!("rank {rank} of {ranks} ranks")));
    }
    if ranks > Description::MAX_DEVICES {
        let most = Description::MAX_DEVICES;
        return Err(Failure::argument(format!(
            "{ranks} ranks: the virtual GPU has NCCL for one host, with at most {most} devices"
        )));
    }
    let ordinal = device::current();
    device::make_context(ordinal).map_err(|error| cuda_failure(error.into()))?;
    let path = machine.folder.join(folder::communicator(name));
    let room = Room::open(path.clone(), ranks).map_err(|error| {
        Failure::new(status::SYSTEM_ERROR, format!("cannot open {}: {error}", path.display()))
    })?;
    if !room.join(rank, machine.visible()[ordinal]) {
        return Err(Failure::argument(format!("rank {rank} has joined already")));
    }
    Ok(Arc::new(Communicator::new(name, room, rank, ordinal)))
}

impl Communicator {
    /// The end of `rank`, which has its seat in `room`.
    pub(super) fn new(name: u64, room: Room, rank: usize, ordinal: usize) -> Self {
        Self {
            name,
            room,
            rank,
            ordinal,
            next: AtomicU64::new(0),
            children: AtomicU64::new(0),
            failure: AtomicI32::new(status::SUCCESS),
            aborted: AtomicBool::new(false),
            buffers: Mutex::default(),
        }
    }

    pub(super) fn ranks(&self) -> usize {
        self.room.ranks()
    }

    /// Makes a handle for a program.
    pub(super) fn publish(self: Arc<Self>) -> *mut c_void {
        COMMUNICATORS.insert_shared(self)
    }

    /// Name of the room of the next communicator made from this one.
    pub(super) fn child(&self, color: i32) -> u64 {
        let number = self.children.fetch_add(1, Ordering::Relaxed);
        digest(&[&self.name.to_le_bytes(), &number.to_le_bytes(), &color.to_le_bytes()])
    }

    /// Fails if an earlier call on this communicator failed.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.aborted.load(Ordering::Acquire) {
            return Err(Failure::new(status::INVALID_USAGE, "the communicator was aborted"));
        }
        match self.failure() {
            status::SUCCESS => Ok(()),
            failed => Err(Failure::new(failed, "an earlier call on this communicator failed")),
        }
    }

    /// What `ncclCommGetAsyncError` tells.
    pub(super) fn failure(&self) -> i32 {
        self.failure.load(Ordering::Acquire)
    }

    /// Notes that a call failed.
    pub(super) fn fail(&self, failure: &Failure) {
        self.failure.store(failure.status, Ordering::Release);
    }

    /// Charges NCCL's buffers for collectives, or for messages with `peer`, at their first use.
    pub(super) fn connect(&self, peer: Option<usize>) -> Result<(), Failure> {
        let bytes = match peer {
            None => buffers::collective_bytes(self.ranks()),
            Some(peer) if peer == self.rank => 0,
            Some(_) => buffers::peer_bytes(),
        };
        let mut held = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes == 0 || held.contains_key(&peer) {
            return Ok(());
        }
        activity::estimate(buffers::BASIS);
        let address =
            memory::allocate_on(self.ordinal, bytes).map_err(|error| cuda_failure(error.into()))?;
        held.insert(peer, address as usize);
        Ok(())
    }

    /// Ends this rank's part; waits of other threads end too. Its buffers are freed.
    fn leave(&self) {
        self.aborted.store(true, Ordering::Release);
        let mut held = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, address) in held.drain() {
            memory::free(address as *mut c_void);
        }
        self.room.leave(self.rank);
    }
}

/// Ends the communicator behind `handle`.
pub(super) fn destroy(handle: *mut c_void) -> Result<(), Failure> {
    if handle.is_null() {
        return Ok(());
    }
    communicator(handle)?.leave();
    COMMUNICATORS.remove(handle);
    Ok(())
}
