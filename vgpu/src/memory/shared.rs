//! Device memory of another process: where it lies, in a form that can be handed over, and the
//! allocations that were opened so (CUDA IPC). Memory is charged to the process that allocated it.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, RawFd};
use std::sync::{Mutex, PoisonError};

use super::{Purpose, backing};
use crate::address_space::{self, GRANULE};
use crate::{activity, device, memory, processes};

/// Marks a handle of this library: `vramfit` and the version of what follows.
const MAGIC: [u8; 8] = *b"vramfit1";
/// Bytes of a place: the mark and six numbers. Handles of CUDA IPC have 64.
const LENGTH: usize = 56;

/// A part of a process's device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The process, and when it started.
    pid: u32,
    start: u64,
    /// Its descriptor of the device's file.
    file: u32,
    /// Index of the device in the description.
    device: usize,
    /// Where in the file.
    pub(super) offset: u64,
    /// How much.
    pub(super) bytes: u64,
}

impl Place {
    /// A part of this process's memory on CUDA ordinal `ordinal`.
    pub(super) fn of(ordinal: usize, offset: u64, bytes: u64) -> Option<Self> {
        let pid = std::process::id();
        let start = processes::start_of(pid)?;
        let file = u32::try_from(backing::file(ordinal).ok()?.as_raw_fd()).ok()?;
        let device = *device::machine()?.visible().get(ordinal)?;
        Some(Self { pid, start, file, device, offset, bytes })
    }

    /// The bytes that say it, the rest zero.
    pub(crate) fn to_bytes<const N: usize>(self) -> [u8; N] {
        const { assert!(N >= LENGTH) };
        let mut bytes = [0; N];
        bytes[..8].copy_from_slice(&MAGIC);
        let numbers = [
            self.pid.into(),
            self.start,
            self.file.into(),
            self.device as u64,
            self.offset,
            self.bytes,
        ];
        for (place, number) in bytes[8..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// What [`Place::to_bytes`] wrote.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let numbers = bytes.strip_prefix(&MAGIC)?;
        let number = |index: usize| {
            let place = numbers.get(8 * index..8 * index + 8)?;
            Some(u64::from_le_bytes(place.try_into().ok()?))
        };
        Some(Self {
            pid: u32::try_from(number(0)?).ok()?,
            start: number(1)?,
            file: u32::try_from(number(2)?).ok()?,
            device: usize::try_from(number(3)?).ok()?,
            offset: number(4)?,
            bytes: number(5)?,
        })
    }

    /// A descriptor of a file that holds it.
    pub(super) fn into_descriptor(self) -> Option<RawFd> {
        // SAFETY: the name is zero-terminated.
        let descriptor =
            unsafe { libc::memfd_create(c"vramfit-vgpu-handle".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return None;
        }
        // SAFETY: the descriptor was opened just now and nobody else has it.
        let mut file = unsafe { File::from_raw_fd(descriptor) };
        file.write_all(&self.to_bytes::<LENGTH>()).ok()?;
        Some(file.into_raw_fd())
    }

    /// Reads what [`Place::into_descriptor`] wrote, and leaves the descriptor open.
    pub(super) fn from_descriptor(descriptor: RawFd) -> Option<Self> {
        // SAFETY: the caller of the entry point passes an open descriptor; should it be none, reading
        // fails. It is not closed here.
        let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
        let mut bytes = [0; LENGTH];
        file.rewind().ok()?;
        file.read_exact(&mut bytes).ok()?;
        Self::from_bytes(&bytes)
    }

    /// Whether it is some whole units of a device's file. Who handed it over may have written anything.
    fn is_plausible(self) -> bool {
        let end = self.offset.checked_add(self.bytes);
        self.bytes > 0
            && self.offset.is_multiple_of(GRANULE)
            && self.bytes.is_multiple_of(GRANULE)
            && end.is_some_and(|end| end <= backing::LENGTH)
    }

    /// Opens the file that it lies in; also the CUDA ordinal of its device here. None if the process
    /// is gone, or this one does not see the device.
    pub(super) fn open(self) -> Option<(usize, File)> {
        if !self.is_plausible() {
            return None;
        }
        let ordinal = device::machine()?.visible().iter().position(|it| *it == self.device)?;
        if !processes::is_alive(self.pid, self.start) {
            return None;
        }
        let path = format!("/proc/{}/fd/{}", self.pid, self.file);
        match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => Some((ordinal, file)),
            Err(error) => {
                activity::internal_error(format!("memory of process {}: {error}", self.pid));
                None
            }
        }
    }
}

/// An allocation of another process that is open here.
struct Opened {
    place: Place,
    address: u64,
    times: usize,
}

static OPENED: Mutex<Vec<Opened>> = Mutex::new(Vec::new());

/// Where the allocation that holds `pointer` lies, to be told another process; none if it is no
/// allocation of `cudaMalloc`.
pub(crate) fn place_of(pointer: *const c_void) -> Option<Place> {
    let ordinal = address_space::ordinal_of(pointer)?;
    let (start, length, purpose) = memory::holdings(ordinal).space.range_of(pointer as u64)?;
    if purpose != Purpose::Allocation {
        return None;
    }
    Place::of(ordinal, address_space::offset_of(start), length)
}

/// Why an allocation cannot be opened.
pub(crate) enum CannotOpen {
    /// It is this process's own.
    Own,
    /// There is no such allocation, or not for this process.
    Invalid,
}

/// Opens another process's allocation; its address here. A second time it is the same one.
pub(crate) fn open(place: Place) -> Result<*mut c_void, CannotOpen> {
    if place.pid == std::process::id() {
        return Err(CannotOpen::Own);
    }
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = opened.iter_mut().find(|it| it.place == place) {
        known.times += 1;
        return Ok(known.address as *mut c_void);
    }
    let (ordinal, file) = place.open().ok_or(CannotOpen::Invalid)?;
    memory::make_context(ordinal).map_err(|_| CannotOpen::Invalid)?;
    let mut held = memory::holdings(ordinal);
    let within = address_space::addresses(ordinal);
    let address = held
        .space
        .take(within, place.bytes, GRANULE, Purpose::Import)
        .ok_or(CannotOpen::Invalid)?;
    if let Err(error) = backing::map(address, place.bytes, &file, place.offset) {
        activity::internal_error(format!("memory of process {}: {error}", place.pid));
        held.space.give_back(address);
        return Err(CannotOpen::Invalid);
    }
    opened.push(Opened { place, address, times: 1 });
    Ok(address as *mut c_void)
}

/// Closes what [`open`] returned, once; false if it is not open.
pub(crate) fn close(pointer: *mut c_void) -> bool {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(index) = opened.iter().position(|it| it.address == pointer as u64) else {
        return false;
    };
    opened[index].times -= 1;
    if opened[index].times == 0 {
        let Opened { place, address, .. } = opened.swap_remove(index);
        if let Some(ordinal) = address_space::ordinal_of(pointer) {
            // Addresses that are free must be unmapped: the lock is held until both are true.
            let mut held = memory::holdings(ordinal);
            backing::unmap(address, place.bytes);
            held.space.give_back(address);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_some_units_of_a_devices_file() {
        let place = |offset, bytes| Place { pid: 7, start: 0, file: 5, device: 0, offset, bytes };
        let last = backing::LENGTH - GRANULE;
        assert!(place(0, GRANULE).is_plausible() && place(last, GRANULE).is_plausible());
        for (offset, bytes) in [
            (GRANULE, 0),
            (1, GRANULE),
            (0, 1),
            (last, 2 * GRANULE),
            (u64::MAX - GRANULE + 1, GRANULE),
        ] {
            assert!(!place(offset, bytes).is_plausible(), "{bytes} bytes at {offset}");
        }
    }

    #[test]
    fn a_place_survives_being_handed_over() {
        let place =
            Place { pid: 7, start: 1 << 40, file: 5, device: 1, offset: 6 << 21, bytes: 4 << 21 };
        assert_eq!(Place::from_bytes(&place.to_bytes::<64>()), Some(place));
        assert_eq!(Place::from_bytes(&[0; 64]), None);
        assert_eq!(Place::from_bytes(&place.to_bytes::<64>()[..50]), None);
        let descriptor = place.into_descriptor().unwrap();
        for _ in 0..2 {
            assert_eq!(Place::from_descriptor(descriptor), Some(place), "and can be read again");
        }
        // SAFETY: made above and used no more.
        drop(unsafe { File::from_raw_fd(descriptor) });
    }
}
