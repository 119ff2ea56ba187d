//! Virtual memory management (`cuMemCreate`, `cuMemMap`, …): memory and addresses apart, which is how
//! PyTorch's segments expand. Capacity is charged for memory, not for addresses.

use std::ffi::c_void;
use std::fs::File;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Holdings, Purpose, backing, shared};
use crate::address_space::{self, GRANULE};
use crate::handles::Handles;
use crate::memory::OutOfMemory;
use crate::{activity, device, memory};

/// Why a call fails.
pub(crate) enum Failure {
    /// An argument names nothing that there is, or not all of it.
    Invalid,
    /// The device has not that much memory left.
    OutOfMemory,
}

impl From<OutOfMemory> for Failure {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

/// Memory that can be mapped.
pub(crate) struct Physical {
    /// CUDA ordinal of its device.
    pub(crate) ordinal: usize,
    bytes: u64,
    offset: u64,
    source: Source,
    uses: Mutex<Uses>,
}

/// Whose file it lies in.
enum Source {
    Own,
    /// Another process's, which is charged for it.
    Imported(File),
}

/// How many handles to it there are, and how many mappings. When the last is gone, it is freed.
struct Uses {
    handles: usize,
    mappings: usize,
}

static PHYSICAL: Handles<Physical> = Handles::new();

impl Physical {
    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What `handle` names, while there is a handle or a mapping.
pub(crate) fn physical(handle: u64) -> Result<Arc<Physical>, Failure> {
    PHYSICAL.get(handle as *mut c_void).ok_or(Failure::Invalid)
}

/// Memory of `bytes` on CUDA ordinal `ordinal`; the handle to it.
pub(crate) fn create(ordinal: usize, bytes: u64) -> Result<u64, Failure> {
    if bytes == 0 || !bytes.is_multiple_of(GRANULE) {
        return Err(Failure::Invalid);
    }
    memory::make_context(ordinal)?;
    let machine = device::machine().ok_or(Failure::Invalid)?;
    let mut held = memory::holdings(ordinal);
    memory::charge(machine, ordinal, &mut held, bytes)?;
    let within = backing::PHYSICAL..2 * backing::PHYSICAL;
    let Some(offset) = held.physical.take(within, bytes, GRANULE, ()) else {
        memory::discharge(machine, ordinal, &mut held, bytes);
        return Err(Failure::OutOfMemory);
    };
    drop(held);
    Ok(insert(ordinal, bytes, offset, Source::Own))
}

fn insert(ordinal: usize, bytes: u64, offset: u64, source: Source) -> u64 {
    let uses = Mutex::new(Uses { handles: 1, mappings: 0 });
    PHYSICAL.insert(Physical { ordinal, bytes, offset, source, uses }) as u64
}

/// One more handle to what is mapped at `address`.
pub(crate) fn retain(address: u64) -> Result<u64, Failure> {
    let ordinal = ordinal_of(address)?;
    let (.., handle) =
        memory::holdings(ordinal).mapped.range_of(address).ok_or(Failure::Invalid)?;
    physical(handle as u64)?.uses().handles += 1;
    Ok(handle as u64)
}

/// Lets go of a handle.
pub(crate) fn release(handle: u64) -> Result<(), Failure> {
    let memory = physical(handle)?;
    let mut uses = memory.uses();
    uses.handles = uses.handles.checked_sub(1).ok_or(Failure::Invalid)?;
    let unused = uses.handles == 0 && uses.mappings == 0;
    drop(uses);
    if unused {
        end(handle, &memory);
    }
    Ok(())
}

/// Frees memory without handles and mappings.
fn end(handle: u64, memory: &Physical) {
    if !PHYSICAL.remove(handle as *mut c_void) || device::forked() {
        return;
    }
    if let (Source::Own, Some(machine)) = (&memory.source, device::machine()) {
        let mut held = memory::holdings(memory.ordinal);
        held.physical.give_back(memory.offset);
        if let Ok(file) = backing::file(memory.ordinal) {
            backing::discard(file, memory.offset, memory.bytes);
        }
        memory::discharge(machine, memory.ordinal, &mut held, memory.bytes);
    }
}

fn ordinal_of(address: u64) -> Result<usize, Failure> {
    address_space::ordinal_of(address as *const c_void).ok_or(Failure::Invalid)
}

/// Reserves `bytes` of addresses of CUDA ordinal `ordinal` at a multiple of `alignment` (0: any).
pub(crate) fn reserve(ordinal: usize, bytes: u64, alignment: u64) -> Result<u64, Failure> {
    let alignment = alignment.max(GRANULE);
    if bytes == 0 || !bytes.is_multiple_of(GRANULE) || !alignment.is_power_of_two() {
        return Err(Failure::Invalid);
    }
    let within = address_space::addresses(ordinal);
    let mut held = memory::holdings(ordinal);
    held.space.take(within, bytes, alignment, Purpose::Reservation).ok_or(Failure::OutOfMemory)
}

/// Whether `bytes` bytes from `address` on lie in one reservation.
fn is_reserved(held: &Holdings, address: u64, bytes: u64) -> bool {
    held.space.range_of(address).is_some_and(|(start, length, purpose)| {
        purpose == Purpose::Reservation && bytes <= length - (address - start)
    })
}

/// Gives a whole reservation back, into which nothing is mapped.
pub(crate) fn unreserve(address: u64, bytes: u64) -> Result<(), Failure> {
    let mut held = memory::holdings(ordinal_of(address)?);
    let whole = held.space.range_of(address) == Some((address, bytes, Purpose::Reservation));
    let end = address.checked_add(bytes).ok_or(Failure::Invalid)?;
    if !whole || held.mapped.ranges_in(address..end).next().is_some() {
        return Err(Failure::Invalid);
    }
    held.space.give_back(address);
    Ok(())
}

/// Maps the memory of `handle` at `address`, all of it.
pub(crate) fn map(address: u64, bytes: u64, handle: u64) -> Result<(), Failure> {
    let ordinal = ordinal_of(address)?;
    let memory = physical(handle)?;
    let mut uses = memory.uses();
    let mut held = memory::holdings(ordinal);
    if uses.handles == 0
        || bytes != memory.bytes
        || !address.is_multiple_of(GRANULE)
        || !is_reserved(&held, address, bytes)
        || !held.mapped.take_at(address, bytes, handle as usize)
    {
        return Err(Failure::Invalid);
    }
    let mapped = match &memory.source {
        Source::Own => backing::file(memory.ordinal)
            .and_then(|file| backing::map(address, bytes, file, memory.offset)),
        Source::Imported(file) => backing::map(address, bytes, file, memory.offset),
    };
    if let Err(error) = mapped {
        activity::internal_error(format!("the host mapped not {bytes} bytes: {error}"));
        held.mapped.give_back(address);
        return Err(Failure::OutOfMemory);
    }
    uses.mappings += 1;
    Ok(())
}

/// The mappings that make up the `bytes` from `address` on exactly: start, length, handle.
fn mappings(held: &Holdings, address: u64, bytes: u64) -> Result<Vec<(u64, u64, usize)>, Failure> {
    let end = address.checked_add(bytes).ok_or(Failure::Invalid)?;
    let found: Vec<_> = held.mapped.ranges_in(address..end).collect();
    let next = |at: u64, &(start, length, _): &(u64, u64, usize)| {
        if start == at { Some(start + length) } else { None }
    };
    let covered = found.iter().try_fold(address, next);
    if bytes > 0 && covered == Some(end) { Ok(found) } else { Err(Failure::Invalid) }
}

/// Undoes mappings.
pub(crate) fn unmap(address: u64, bytes: u64) -> Result<(), Failure> {
    let ordinal = ordinal_of(address)?;
    let mut held = memory::holdings(ordinal);
    let found = mappings(&held, address, bytes)?;
    for (start, length, _) in &found {
        held.mapped.give_back(*start);
        backing::unmap(*start, *length);
    }
    drop(held);
    for (.., handle) in found {
        let memory = physical(handle as u64)?;
        let mut uses = memory.uses();
        uses.mappings -= 1;
        let unused = uses.handles == 0 && uses.mappings == 0;
        drop(uses);
        if unused {
            end(handle as u64, &memory);
        }
    }
    Ok(())
}

/// Whether the `bytes` from `address` on are mapped, all of them.
pub(crate) fn is_mapped(address: u64, bytes: u64) -> bool {
    memory::is_allocated(address as *const c_void, bytes)
}

/// A file descriptor by which another process can import the memory of `handle`.
pub(crate) fn export(handle: u64) -> Result<RawFd, Failure> {
    let memory = physical(handle)?;
    let Source::Own = memory.source else { return Err(Failure::Invalid) };
    let place = shared::Place::of(memory.ordinal, memory.offset, memory.bytes);
    place.and_then(shared::Place::into_descriptor).ok_or(Failure::Invalid)
}

/// The memory behind a descriptor that [`export`] made here or elsewhere; the descriptor stays the
/// caller's.
pub(crate) fn import(descriptor: RawFd) -> Result<u64, Failure> {
    let place = shared::Place::from_descriptor(descriptor).ok_or(Failure::Invalid)?;
    let (ordinal, file) = place.open().ok_or(Failure::Invalid)?;
    memory::make_context(device::current())?;
    Ok(insert(ordinal, place.bytes, place.offset, Source::Imported(file)))
}
