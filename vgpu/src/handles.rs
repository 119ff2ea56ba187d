//! Opaque handles for what callers create and destroy: streams, events, library handles.
//!
//! A handle is a number, never a pointer, so that a handle used after its end is found out instead of
//! followed.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::by_address::ByAddress;
use crate::device;
use crate::entry::Out;

/// A table of live handles to values of one type.
pub(crate) struct Handles<T>(LazyLock<RwLock<ByAddress<Arc<T>>>>);

/// Why a library gives a program no handle.
pub(crate) enum NotOpened {
    /// There is no place to put it.
    NullPointer,
    /// There is no device.
    NoDevice,
    /// The device has no room for a context.
    NoMemory,
}

/// Handles stay clear of null and of CUDA's special streams 1 and 2, and look like no address.
static NEXT: AtomicUsize = AtomicUsize::new(0x10_0000);

impl<T> Handles<T> {
    pub(crate) const fn new() -> Self {
        Self(LazyLock::new(RwLock::default))
    }

    /// A fresh handle to `value`.
    pub(crate) fn insert(&self, value: T) -> *mut c_void {
        self.insert_shared(Arc::new(value))
    }

    /// A fresh handle to what others hold too.
    pub(crate) fn insert_shared(&self, value: Arc<T>) -> *mut c_void {
        let handle = NEXT.fetch_add(0x10, Ordering::Relaxed);
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.insert(handle, value);
        handle as *mut c_void
    }

    /// The value behind `handle`, while it lives.
    pub(crate) fn get(&self, handle: *mut c_void) -> Option<Arc<T>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.get(&(handle as usize)).cloned()
    }

    /// Ends `handle`; false if it was not alive.
    pub(crate) fn remove(&self, handle: *mut c_void) -> bool {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.remove(&(handle as usize)).is_some()
    }
}

impl<T: Default> Handles<T> {
    /// A fresh handle of a library, on the calling thread's device, whose context it makes.
    pub(crate) fn open(&self, handle: Out<*mut c_void>) -> Result<(), NotOpened> {
        if handle.is_null() {
            return Err(NotOpened::NullPointer);
        }
        device::machine().ok_or(NotOpened::NoDevice)?;
        device::make_context(device::current()).map_err(|_| NotOpened::NoMemory)?;
        handle.set(self.insert(T::default()));
        Ok(())
    }
}
