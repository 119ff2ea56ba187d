//! Making and ending communicators, and what one can be asked.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::communicator::{Communicator, communicator, destroy, digest, join};
use super::operation::{Exchange, Operation};
use super::{Failure, finish, group, status};
use crate::device;
use crate::entry::{Out, entry_points};

/// `ncclUniqueId`.
#[derive(Clone, Copy)]
#[repr(C)]
struct UniqueId([u8; 128]);

/// An identity that no other call in any process gets.
fn unique() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    digest(&[&std::process::id().to_le_bytes(), &time.to_le_bytes(), &count.to_le_bytes()])
}

/// A rank, or a number of ranks, that came from outside.
pub(super) fn rank_number(value: c_int) -> Result<usize, Failure> {
    usize::try_from(value).map_err(|_| Failure::argument(format!("{value} is no rank")))
}

/// Joins a communicator, waits for the others unless a group is open, and makes the handle.
fn initialize(
    handle: Out<*mut c_void>,
    name: u64,
    ranks: c_int,
    rank: c_int,
) -> Result<(), Failure> {
    handle.set(std::ptr::null_mut());
    let joined = join(name, rank_number(ranks)?, rank_number(rank)?)?;
    handle.set(Arc::clone(&joined).publish());
    group::submit(Operation::new(&joined, Exchange::Join))
}

/// Host values of all ranks of a communicator, each `N` bytes.
fn gathered<const N: usize>(
    communicator: &Arc<Communicator>,
    own: [u8; N],
) -> Result<Vec<[u8; N]>, Failure> {
    let mut all = vec![[0; N]; communicator.ranks()];
    let mut gather = Operation::new(communicator, Exchange::AllGather);
    gather.source = own.as_ptr().cast();
    gather.target = all.as_mut_ptr().cast();
    gather.bytes = N;
    // Not through `submit`: the answer is needed at once, inside a group too.
    group::run(vec![gather], group::PATIENCE)?;
    Ok(all)
}

/// `NCCL_SPLIT_NOCOLOR`.
const NO_COLOR: c_int = -1;

fn split(
    parent: *mut c_void,
    color: c_int,
    key: c_int,
    handle: Out<*mut c_void>,
) -> Result<(), Failure> {
    handle.set(std::ptr::null_mut());
    let parent = communicator(parent)?;
    parent.check()?;
    let mut own = [0; 8];
    own[..4].copy_from_slice(&color.to_le_bytes());
    own[4..].copy_from_slice(&key.to_le_bytes());
    let all = gathered(&parent, own)?;
    let name = parent.child(color);
    if color == NO_COLOR {
        return Ok(());
    }
    let number = |bytes: &[u8]| c_int::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let mut members: Vec<(c_int, usize)> = all
        .iter()
        .enumerate()
        .filter(|(_, entry)| number(&entry[..4]) == color)
        .map(|(rank, entry)| (number(&entry[4..]), rank))
        .collect();
    members.sort_unstable();
    let rank = members.iter().position(|(_, rank)| *rank == parent.rank).unwrap_or_default();
    initialize(handle, name, members.len() as c_int, rank as c_int)
}

fn shrink(
    parent: *mut c_void,
    excluded: *const c_int,
    excluded_count: c_int,
    handle: Out<*mut c_void>,
) -> Result<(), Failure> {
    handle.set(std::ptr::null_mut());
    let parent = communicator(parent)?;
    let count = rank_number(excluded_count)?;
    let excluded = if excluded.is_null() {
        &[]
    } else {
        // SAFETY: the interface asks for an array of that many ranks.
        unsafe { std::slice::from_raw_parts(excluded, count) }
    };
    let is_member = |rank: &usize| !excluded.contains(&(*rank as c_int));
    if !is_member(&parent.rank) {
        return Err(Failure::argument("a rank that is excluded must not call"));
    }
    let members = (0..parent.ranks()).filter(is_member).count();
    let rank = (0..parent.rank).filter(is_member).count();
    initialize(handle, parent.child(NO_COLOR), members as c_int, rank as c_int)
}

entry_points! {
    on_panic = status::INTERNAL_ERROR;

    /// An identity for a communicator to be; the program hands it to all ranks.
    fn ncclGetUniqueId(id: Out<UniqueId>) -> i32 {
        let mut bytes = [0; 128];
        bytes[..8].copy_from_slice(&unique().to_le_bytes());
        id.set(UniqueId(bytes));
        status::SUCCESS
    }

    fn ncclCommInitRank(handle: Out<*mut c_void>, ranks: c_int, id: UniqueId, rank: c_int) -> i32 {
        finish(initialize(handle, digest(&[&id.0]), ranks, rank))
    }

    /// The configuration says how NCCL uses the device, not what it returns. A call that may return
    /// before it is done may also return when it is.
    fn ncclCommInitRankConfig(handle: Out<*mut c_void>, ranks: c_int, id: UniqueId, rank: c_int,
        _configuration: *const c_void) -> i32 {
        finish(initialize(handle, digest(&[&id.0]), ranks, rank))
    }

    fn ncclCommInitRankScalable(handle: Out<*mut c_void>, ranks: c_int, rank: c_int, id_count: c_int,
        ids: *const UniqueId, _configuration: *const c_void) -> i32 {
        if ids.is_null() || id_count < 1 {
            return finish(Err(Failure::argument("no unique id")));
        }
        // SAFETY: not null; the interface asks for an array of `id_count` identities, at least one.
        let first = unsafe { ids.read_unaligned() };
        finish(initialize(handle, digest(&[&first.0]), ranks, rank))
    }

    /// One process, one thread, all ranks.
    fn ncclCommInitAll(handles: *mut *mut c_void, ranks: c_int, ordinals: *const c_int) -> i32 {
        let before = device::current();
        let name = unique();
        let result = rank_number(ranks).and_then(|ranks| (0..ranks).try_for_each(|rank| {
            // SAFETY: the list is null or has one ordinal a rank.
            let listed = (!ordinals.is_null()).then(|| unsafe { *ordinals.add(rank) });
            let ordinal = listed.map_or(Ok(rank), rank_number)?;
            if device::machine().is_none_or(|machine| ordinal >= machine.visible().len()) {
                return Err(Failure::argument(format!("{ordinal} is no device")));
            }
            device::set_current(ordinal);
            // SAFETY: the caller's array has room for one handle a rank.
            unsafe { handles.add(rank).write(join(name, ranks, rank)?.publish()) };
            Ok(())
        }));
        device::set_current(before);
        finish(result)
    }

    fn ncclCommSplit(parent: *mut c_void, color: c_int, key: c_int, handle: Out<*mut c_void>,
        _configuration: *const c_void) -> i32 {
        finish(split(parent, color, key, handle))
    }

    fn ncclCommShrink(parent: *mut c_void, excluded: *const c_int, excluded_count: c_int,
        handle: Out<*mut c_void>, _configuration: *const c_void, _flags: c_int) -> i32 {
        finish(shrink(parent, excluded, excluded_count, handle))
    }

    fn ncclCommDestroy(handle: *mut c_void) -> i32 {
        finish(destroy(handle))
    }

    fn ncclCommAbort(handle: *mut c_void) -> i32 {
        finish(destroy(handle))
    }

    /// Nothing is ever under way.
    fn ncclCommFinalize(handle: *mut c_void) -> i32 {
        finish(communicator(handle).map(|_| ()))
    }

    /// What broke the communicator. Calls wait for the result, so that nothing fails after they return.
    fn ncclCommGetAsyncError(handle: *mut c_void, answer: Out<c_int>) -> i32 {
        finish(communicator(handle).map(|it| answer.set(it.failure())))
    }

    fn ncclCommCount(handle: *mut c_void, count: Out<c_int>) -> i32 {
        finish(communicator(handle).map(|it| count.set(it.ranks() as c_int)))
    }

    fn ncclCommUserRank(handle: *mut c_void, rank: Out<c_int>) -> i32 {
        finish(communicator(handle).map(|it| rank.set(it.rank as c_int)))
    }

    fn ncclCommCuDevice(handle: *mut c_void, ordinal: Out<c_int>) -> i32 {
        finish(communicator(handle).map(|it| ordinal.set(it.ordinal as c_int)))
    }

    /// Registered buffers only make transfers faster.
    fn ncclCommRegister(handle: *mut c_void, buffer: *mut c_void, _bytes: usize,
        registration: Out<*mut c_void>) -> i32 {
        finish(communicator(handle).map(|_| registration.set(buffer)))
    }

    fn ncclCommDeregister(handle: *mut c_void, _registration: *mut c_void) -> i32 {
        finish(communicator(handle).map(|_| ()))
    }
}
