//! What the Python side of a process tells, through entry points that are no part of CUDA.
//!
//! Python code that really computes small tensors (shadow execution) knows what this library cannot:
//! how many elements a `nonzero` finds, whether a value that is read back is true, which line of the
//! program reads it. Python finds these functions in the process by name.
//!
//! | function | meaning |
//! | --- | --- |
//! | `vramfit_vgpu_expect_count(int64_t)` | the calling thread's next copy of at most 8 bytes to the host brings this number |
//! | `vramfit_vgpu_drop_count()` | no longer; 1 if no such copy had come, else 0 |
//! | `vramfit_vgpu_expect_bytes(uint64_t)` | from now on each kernel that Triton compiled, launched by the calling thread, reads and writes so many bytes; 0: not known any more |
//! | `vramfit_vgpu_account(int)` | from now on (1) until told otherwise (0), the caller keeps account of what the calling thread reads back; it is not noted here |
//! | `vramfit_vgpu_is_known(uint64_t, uint64_t)` | 1 if so many bytes from that device address on hold what they would on a real GPU: the host wrote them, or other ranks, and no kernel since; else 0 |
//! | `vramfit_vgpu_notes(const char*)` | what to add to the report, as JSON (`Python` of the schema); 1 if it was understood |
//! | `vramfit_vgpu_pause()` | from now on the calling thread's time is not the program's: it computes or watches on vramfit's behalf |
//! | `vramfit_vgpu_resume()` | it is again; pauses nest |
//! | `vramfit_vgpu_clock(uint64_t[7])` | virtual time of the calling thread's device in nanoseconds: now, as if the host had waited for the device; and so far: with any work, by what it waited for (arithmetic, memory, launches, transfers), and the host's at work |
//! | `vramfit_vgpu_report()` | write the report now, since the process will be killed; its end, if it comes, writes it anew |

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use vramfit_vgpu_schema::Python;

use crate::entry::{In, Out, entry_points};
use crate::{activity, clock, copy, device, report};

thread_local! {
    static COUNT: Cell<Option<i64>> = const { Cell::new(None) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
    static ACCOUNTS: Cell<bool> = const { Cell::new(false) };
}

static NOTES: Mutex<Option<Python>> = Mutex::new(None);

/// What a copy of `bytes` bytes to the host is to bring, once: the number in the machine's byte order,
/// of which an integer type of that size is the beginning.
pub(crate) fn take_count(bytes: usize) -> Option<[u8; 8]> {
    let count = if bytes <= size_of::<i64>() { COUNT.take() } else { None };
    count.map(i64::to_le_bytes)
}

/// What the calling thread's launches are said to read and write.
pub(crate) fn bytes() -> Option<u64> {
    match BYTES.get() {
        0 => None,
        bytes => Some(bytes),
    }
}

/// Whether the calling thread's Python side keeps account of what is read back now.
pub(crate) fn accounts() -> bool {
    ACCOUNTS.get()
}

/// What is to be added to the report.
pub(crate) fn notes() -> Option<Python> {
    NOTES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

entry_points! {
    on_panic = ();

    /// The calling thread's next copy of at most 8 bytes to the host brings `count`.
    fn vramfit_vgpu_expect_count(count: i64) -> () {
        COUNT.set(Some(count));
    }

    /// The calling thread's launches of kernels that Triton compiled touch `bytes` bytes each.
    fn vramfit_vgpu_expect_bytes(bytes: u64) -> () {
        BYTES.set(bytes);
    }

    /// What the calling thread reads back is accounted for by the caller, or is not.
    fn vramfit_vgpu_account(on: c_int) -> () {
        ACCOUNTS.set(on != 0);
    }

    /// From now on the calling thread's time is not the program's.
    fn vramfit_vgpu_pause() -> () {
        clock::host::begin_pause();
    }

    /// The calling thread's time is the program's again.
    fn vramfit_vgpu_resume() -> () {
        clock::host::end_pause();
    }

    /// Virtual time of the calling thread's device.
    fn vramfit_vgpu_clock(answer: Out<[u64; 7]>) -> () {
        let clock::State { now, busy, spent, dispatch } = clock::state(device::current());
        let clock::Spent { compute, memory, launch, transfer } = spent;
        answer.set([now, busy, compute, memory, launch, transfer, dispatch]);
    }

    /// Writes the report as it is now.
    fn vramfit_vgpu_report() -> () {
        report::write_now();
    }
}

entry_points! {
    on_panic = 0;

    /// Takes back a count that no copy asked for; 1 if there was one.
    fn vramfit_vgpu_drop_count() -> c_int {
        c_int::from(COUNT.take().is_some())
    }

    /// Whether `bytes` bytes from device address `start` on hold what they would on a real GPU, as far
    /// as the virtual GPU can tell.
    fn vramfit_vgpu_is_known(start: u64, bytes: u64) -> c_int {
        c_int::from(usize::try_from(bytes).is_ok_and(|it| copy::is_known(start as *const c_void, it)))
    }

    /// Keeps `json` for the report; 1 if it was understood.
    fn vramfit_vgpu_notes(json: In<c_char>) -> c_int {
        match serde_json::from_str(json.text()) {
            Ok(notes) => {
                *NOTES.lock().unwrap_or_else(PoisonError::into_inner) = Some(notes);
                1
            }
            Err(error) => {
                activity::internal_error(format!("notes of the Python side: {error}"));
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_brought_once_and_only_by_a_small_copy() {
        COUNT.set(Some(0x1_0000_0007));
        assert_eq!(take_count(9), None);
        assert_eq!(take_count(4).map(|bytes| bytes[..4].to_vec()), Some(vec![7, 0, 0, 0]));
        assert_eq!(take_count(8), None);
    }
}
