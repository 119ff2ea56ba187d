//! Where the ranks of one communicator meet: a file in the virtual GPU's folder, mapped by each.
//!
//! Every rank has a seat with two boards. For its collective number s it writes its part on board
//! s mod 2 and then raises its count; once all counts are raised it reads the others' boards. Two
//! boards are enough: a rank writes number s + 2 only after it has finished s + 1, so after all others
//! have begun s + 1, and so after they have finished reading s.
//!
//! For messages between two ranks each ordered pair has a box with room for a few of them.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::copy::LIMIT;
use crate::{processes, shared_file};

/// What one rank tells the others: the payload only where it is at most [`LIMIT`] bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message {
    /// Which call it belongs to, so that ranks which disagree are found out.
    pub(super) call: u32,
    /// Size in bytes, also where there is no payload.
    pub(super) bytes: u64,
    /// Whether the payload holds what the program thinks it holds, not leftovers of a kernel that
    /// never ran.
    pub(super) known: bool,
    /// Empty where it would be larger than [`LIMIT`].
    pub(super) payload: Vec<u8>,
}

#[repr(C)]
struct Sheet {
    call: AtomicU32,
    known: AtomicU32,
    bytes: AtomicU64,
    length: AtomicU64,
    payload: UnsafeCell<[u8; LIMIT]>,
}

impl Sheet {
    /// # Safety
    /// Nobody reads or writes this sheet at the same time.
    unsafe fn write(&self, message: &Message) {
        let length = message.payload.len().min(LIMIT);
        self.call.store(message.call, Ordering::Relaxed);
        self.known.store(message.known.into(), Ordering::Relaxed);
        self.bytes.store(message.bytes, Ordering::Relaxed);
        self.length.store(length as u64, Ordering::Relaxed);
        // SAFETY: the payload is `LIMIT` bytes long, and the sheet is the caller's alone.
        unsafe {
            self.payload.get().cast::<u8>().copy_from(message.payload.as_ptr(), length);
        }
    }

    /// # Safety
    /// Nobody writes this sheet at the same time.
    unsafe fn read(&self) -> Message {
        let length = usize::try_from(self.length.load(Ordering::Relaxed)).unwrap_or(0).min(LIMIT);
        // SAFETY: the payload is `LIMIT` bytes long, any bytes are valid, and nobody writes them now.
        let payload =
            unsafe { std::slice::from_raw_parts(self.payload.get().cast::<u8>(), length) }.to_vec();
        Message {
            call: self.call.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            known: self.known.load(Ordering::Relaxed) != 0,
            payload,
        }
    }
}

#[repr(C)]
struct Seat {
    /// 0 until the rank has joined.
    pid: AtomicU32,
    /// Index of its device in the description.
    device: AtomicU32,
    left: AtomicU32,
    /// See `processes`: a process id alone is used again.
    start: AtomicU64,
    /// Collectives begun.
    posted: AtomicU64,
    boards: [Sheet; 2],
}

const LETTERS: usize = 8;

#[repr(C)]
struct Mailbox {
    sent: AtomicU64,
    received: AtomicU64,
    letters: [Sheet; LETTERS],
}

/// The meeting place of one communicator, as this process sees it.
pub(super) struct Room {
    address: *mut c_void,
    length: usize,
    ranks: usize,
    path: PathBuf,
}

// SAFETY: the mapping is only reached through atomics and through sheets, which the protocol above
// gives to one rank at a time.
unsafe impl Send for Room {}
// SAFETY: as for `Send`.
unsafe impl Sync for Room {}

impl Room {
    /// Opens the room at `path`, which is made by the first rank that comes. All-zero bytes, as a fresh
    /// file has them, are an empty room; only what is touched takes memory.
    pub(super) fn open(path: PathBuf, ranks: usize) -> io::Result<Self> {
        let length = ranks * size_of::<Seat>() + ranks * ranks * size_of::<Mailbox>();
        let (_, address) = shared_file::map(&path, length)?;
        Ok(Self { address, length, ranks, path })
    }

    pub(super) fn ranks(&self) -> usize {
        self.ranks
    }

    fn seat(&self, rank: usize) -> &Seat {
        assert!(rank < self.ranks);
        // SAFETY: the mapping begins with one seat a rank, lives as long as `self`, and is page-aligned.
        unsafe { &*self.address.cast::<Seat>().add(rank) }
    }

    fn mailbox(&self, from: usize, to: usize) -> &Mailbox {
        assert!(from < self.ranks && to < self.ranks);
        // SAFETY: one mailbox for each ordered pair follows the seats, whose size is a multiple of the
        // alignment of both.
        unsafe {
            let boxes = self.address.cast::<Seat>().add(self.ranks).cast::<Mailbox>();
            &*boxes.add(from * self.ranks + to)
        }
    }

    /// Takes the seat of `rank` for this process; false if it is taken.
    pub(super) fn join(&self, rank: usize, device: usize) -> bool {
        let seat = self.seat(rank);
        if seat.pid.load(Ordering::Acquire) != 0 {
            return false;
        }
        let pid = std::process::id();
        seat.device.store(device as u32, Ordering::Relaxed);
        seat.start.store(processes::start_of(pid).unwrap_or(0), Ordering::Relaxed);
        seat.pid.compare_exchange(0, pid, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Whether all ranks have joined.
    pub(super) fn is_full(&self) -> bool {
        (0..self.ranks).all(|rank| self.seat(rank).pid.load(Ordering::Acquire) != 0)
    }

    /// Two ranks on the same device, if there are any.
    pub(super) fn duplicate(&self) -> Option<(usize, usize)> {
        let device = |rank| self.seat(rank).device.load(Ordering::Relaxed);
        (0..self.ranks).find_map(|second| {
            (0..second).find(|first| device(*first) == device(second)).map(|first| (first, second))
        })
    }

    /// Whether `rank` joined and then left or died. Reads from `/proc`: for the slow path.
    pub(super) fn is_gone(&self, rank: usize) -> bool {
        let seat = self.seat(rank);
        let pid = seat.pid.load(Ordering::Acquire);
        pid != 0
            && (seat.left.load(Ordering::Acquire) != 0
                || !processes::is_alive(pid, seat.start.load(Ordering::Relaxed)))
    }

    /// Gives up the seat of `rank`; the last to leave takes the file away.
    pub(super) fn leave(&self, rank: usize) {
        self.seat(rank).left.store(1, Ordering::Release);
        if (0..self.ranks).all(|rank| self.is_gone(rank)) {
            // Whoever finds it gone already has come to the same conclusion.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Writes `rank`'s part of collective `number`.
    pub(super) fn post(&self, rank: usize, number: u64, message: &Message) {
        let seat = self.seat(rank);
        // SAFETY: only this rank writes its boards, and all others have finished reading number - 2
        // (see the module's documentation).
        unsafe { seat.boards[(number % 2) as usize].write(message) };
        seat.posted.store(number + 1, Ordering::Release);
    }

    /// What each rank wrote for collective `number`, once all have.
    pub(super) fn read(&self, number: u64) -> Option<Vec<Message>> {
        let all =
            (0..self.ranks).all(|rank| self.seat(rank).posted.load(Ordering::Acquire) > number);
        all.then(|| {
            let board = (number % 2) as usize;
            // SAFETY: written before the count was raised, and not written again before this rank has
            // begun number + 1.
            (0..self.ranks).map(|rank| unsafe { self.seat(rank).boards[board].read() }).collect()
        })
    }

    /// The first rank that has not written collective `number` and will not any more.
    pub(super) fn lost(&self, number: u64) -> Option<usize> {
        (0..self.ranks).find(|&rank| {
            self.seat(rank).posted.load(Ordering::Acquire) <= number && self.is_gone(rank)
        })
    }

    /// Puts a message into the box; false if it is full.
    pub(super) fn send(&self, from: usize, to: usize, message: &Message) -> bool {
        let mailbox = self.mailbox(from, to);
        let sent = mailbox.sent.load(Ordering::Relaxed);
        if sent - mailbox.received.load(Ordering::Acquire) >= LETTERS as u64 {
            return false;
        }
        // SAFETY: only `from` writes letters, and `to` has read the one that lay here before.
        unsafe { mailbox.letters[(sent % LETTERS as u64) as usize].write(message) };
        mailbox.sent.store(sent + 1, Ordering::Release);
        true
    }

    /// Takes the oldest message out of the box.
    pub(super) fn receive(&self, from: usize, to: usize) -> Option<Message> {
        let mailbox = self.mailbox(from, to);
        let received = mailbox.received.load(Ordering::Relaxed);
        if mailbox.sent.load(Ordering::Acquire) == received {
            return None;
        }
        // SAFETY: `from` wrote it before it raised the count, and writes here again only after
        // `received` has been raised.
        let message = unsafe { mailbox.letters[(received % LETTERS as u64) as usize].read() };
        mailbox.received.store(received + 1, Ordering::Release);
        Some(message)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open`, and all references into it end with `self`.
        unsafe { libc::munmap(self.address, self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(name: &str, ranks: usize) -> Room {
        let name = format!("vramfit-vgpu-room-{name}-{}", std::process::id());
        Room::open(std::env::temp_dir().join(name), ranks).unwrap()
    }

    fn message(text: &str) -> Message {
        Message { call: 1, bytes: text.len() as u64, known: true, payload: text.into() }
    }

    #[test]
    fn what_all_have_posted_can_be_read_by_each() {
        let room = room("post", 2);
        assert!(room.join(0, 0) && !room.is_full() && room.join(1, 1) && room.is_full());
        assert!(!room.join(1, 1), "the seat is taken");
        for number in 0..5 {
            room.post(0, number, &message(&format!("zero {number}")));
            assert_eq!(room.read(number), None);
            room.post(1, number, &message(&format!("one {number}")));
            let read = room.read(number).unwrap();
            assert_eq!(read[0], message(&format!("zero {number}")));
            assert_eq!(read[1], message(&format!("one {number}")));
        }
        assert_eq!(room.duplicate(), None);
        room.leave(0);
        assert_eq!((room.lost(4), room.lost(5)), (None, Some(0)));
        assert!(room.path.exists());
        room.leave(1);
        assert!(!room.path.exists());
    }

    #[test]
    fn a_mailbox_keeps_order_and_refuses_when_it_is_full() {
        let room = room("mail", 2);
        let sent = (0..20).take_while(|n| room.send(0, 1, &message(&n.to_string()))).count();
        assert_eq!(sent, LETTERS);
        assert_eq!(room.receive(0, 1), Some(message("0")));
        assert!(room.send(0, 1, &message("more")));
        let rest: Vec<Message> = std::iter::from_fn(|| room.receive(0, 1)).collect();
        assert_eq!((rest.len(), rest.last()), (LETTERS, Some(&message("more"))));
        assert_eq!(room.receive(1, 0), None);
        std::fs::remove_file(&room.path).unwrap();
    }
}
