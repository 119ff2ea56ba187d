//! What processes hold on the virtual GPU, visible to all of them: a table in a file of the virtual
//! GPU's folder, mapped by each, one slot a process.
//!
//! A lock on the file orders charges, so that two processes never share the same last bytes; the
//! kernel drops it when its holder dies. Slots of dead processes are found by process id and start
//! time and taken over.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use vramfit_vgpu_schema::{Description, folder};

use crate::activity;
use crate::device::{self, Machine};

/// What one process holds on one device.
pub(crate) struct Use {
    /// The process.
    pub(crate) pid: u32,
    /// Index in the description.
    pub(crate) device: usize,
    /// Context and allocations, in bytes.
    pub(crate) bytes: u64,
}

const SLOTS: usize = 256;

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
    path: PathBuf,
    /// Orders the threads of this process; `flock` orders processes only.
    file: Mutex<Opened>,
    own: OnceLock<usize>,
}

/// The file as one process opened it: after a fork, parent and child would share one lock.
struct Opened {
    by: u32,
    file: File,
}

impl Opened {
    fn open(path: &Path) -> std::io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self { by: std::process::id(), file })
    }
}

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
    let opened = Opened::open(&path)?;
    let file = &opened.file;
    let length = size_of::<Table>();
    if file.metadata()?.len() < length as u64 {
        file.set_len(length as u64)?;
    }
    // SAFETY: a shared mapping of `length` bytes of a file at least that long.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the mapping is never undone, page-aligned, and holds only atomics, for which any bytes
    // are valid and which other processes may change at any time.
    let table = unsafe { &*address.cast::<Table>() };
    Ok(Shared { table, path, file: Mutex::new(opened), own: OnceLock::new() })
}

/// Holds the table against other threads and other processes.
struct Lock<'a>(MutexGuard<'a, Opened>);

impl Shared {
    fn lock(&self) -> Lock<'_> {
        let mut opened = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.by != std::process::id() {
            match Opened::open(&self.path) {
                Ok(own) => *opened = own,
                Err(error) => activity::internal_error(format!("no table of processes: {error}")),
            }
        }
        // SAFETY: the descriptor is open. An interrupted wait is tried again.
        while unsafe { libc::flock(opened.file.as_raw_fd(), libc::LOCK_EX) } != 0
            && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
        {}
        Lock(opened)
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

    /// This process's slot; taken on first use, under the lock.
    fn own(&self, _lock: &Lock<'_>) -> Option<&Slot> {
        if let Some(index) = self.own.get() {
            return Some(&self.table.slots[*index]);
        }
        let index = self.table.slots.iter().position(|slot| {
            let pid = slot.pid.load(Ordering::Acquire);
            pid == 0 || !is_alive(pid, slot.start.load(Ordering::Acquire))
        })?;
        let slot = &self.table.slots[index];
        let pid = std::process::id();
        for bytes in &slot.bytes {
            bytes.store(0, Ordering::Release);
        }
        slot.start.store(start_of(pid).unwrap_or(0), Ordering::Release);
        slot.pid.store(pid, Ordering::Release);
        // Nobody else sets it: the lock is held.
        let _ = self.own.set(index);
        Some(slot)
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open and locked by this process.
        unsafe { libc::flock(self.0.file.as_raw_fd(), libc::LOCK_UN) };
    }
}

/// Charges `bytes` on device `index` to this process unless all together would exceed `capacity`.
/// Returns what all hold afterwards.
pub(crate) fn charge(machine: &Machine, index: usize, bytes: u64, capacity: u64) -> Option<u64> {
    let shared = shared(machine)?;
    let lock = shared.lock();
    let after = shared.total(index).checked_add(bytes).filter(|after| *after <= capacity)?;
    shared.own(&lock)?.bytes[index].fetch_add(bytes, Ordering::AcqRel);
    Some(after)
}

/// Takes back `bytes` charged before.
pub(crate) fn discharge(machine: &Machine, index: usize, bytes: u64) {
    if let Some(shared) = shared(machine) {
        let lock = shared.lock();
        if let Some(slot) = shared.own(&lock) {
            slot.bytes[index].fetch_sub(bytes, Ordering::AcqRel);
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
    if let Some(index) = shared.own.get() {
        let _lock = shared.lock();
        shared.table.slots[*index].pid.store(0, Ordering::Release);
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
