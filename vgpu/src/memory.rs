//! Device memory: contexts, allocations and the capacity they are held to.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use vramfit_vgpu_schema::Description;

use crate::address_space::{self, AddressSpace};
use crate::device::{self, Machine};
use crate::{activity, processes, timeline};

/// The device has not that much memory left.
#[derive(Debug)]
pub(crate) struct OutOfMemory;

/// What this process holds on one device, in bytes.
#[derive(Default)]
pub(crate) struct Holdings {
    space: AddressSpace,
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

fn charge(
    machine: &Machine,
    ordinal: usize,
    held: &mut Holdings,
    bytes: u64,
) -> Result<(), OutOfMemory> {
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
    let machine = device::machine().ok_or(OutOfMemory)?;
    let length = address_space::round_up(bytes).ok_or(OutOfMemory)?;
    let mut held = holdings(ordinal);
    charge(machine, ordinal, &mut held, length)?;
    let Some(address) = held.space.take(ordinal, length) else {
        discharge(machine, ordinal, &mut held, length);
        return Err(OutOfMemory);
    };
    if let Err(error) = address_space::map(address, length) {
        activity::internal_error(format!(
            "the host gave no address space for {length} bytes: {error}"
        ));
        held.space.give_back(address);
        discharge(machine, ordinal, &mut held, length);
        return Err(OutOfMemory);
    }
    Ok(address as *mut c_void)
}

/// Frees what [`allocate`] returned; false for any other pointer. A null pointer is fine. A forked
/// process frees nothing: what it inherited is charged to its parent.
pub(crate) fn free(pointer: *mut c_void) -> bool {
    if pointer.is_null() {
        return true;
    }
    if device::forked() {
        return false;
    }
    let (Some(ordinal), Some(machine)) = (address_space::ordinal_of(pointer), device::machine())
    else {
        return false;
    };
    if ordinal >= machine.visible().len() {
        return false;
    }
    let mut held = holdings(ordinal);
    let Some(length) = held.space.give_back(pointer as u64) else { return false };
    address_space::unmap(pointer as u64, length);
    discharge(machine, ordinal, &mut held, length);
    true
}

/// The allocation that holds `pointer`: its start and length in bytes.
pub(crate) fn allocation_of(pointer: *const c_void) -> Option<(u64, u64)> {
    let ordinal = address_space::ordinal_of(pointer)?;
    holdings(ordinal).space.range_of(pointer as u64)
}

/// Whether all `bytes` from `pointer` on lie within one allocation.
pub(crate) fn is_allocated(pointer: *const c_void, bytes: u64) -> bool {
    // A sum may wrap for a size that came from outside.
    allocation_of(pointer).is_some_and(|(start, length)| bytes <= length - (pointer as u64 - start))
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
