//! The virtual GPU's clock (vgpu/src/python.rs), where the process runs on one.

use std::ffi::CStr;
use std::sync::OnceLock;

/// How the current device stands, in nanoseconds of virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Reading {
    /// When the host would go on if it waited for the device now.
    pub(crate) now: u64,
    /// The device had any work, so far.
    pub(crate) busy: u64,
    /// In kernels that wait for arithmetic, so far; and so on.
    pub(crate) compute: u64,
    pub(crate) memory: u64,
    pub(crate) launch: u64,
    pub(crate) transfer: u64,
    /// PyTorch and the program have been at work on the host.
    pub(crate) dispatch: u64,
}

/// The functions of the virtual GPU.
struct Clock {
    read: extern "C" fn(*mut Reading),
    pause: extern "C" fn(),
    resume: extern "C" fn(),
}

fn clock() -> Option<&'static Clock> {
    static CLOCK: OnceLock<Option<Clock>> = OnceLock::new();
    let find = |name: &CStr| {
        // SAFETY: the name is zero-terminated; the answer is null where there is no such function.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let all = || {
        let [read, pause, resume] =
            [c"vramfit_vgpu_clock", c"vramfit_vgpu_pause", c"vramfit_vgpu_resume"].map(find);
        let (read, pause, resume) = (read?, pause?, resume?);
        // SAFETY: the signatures are those of vgpu/src/python.rs; `Reading` is seven numbers.
        unsafe {
            Some(Clock {
                read: std::mem::transmute::<*mut libc::c_void, extern "C" fn(*mut Reading)>(read),
                pause: std::mem::transmute::<*mut libc::c_void, extern "C" fn()>(pause),
                resume: std::mem::transmute::<*mut libc::c_void, extern "C" fn()>(resume),
            })
        }
    };
    CLOCK.get_or_init(all).as_ref()
}

/// How the device stands; none on a real one.
pub(crate) fn read() -> Option<Reading> {
    let mut reading = Reading::default();
    (clock()?.read)(&raw mut reading);
    Some(reading)
}

/// Until the answer is dropped, the calling thread's time is not the training's.
pub(crate) fn pause() -> Pause {
    if let Some(clock) = clock() {
        (clock.pause)();
    }
    Pause(())
}

/// See [`pause`].
#[must_use]
pub(crate) struct Pause(());

impl Drop for Pause {
    fn drop(&mut self) {
        if let Some(clock) = clock() {
            (clock.resume)();
        }
    }
}
