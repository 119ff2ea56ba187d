//! Device memory: contexts, allocations and the capacity they are held to.

mod arena;
mod backing;
pub(crate) mod graph;
pub(crate) mod pool;
pub(crate) mod shared;
pub(crate) mod virtual_memory;

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use vramfit_vgpu_schema::Description;

use crate::address_space::{self, AddressSpace, GRANULE};
use crate::device::{self, Machine};
use crate::{activity, processes, timeline};

/// The device has not that much memory left.
#[derive(Debug)]
pub(crate) struct OutOfMemory;

/// What a range of device addresses is used for, which says how it is given back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// `cudaMalloc`.
    Allocation,
    /// Grown by a pool or a graph, which hand out parts of it.
    Chunk,
    /// Addresses alone, into which [`virtual_memory`] maps.
    Reservation,
    /// Another process's allocation.
    Import,
}

/// What this process holds on one device, in bytes.
#[derive(Default)]
pub(crate) struct Holdings {
    space: AddressSpace<Purpose>,
    /// What is mapped into reservations: the handle of what is behind it.
    mapped: AddressSpace<usize>,
    /// What was created to be mapped, by place in the device's file.
    physical: AddressSpace<()>,
    /// Charged for the context, once it is made.
    pub(crate) context: Option<u64>,
    /// Context and allocations.
    pub(crate) used: u64,
    /// Highest `used`.
    pub(crate) peak: u64,
    /// Highest use by all processes, as seen when this one charged.
    pub(crate) device_peak: u64,
}

static HOLDINGS: LazyLock<[Mutex<Holdings>; Description::MAX_DEVICES]> =
    LazyLock::new(Default::default);

/// What this process holds on CUDA ordinal `ordinal`.
pub(crate) fn holdings(ordinal: usize) -> MutexGuard<'static, Holdings> {
    HOLDINGS[ordinal].lock().unwrap_or_else(PoisonError::into_inner)
}

/// One bit for each ordinal with a context: each launch asks, and must not wait for a lock.
static CONTEXTS: AtomicU32 = AtomicU32::new(0);

/// PyTorch's own figures for one small tensor, with all code loaded and with what is needed
/// (pytorch/pytorch#86509).
const EAGER: &str = "context: that of code loaded when it is first needed; CUDA_MODULE_LOADING=EAGER \
     loads all at once, which took 362 MiB more with PyTorch 1.13";

/// See [`device::make_context`].
pub(crate) fn make_context(ordinal: usize) -> Result<(), OutOfMemory> {
    if has_context(ordinal) {
        return Ok(());
    }
    let Some(machine) = device::machine() else { return Err(OutOfMemory) };
    let Some(device) = machine.device(ordinal) else { return Err(OutOfMemory) };
    let mut held = holdings(ordinal);
    if held.context.is_some() {
        return Ok(());
    }
    charge(machine, ordinal, &mut held, device.context_bytes)?;
    held.context = Some(device.context_bytes);
    if std::env::var_os("CUDA_MODULE_LOADING").is_some_and(|mode| mode == "EAGER") {
        activity::estimate(EAGER);
    }
    CONTEXTS.fetch_or(1 << ordinal, Ordering::Release);
    Ok(())
}

/// Whether this process has a context on `ordinal`.
pub(crate) fn has_context(ordinal: usize) -> bool {
    CONTEXTS.load(Ordering::Acquire) & (1 << ordinal) != 0
}

/// Charges `bytes` to this process. To a forked child nothing can be: its slot is its parent's.
fn charge(
    machine: &Machine,
    ordinal: usize,
    held: &mut Holdings,
    bytes: u64,
) -> Result<(), OutOfMemory> {
    if device::forked() {
        return Err(OutOfMemory);
    }
    let index = machine.visible()[ordinal];
    let device = &machine.description.devices[index];
    let capacity = device.usable_memory_bytes - device.held_memory_bytes;
    let in_use = processes::charge(machine, index, bytes, capacity).ok_or(OutOfMemory)?;
    held.used += bytes;
    held.peak = held.peak.max(held.used);
    held.device_peak = held.device_peak.max(in_use);
    timeline::note(ordinal, held.used);
    Ok(())
}

fn discharge(machine: &Machine, ordinal: usize, held: &mut Holdings, bytes: u64) {
    held.used -= bytes;
    processes::discharge(machine, machine.visible()[ordinal], bytes);
    timeline::note(ordinal, held.used);
}

/// Allocates `bytes` on the calling thread's device; the driver gives whole units of 2 MiB.
/// No bytes are a null pointer.
pub(crate) fn allocate(bytes: u64) -> Result<*mut c_void, OutOfMemory> {
    allocate_on(device::current(), bytes)
}

/// As [`allocate`], on CUDA ordinal `ordinal`.
pub(crate) fn allocate_on(ordinal: usize, bytes: u64) -> Result<*mut c_void, OutOfMemory> {
    make_context(ordinal)?;
    if bytes == 0 {
        return Ok(std::ptr::null_mut());
    }
    let length = address_space::round_up(bytes).ok_or(OutOfMemory)?;
    let address = take(ordinal, length, Purpose::Allocation, true)?;
    Ok(address as *mut c_void)
}

/// Takes `length` bytes of addresses with memory behind them, and charges for them if `charged`.
fn take(ordinal: usize, length: u64, purpose: Purpose, charged: bool) -> Result<u64, OutOfMemory> {
    let machine = device::machine().ok_or(OutOfMemory)?;
    let mut held = holdings(ordinal);
    if charged {
        charge(machine, ordinal, &mut held, length)?;
    }
    let placed = place(ordinal, &mut held, length, purpose);
    if placed.is_none() && charged {
        discharge(machine, ordinal, &mut held, length);
    }
    placed.ok_or(OutOfMemory)
}

fn place(ordinal: usize, held: &mut Holdings, length: u64, purpose: Purpose) -> Option<u64> {
    let address = held.space.take(address_space::addresses(ordinal), length, GRANULE, purpose)?;
    let offset = address_space::offset_of(address);
    let mapped = backing::file(ordinal).and_then(|it| backing::map(address, length, it, offset));
    if let Err(error) = mapped {
        activity::internal_error(format!(
            "the host gave no address space for {length} bytes: {error}"
        ));
        held.space.give_back(address);
        return None;
    }
    Some(address)
}

/// Gives back what [`take`] took at `address` for `purpose`; false if it took nothing there. A forked
/// process gives nothing back: what it inherited is its parent's, and charged to it.
fn give_back(address: u64, purpose: Purpose, charged: bool) -> bool {
    let (Some(ordinal), Some(machine)) =
        (address_space::ordinal_of(address as *const c_void), device::machine())
    else {
        return false;
    };
    if ordinal >= machine.visible().len() || device::forked() {
        return false;
    }
    let mut held = holdings(ordinal);
    let Some((start, length, found)) = held.space.range_of(address) else { return false };
    if start != address || found != purpose {
        return false;
    }
    held.space.give_back(address);
    backing::unmap(address, length);
    if let Ok(file) = backing::file(ordinal) {
        backing::discard(file, address_space::offset_of(address), length);
    }
    if charged {
        discharge(machine, ordinal, &mut held, length);
    }
    true
}

/// Frees what [`allocate`] returned; false for any other pointer. A null pointer is fine.
pub(crate) fn free(pointer: *mut c_void) -> bool {
    pointer.is_null() || give_back(pointer as u64, Purpose::Allocation, true)
}

/// What holds `pointer`, an allocation or one mapping of a reservation: its start and length in bytes.
pub(crate) fn allocation_of(pointer: *const c_void) -> Option<(u64, u64)> {
    let held = holdings(address_space::ordinal_of(pointer)?);
    match held.space.range_of(pointer as u64)? {
        (.., Purpose::Reservation) => {
            held.mapped.range_of(pointer as u64).map(|(start, length, _)| (start, length))
        }
        (start, length, _) => Some((start, length)),
    }
}

/// Whether all `bytes` from `pointer` on lie within one allocation, or within mappings that follow one
/// another in one reservation.
pub(crate) fn is_allocated(pointer: *const c_void, bytes: u64) -> bool {
    let Some(ordinal) = address_space::ordinal_of(pointer) else { return false };
    let held = holdings(ordinal);
    let address = pointer as u64;
    let Some((start, length, purpose)) = held.space.range_of(address) else { return false };
    // A sum may wrap for a size that came from outside.
    if bytes > length - (address - start) {
        return false;
    }
    if purpose != Purpose::Reservation {
        return true;
    }
    let end = address + bytes;
    let mut covered = address;
    while covered < end {
        let Some((start, length, _)) = held.mapped.range_of(covered) else { return false };
        covered = start + length;
    }
    bytes > 0 || held.mapped.range_of(address).is_some()
}

/// Free and total bytes of CUDA ordinal `ordinal`, as `cudaMemGetInfo` tells them. Makes the context.
pub(crate) fn info(ordinal: usize) -> Result<(u64, u64), OutOfMemory> {
    make_context(ordinal)?;
    let machine = device::machine().ok_or(OutOfMemory)?;
    let index = machine.visible()[ordinal];
    let device = &machine.description.devices[index];
    let taken = device.held_memory_bytes + processes::total(machine, index);
    Ok((device.usable_memory_bytes.saturating_sub(taken), device.usable_memory_bytes))
}
