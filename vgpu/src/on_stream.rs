//! The stream that a library's handle gives its work to.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use vramfit_vgpu_cost::Work;

use crate::graph::{Kind, capture};
use crate::runtime::status::Status;
use crate::{activity, copy};

/// A stream that the program may change; the default stream at first.
#[derive(Default)]
pub(crate) struct OnStream(AtomicUsize);

impl OnStream {
    pub(crate) fn set(&self, stream: *mut c_void) {
        self.0.store(stream as usize, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> *mut c_void {
        self.0.load(Ordering::Relaxed) as *mut c_void
    }

    /// Gives the stream what library call `call` launches, which asks `work` of the device: it is
    /// captured or, outside of a capture, done. `effect` is what really happens.
    pub(crate) fn launch(
        &self,
        call: &'static str,
        work: Work,
        effect: impl Fn() + Send + Sync + 'static,
    ) -> Result<(), Status> {
        capture::submit(self.get(), Kind::Kernel, call, work, effect)
    }

    /// Gives the stream one launch of `call` that writes to `info`, a number for each of `problems`
    /// problems on the device, that it was solved.
    pub(crate) fn solve(
        &self,
        call: &'static str,
        work: Work,
        info: *mut c_void,
        problems: i64,
    ) -> Result<(), Status> {
        let bytes = usize::try_from(problems).unwrap_or_default().saturating_mul(size_of::<i32>());
        let info = info as usize;
        self.launch(call, work, move || {
            activity::launched(call);
            copy::write_zeros(info as *mut c_void, bytes, true);
        })
    }

    /// Gives the stream one launch of `call`, which has no effect but that it is counted.
    pub(crate) fn count(&self, call: &'static str, work: Work) -> Result<(), Status> {
        self.launch(call, work, move || activity::launched(call))
    }
}
