//! What processes hold on the virtual GPU, visible to all of them: a table in a file of the virtual
//! GPU's folder, mapped by each, one slot a process.
//!
//! A lock on the file orders charges, so that two processes never share the same last bytes; the
//! kernel drops it when its holder dies. It is a POSIX lock, which belongs to the process: a lock of
//! `flock` would belong to the open file, and so to a forked child as well. Slots of dead processes
//! are found by process id and start time and taken over.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use vramfit_vgpu_schema::{Description, folder};

use crate::device::{self, Machine};
use crate::{activity, shared_file};

/// What one process holds on one device.
pub(crate) struct Use {
    /// The process.
    pub(crate) pid: u32,
    /// Index in the description.
    pub(crate) device: usize,
    /// Context and allocations, in bytes.
    pub(crate) bytes: u64,
}

const SLOTS: usize = 1024;

/// All-zero bytes, as a fresh file has them, are a free slot.
#[repr(C)]
struct Slot {
    pid: AtomicU32,
    /// Clock ticks between boot and the start of the process: a process id alone is used again.
    start: AtomicU64,
    bytes: [AtomicU64; Description::MAX_DEVICES],
}

#[repr(C)]
struct Table {
    slots: [Slot; SLOTS],
}

struct Shared {
    table: &'static Table,
    file: File,
    /// Orders the threads of this process; the lock on the file orders processes only.
    threads: Mutex<()>,
    /// This process's slot, or [`NO_SLOT`]. Changed under the lock.
    own: AtomicUsize,
}

const NO_SLOT: usize = usize::MAX;

fn shared(machine: &Machine) -> Option<&'static Shared> {
    static SHARED: OnceLock<Option<Shared>> = OnceLock::new();
    SHARED
        .get_or_init(|| {
            open(machine)
                .map_err(|error| {
                    activity::internal_error(format!("no table of processes: {error}"));
                })
                .ok()
        })
        .as_ref()
}

fn open(machine: &Machine) -> std::io::Result<Shared> {
    let path = machine.folder.join(folder::PROCESSES);
    let (file, address) = shared_file::map(&path, size_of::<Table>())?;
    // SAFETY: the mapping is never undone, page-aligned, and holds only atomics, for which any bytes
    // are valid and which other processes may change at any time.
    let table = unsafe { &*address.cast::<Table>() };
    Ok(Shared { table, file, threads: Mutex::new(()), own: AtomicUsize::new(NO_SLOT) })
}

/// Holds the table against other threads and other processes.
struct Lock<'a> {
    file: &'a File,
    _threads: MutexGuard<'a, ()>,
}

impl Shared {
    fn lock(&self) -> Lock<'_> {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        // An interrupted wait is tried again.
        while set_lock(&self.file, libc::F_WRLCK)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::Interrupted)
        {}
        Lock { file: &self.file, _threads: threads }
    }

    fn live(&self) -> impl Iterator<Item = &Slot> {
        self.table.slots.iter().filter(|slot| {
            let pid = slot.pid.load(Ordering::Acquire);
            pid != 0 && is_alive(pid, slot.start.load(Ordering::Acquire))
        })
    }

    fn total(&self, device: usize) -> u64 {
        self.live().map(|slot| slot.bytes[device].load(Ordering::Acquire)).sum()
    }

    /// This process's slot, if it has one.
    fn own(&self, _lock: &Lock<'_>) -> Option<&Slot> {
        self.table.slots.get(self.own.load(Ordering::Relaxed))
    }

    /// This process's slot, taken if it has none.
    fn own_or_take(&self, lock: &Lock<'_>) -> Option<&Slot> {
        if let Some(slot) = self.own(lock) {
            return Some(slot);
        }
        let own = std::process::id();
        let index = self.table.slots.iter().position(|slot| {
            let pid = slot.pid.load(Ordering::Acquire);
            // One with this id is of a process that is gone, or of this one before an `exec`.
            pid == 0 || pid == own || !is_alive(pid, slot.start.load(Ordering::Acquire))
        })?;
        let slot = &self.table.slots[index];
        for bytes in &slot.bytes {
            bytes.store(0, Ordering::Release);
        }
        slot.start.store(start_of(own).unwrap_or(0), Ordering::Release);
        slot.pid.store(own, Ordering::Release);
        self.own.store(index, Ordering::Relaxed);
        Some(slot)
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // Unlocking what one has locked cannot fail.
        let _ = set_lock(self.file, libc::F_UNLCK);
    }
}

/// Locks or unlocks the whole file for this process, waiting for others.
fn set_lock(file: &File, kind: i32) -> std::io::Result<()> {
    // SAFETY: all-zero bytes are a valid `flock`: from the start of the file to its end.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the descriptor is open, and `range` outlives the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLKW, &raw const range) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Charges `bytes` on device `index` to this process unless all together would exceed `capacity`.
/// Returns what all hold afterwards.
pub(crate) fn charge(machine: &Machine, index: usize, bytes: u64, capacity: u64) -> Option<u64> {
    let shared = shared(machine)?;
    let lock = shared.lock();
    let after = shared.total(index).checked_add(bytes).filter(|after| *after <= capacity)?;
    let Some(slot) = shared.own_or_take(&lock) else {
        activity::internal_error(format!("more than {SLOTS} processes use the virtual GPU"));
        return None;
    };
    slot.bytes[index].fetch_add(bytes, Ordering::AcqRel);
    Some(after)
}

/// Takes back `bytes` charged before. After [`leave`] there is nothing left to take back: a library
/// that frees while the process ends must not touch a slot that may be another's by then.
pub(crate) fn discharge(machine: &Machine, index: usize, bytes: u64) {
    if let Some(shared) = shared(machine) {
        let lock = shared.lock();
        if let Some(slot) = shared.own(&lock) {
            // What was charged before `leave` is in no slot any more.
            let less = slot.bytes[index].load(Ordering::Acquire).saturating_sub(bytes);
            slot.bytes[index].store(less, Ordering::Release);
        }
    }
}

/// Bytes that all processes hold on device `index`.
pub(crate) fn total(machine: &Machine, index: usize) -> u64 {
    shared(machine).map_or(0, |shared| shared.total(index))
}

/// What live processes hold, one entry for each process and device with any.
pub(crate) fn list() -> Vec<Use> {
    let Some(shared) = device::machine().and_then(shared) else { return Vec::new() };
    let uses = shared.live().flat_map(|slot| {
        let pid = slot.pid.load(Ordering::Acquire);
        slot.bytes.iter().enumerate().map(move |(device, bytes)| Use {
            pid,
            device,
            bytes: bytes.load(Ordering::Acquire),
        })
    });
    uses.filter(|usage| usage.bytes > 0).collect()
}

/// Gives up this process's slot.
pub(crate) fn leave() {
    let Some(shared) = device::machine().and_then(shared) else { return };
    let lock = shared.lock();
    if let Some(slot) = shared.own(&lock) {
        slot.pid.store(0, Ordering::Release);
        shared.own.store(NO_SLOT, Ordering::Relaxed);
    }
}

/// Whether process `pid`, started at `start`, still runs.
pub(crate) fn is_alive(pid: u32, start: u64) -> bool {
    pid == std::process::id() || start_of(pid) == Some(start)
}

/// Start time of process `pid` in clock ticks since boot: field 22 of `/proc/PID/stat`, proc(5). None
/// for one that has ended, though its parent may not have asked for its end yet (state `Z` or `X`).
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command, field 2, is in parentheses and may hold spaces and parentheses itself.
    let mut after_command = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    if matches!(after_command.next()?, "Z" | "X") {
        return None;
    }
    after_command.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_another_with_the_same_id() {
        let own = std::process::id();
        assert!(start_of(own).is_some());
        let parent = std::os::unix::process::parent_id();
        let start = start_of(parent).unwrap();
        assert!(is_alive(parent, start));
        assert!(!is_alive(parent, start + 1));
        assert!(!is_alive(u32::MAX, 0));
    }

    #[test]
    fn a_process_that_has_ended_is_not_alive_even_before_its_parent_asks() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let start = std::time::Instant::now();
        while start_of(child.id()).is_some() {
            assert!(start.elapsed() < std::time::Duration::from_secs(10));
            std::thread::yield_now();
        }
        assert!(child.wait().unwrap().success());
    }
}
