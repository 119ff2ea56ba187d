//! The edge to C: how an entry point is defined, and how it reads and writes what callers point at.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::activity;

/// Defines exported entry points. Each body runs under [`guard`], so that no panic crosses the C ABI.
macro_rules! entry_points {
    (
        on_panic = $on_panic:expr;
        $(
            $(#[$meta:meta])*
            fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $return:ty $body:block
        )*
    ) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            #[allow(
                non_snake_case,
                clippy::too_many_arguments,
                reason = "names and arguments are NVIDIA's"
            )]
            unsafe extern "C" fn $name($($argument: $type),*) -> $return {
                $crate::entry::guard(stringify!($name), || $on_panic, move || $body)
            }
        )*
    };
}
pub(crate) use entry_points;

/// As [`entry_points`], for families of functions that differ only in the type of their numbers, such as
/// LAPACK's: one body for all names, which has its own name as `$call`. Only leading arguments need
/// be declared.
macro_rules! typed_entry_points {
    (
        on_panic = $on_panic:expr;
        $(
            $(#[$meta:meta])*
            fn [$($name:ident),+ $(,)?] $arguments:tt -> $return:ty |$call:ident| $body:block
        )*
    ) => {
        $($crate::entry::typed_entry_points! {
            @each $on_panic; [$($name)+] $arguments ($return) $call $body
        })*
    };
    (@each $on_panic:expr; [] $arguments:tt ($return:ty) $call:ident $body:block) => {};
    (@each $on_panic:expr; [$name:ident $($rest:ident)*] $arguments:tt ($return:ty) $call:ident $body:block) => {
        $crate::entry::typed_entry_points! { @one $on_panic; $name $arguments ($return) $call $body }
        $crate::entry::typed_entry_points! { @each $on_panic; [$($rest)*] $arguments ($return) $call $body }
    };
    (
        @one $on_panic:expr; $name:ident ($($argument:ident: $type:ty),* $(,)?) ($return:ty) $call:ident
        $body:block
    ) => {
        $crate::entry::entry_points! { on_panic = $on_panic;
            fn $name($($argument: $type),*) -> $return {
                let $call: &'static str = stringify!($name);
                $body
            }
        }
    };
}
pub(crate) use typed_entry_points;

/// Runs the body of an entry point; a panic is recorded as an internal error of the virtual GPU and
/// answered with `on_panic`.
pub(crate) fn guard<R>(
    name: &'static str,
    on_panic: impl FnOnce() -> R,
    body: impl FnOnce() -> R,
) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "panic".to_owned());
        activity::internal_error(format!("{name}: {text}"));
        on_panic()
    })
}

/// A pointer through which an entry point hands a value back. Null is allowed and ignored.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// For a pointer of which only the call's version tells that it is one.
    pub(crate) fn of(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// Writes `value` where the caller asked for it.
    pub(crate) fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: NVIDIA's interfaces require each out-pointer to be null or valid for one value;
            // callers of the exported function have promised that. Unaligned, since nothing forbids it.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Whether the caller wants no answer.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl<T: Copy> Out<T> {
    /// The value the caller left there, for pointers that carry something in and out.
    pub(crate) fn get(self) -> Option<T> {
        // SAFETY: as in `set`; in-out pointers hold an initialised value.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }
}

impl Out<u8> {
    /// Writes `text` and a final zero into a buffer of `capacity` bytes, cutting what is too long.
    pub(crate) fn set_text(self, text: &str, capacity: usize) {
        if self.0.is_null() || capacity == 0 {
            return;
        }
        let length = text.len().min(capacity - 1);
        // SAFETY: the caller's buffer holds `capacity` bytes, of which `length + 1` are written.
        unsafe {
            self.0.copy_from_nonoverlapping(text.as_ptr(), length);
            self.0.add(length).write(0);
        }
    }
}

/// A value that an entry point reads through a pointer of the caller's.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    /// The value; none behind a null pointer.
    pub(crate) fn get(self) -> Option<T> {
        // SAFETY: the interface asks for a null pointer or one to an initialised value.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }
}

impl In<std::ffi::c_char> {
    /// The text, or an empty one for a null pointer or other than UTF-8.
    pub(crate) fn text<'a>(self) -> &'a str {
        if self.0.is_null() {
            return "";
        }
        // SAFETY: the interface asks for a zero-terminated text that outlives the call.
        unsafe { std::ffi::CStr::from_ptr(self.0) }.to_str().unwrap_or_default()
    }

    /// The pointer itself.
    pub(crate) fn as_ptr(self) -> *const std::ffi::c_char {
        self.0
    }
}
